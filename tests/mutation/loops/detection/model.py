"""A keypoint detector that predicts heatmaps and offsets, and its loss."""

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import resnet34


class CenterDetector(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        trunk = resnet34(weights=None)
        self.backbone = nn.Sequential(*list(trunk.children())[:-2])
        self.up = nn.Sequential(
            nn.ConvTranspose2d(512, 128, 4, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(128),
            nn.ReLU(inplace=True),
            nn.ConvTranspose2d(128, 64, 4, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
        )
        self.heatmap = nn.Conv2d(64, num_classes, 1)
        self.offset = nn.Conv2d(64, 2, 1)

    def forward(self, images):
        features = self.up(self.backbone(images))
        return {"heatmap": self.heatmap(features), "offset": self.offset(features)}


class CenterLoss(nn.Module):
    def __init__(self, offset_weight=0.1):
        super().__init__()
        self.offset_weight = offset_weight

    def forward(self, outputs, heatmaps, masks):
        heatmap = F.binary_cross_entropy_with_logits(outputs["heatmap"], heatmaps)
        offset = F.smooth_l1_loss(outputs["offset"] * masks, masks)
        return {"heatmap": heatmap, "offset": self.offset_weight * offset}


def build(args):
    model = CenterDetector(args.num_classes)
    if args.weights:
        model.load_state_dict(torch.load(args.weights, map_location="cpu", weights_only=True))
    return model, CenterLoss()
