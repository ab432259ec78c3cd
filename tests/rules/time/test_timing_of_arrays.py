"""TIME01 is silent where what was timed has come to the host as arrays of NumPy, or as texts."""

from __future__ import annotations

import pytest

from tests.rules.time.timed_programs import SETUP
from tests.support import findings

DETECTION = """
import numpy as np
from scipy.spatial import distance_matrix

def detect(net, images):
    net.eval()
    for image in images:
        size = np.array([image.shape])
        inputs = torch.from_numpy(image).to(device)
        t0 = time.time()
        boxes, classes = net(inputs)
        print(time.time() - t0)
        {use}
"""


@pytest.mark.parametrize(
    ("use", "count"),
    [
        ("kept = np.where(classes == 1)[0]", 0),
        ("near = distance_matrix(boxes[:, 2:], size)", 0),
        ("boxes *= size", 0),
        ("kept = boxes[:, :4] / size", 0),
        ("kept = classes.astype('int32')", 0),
        ("words = classes.strip().split()", 0),
        ("words = [classes[0].lower()]", 0),
        ("words = str(classes).strip().split()", 1),
        ("parts = classes.split(2)", 1),
        ("kept = np.where(classes.cpu() == 1)[0]", 1),
        ("boxes *= 2", 1),
        ("kept = boxes.cpu() / size", 1),
        ("boxes = np.ones(4); boxes *= size", 1),
    ],
)
def test_what_numpy_takes_lies_on_the_host(use: str, count: int) -> None:
    assert len(findings(SETUP + DETECTION.format(use=use), "TIME01")) == count
