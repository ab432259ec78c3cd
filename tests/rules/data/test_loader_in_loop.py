"""DATA04: a data loader or its iterator is made again in every iteration of a loop."""

from __future__ import annotations

import pytest
import torch

from tests.rules.data.test_non_persistent_workers import HEADER, STEPS, indented
from tests.support import findings, fixed, marked

VARIANTS = {
    "a loader for each epoch": "for epoch in range(2):\n"
    "    loader = DataLoader(images, 4, num_workers=1, persistent_workers=True)  # found\n" + indented(STEPS),
    "a loader for each call of the loop's own": "size = 4\nfor epoch in range(2):\n"
    "    loader = DataLoader(images, batch_size=size, num_workers=nw, persistent_workers=nw > 0)  # found\n"
    + indented(STEPS),
    "one batch of a new iterator": """\
loader = DataLoader(images, 4, shuffle=True)
for step in range(3):
    x, y = next(iter(loader))  # found
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
    optimizer.step()
""",
}
KEPT = "num_workers=1, persistent_workers=True"
LOOK_ALIKES = {
    "a loader without workers": "for epoch in range(2):\n    loader = DataLoader(images, 4)\n" + indented(STEPS),
    "workers that would be started again anyway": "for epoch in range(2):\n"
    "    loader = DataLoader(images, 4, num_workers=1)\n" + indented(STEPS),
    "one loader": "loader = DataLoader(images, 4)\nfor epoch in range(2):\n" + indented(STEPS),
    "folds": f"for fold in [images, images]:\n    loader = DataLoader(fold, 4, {KEPT})\n    for epoch in range(2):\n"
    + indented(indented(STEPS)),
    "a batch size that grows": f"for epoch in range(2):\n    loader = DataLoader(images, 4 * (epoch + 1), {KEPT})\n"
    + indented(STEPS),
    "a subset for each epoch": "for epoch in range(2):\n    part = torch.utils.data.Subset(images, range(epoch, 8))\n"
    f"    loader = DataLoader(part, 4, {KEPT})\n" + indented(STEPS),
    "a sampler for each epoch": "for epoch in range(2):\n"
    f"    loader = DataLoader(images, 4, sampler=torch.utils.data.RandomSampler(images), {KEPT})\n" + indented(STEPS),
    "a dataset that is changed": "for epoch in range(2):\n    images.tensors = images.tensors[::-1]\n"
    f"    loader = DataLoader(images, 4, {KEPT})\n" + indented(STEPS),
    "the first batch once": "loader = DataLoader(images, 4)\nx, y = next(iter(loader))\nprint(x.to(device))\n",
    "one batch of each loader": "for loader in [DataLoader(images, 4), DataLoader(images, 2)]:\n"
    "    x, y = next(iter(loader))\n    model(x.to(device)).sum().backward()\n    optimizer.step()\n",
    "a batch to show once an epoch": "loader = DataLoader(images, 4)\nfor epoch in range(2):\n"
    + indented(STEPS)
    + "    print(model(next(iter(loader))[0].to(device)))\n",
}


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_finds(code: str) -> None:
    assert [finding.line for finding in findings(HEADER + code, "DATA04")] == marked(HEADER + code, "# found")


@pytest.mark.parametrize("code", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_stays_silent(code: str) -> None:
    assert findings(HEADER + code, "DATA04") == []


@pytest.mark.parametrize("name", ["a loader for each epoch", "a loader for each call of the loop's own"])
def test_fixed_code_builds_one_loader_and_trains_on_the_same_batches(name: str) -> None:
    weights = []
    after = fixed(HEADER + VARIANTS[name], "DATA04")
    assert findings(after, "DATA04") == []
    assert after.index("loader = ") < after.index("for epoch")
    for code in (HEADER + VARIANTS[name], after):
        names: dict[str, torch.nn.Linear] = {}
        exec("import torch; torch.manual_seed(0)\n" + code, names)
        weights.append(names["model"].weight)
    assert torch.equal(*weights)


def test_an_iterator_is_left_to_its_author() -> None:
    code = HEADER + VARIANTS["one batch of a new iterator"]
    assert fixed(code, "DATA04") == code
