"""Masks pasted into a picture one by one."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.evidence.driving import load, stand_in, torchvision
from tests.evidence.piece import Piece, Values


def run(checkout: Path) -> Values:
    torchvision()
    stand_in("torchvision.ops")
    stand_in("torchvision.ops.misc")
    transform = load(checkout / "detector/Mask_RCNN", "network_files.transform")
    masks = torch.rand(4, 1, 8, 8)
    corners = torch.randint(0, 6, (4, 2))
    boxes = torch.cat([corners, corners + torch.randint(3, 9, (4, 2))], 1)
    size = torch.tensor(16), torch.tensor(18)
    return {"pasted": transform._onnx_paste_mask_in_image_loop(masks, boxes, *size)}


PIECE = Piece(
    repository="ZQPei/deep_sort_pytorch",
    commit="4f910afc16860ff05c6be408b120a49524bd4f68",
    path="detector/Mask_RCNN/network_files/transform.py",
    what="`_onnx_paste_mask_in_image_loop` on random masks",
    run=run,
    lint="detector/Mask_RCNN/network_files",
)
