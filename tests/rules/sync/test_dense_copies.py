"""SYNC03: scores that are copied to the host whole, for their argmax alone."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import evaluation, line_of
from tests.support import findings

FOUND = {
    "by numpy": "kept.append(out.squeeze(0).cpu().numpy().argmax(1))",
    "by numpy's function": "kept.append(np.argmax(out.cpu().numpy(), axis=1))",
    "by torch, of a copy": "kept.append(torch.argmax(out.data.cpu(), dim=1, keepdim=True))",
    "of what gets the name again": "out = out[:, :2].cpu().numpy()\nout = out.argmax(1)\nkept.append(out)",
    "with the channels behind": "out = out.cpu().data[0].numpy()\nout = out.transpose(1, 2, 0)\n"
    "kept.append(np.asarray(np.argmax(out, axis=2), dtype=np.uint8))",
    "with the axes turned by numpy": "kept.append(np.transpose(out.cpu().numpy(), (0, 2, 1)).argmax(2))",
    "under a name, twice": "scores = out.cpu()\nprint(scores.shape)\nsave(scores.argmax(1), scores.argmin(1))",
}

SILENT = {
    "the device takes the argmax": "kept.append(out.argmax(1).cpu().numpy())",
    "the scores are kept, too": "scores = out.cpu().numpy()\nkept.append((scores, scores.argmax(1)))",
    "the scores are changed on the host": "scores = out.cpu().numpy()\nscores[:, 0] = 0\nkept.append(scores.argmax(1))",
    "the one best of all, for which the host waits": "kept.append(out.cpu().numpy().argmax())",
    "among the classes that each sample may have": (
        "scores = out.cpu().numpy()\nfor i in range(4):\n    kept.append(np.argmax(scores[i][:, classes[i]], 1))"
    ),
    "every hundredth batch": "if step % 100 == 0:\n    kept.append(out.cpu().numpy().argmax(1))",
    "of the loader's batch": "kept.append(targets[step].cpu().numpy().argmax(1))",
    "of what another function may read": "global scores\nscores = out.cpu().numpy()\nkept.append(scores.argmax(1))",
}


@pytest.mark.parametrize("body", FOUND.values(), ids=FOUND)
def test_scores_of_which_only_the_argmax_is_used_are_copied_for_nothing(body: str) -> None:
    code = evaluation(body, "" if "global" in body else "kept = []", "return kept")
    [found] = findings(code, "SYNC03")
    assert (found.line, "Take it on the device" in found.message) == (line_of(code, "cpu()"), True)


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT)
def test_scores_that_the_host_needs_and_places_that_the_device_finds_are_silent(body: str) -> None:
    assert findings(evaluation(body, "" if "global" in body else "kept = []", "return kept"), "SYNC03") == []


SCRIPT = """
import numpy as np
import torch
from data import loader

net = torch.nn.Linear(4, 3).cuda()
kept = []
with torch.no_grad():
    for x, y in loader:
        scores = net(x.cuda()).cpu().numpy()
        kept.append(np.argmax(scores, axis=1))
print(kept)
{more}
"""


@pytest.mark.parametrize(
    ("more", "count"), [("", 1), ("print(scores)", 0), ("def show():\n    print(scores)", 0), ("scores = 3", 1)]
)
def test_scores_of_a_script(more: str, count: int) -> None:
    assert len(findings(SCRIPT.format(more=more), "SYNC03")) == count
