"""TRAIN04: networks with dropout or batch norm are evaluated in training mode, or trained in evaluation mode."""

from __future__ import annotations

import pytest

from tests.rules.train.evaluated_networks import LOOK_ALIKES, MISSED, SETUP, VARIANTS, WAYS
from tests.rules.train.switched_networks import KEPT
from tests.support import findings, fixed, marked


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_finds(code: str) -> None:
    assert [finding.line for finding in findings(SETUP + code, "TRAIN04")] == marked(SETUP + code, "# found")


@pytest.mark.parametrize("code", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_stays_silent(code: str) -> None:
    assert findings(SETUP + code, "TRAIN04") == []


@pytest.mark.parametrize("code", MISSED.values(), ids=MISSED.keys())
def test_finds_evaluations_that_are_reached_in_training_mode(code: str) -> None:
    code = SETUP + WAYS + code
    (finding,) = findings(code, "TRAIN04")
    assert code.splitlines()[finding.line - 1] == "        for x, y in batches:"
    assert findings(fixed(code, "TRAIN04"), "TRAIN04") == []


@pytest.mark.parametrize("code", KEPT.values(), ids=KEPT.keys())
def test_stays_silent_where_the_mode_may_have_been_switched_on_the_way(code: str) -> None:
    assert findings(SETUP + WAYS + code, "TRAIN04") == []


@pytest.mark.parametrize("names", [("alexnet", "vgg16", "resnet18"), ("resnet18", "resnet34", "resnet50", "vgg16_bn")])
def test_names_the_first_of_several_networks_that_one_may_be(names: tuple[str, ...]) -> None:
    choices = "".join(f"if arch == {name!r}:\n    chosen = torchvision.models.{name}()\n" for name in names)
    code = f"import torchvision\n{SETUP}arch = input()\n{choices}"
    code += "for x, y in test_loader:\n    with torch.no_grad():\n        correct += (chosen(x).argmax(1) == y).sum()\n"
    (finding,) = findings(code, "TRAIN04")
    assert f"`{names[0]}`" in finding.message


LEFT_BEHIND = """\
net.train()
for epoch in range(3):
    hidden = torch.zeros(2, 4)
    for i, (x, y) in enumerate(train_loader):
        if i == 0:
            first = (x, y)
        opt.zero_grad()
        out = net(x + hidden)
        F.cross_entropy(out, y).backward()
        opt.step()
    {given}
    with torch.no_grad():
        print((net({read}).argmax(1) == y).float().mean())

def check(net):
    net.eval()
"""


@pytest.mark.parametrize(
    ("given", "read", "count"),
    [
        ("x, y = first", "x.clone()", 0),
        ("x = first[0]", "x", 0),
        ("x, y = test_loader[0]", "x", 1),
        ("x, y = next(iter(test_loader))", "x", 1),
    ],
)
def test_a_batch_that_training_has_left_behind_is_no_evaluation(given: str, read: str, count: int) -> None:
    assert len(findings(SETUP + LEFT_BEHIND.format(given=given, read=read), "TRAIN04")) == count


DETECTION = """\
import torch, torchvision

net = {network}
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    net.train()
    for images, targets in train_loader:
        opt.zero_grad()
        sum(net(images, targets).values()).backward()
        opt.step()
    total = 0.0
    with torch.no_grad():
        for images, targets in valid_loader:
            losses = net(images{targets})
            total += {read}
    net.eval()
    with torch.no_grad():
        for images, targets in valid_loader:
            print(net(images))
"""


@pytest.mark.parametrize(
    ("network", "targets", "read", "count"),
    [
        ("torchvision.models.detection.MaskRCNN(backbone, 21)", ", targets", "float(sum(losses))", 0),
        ("torchvision.models.detection.MaskRCNN(backbone, 21)", "", "float(sum(losses))", 1),
        ("make_network()", ", targets", "float(sum(losses.values()))", 0),
        ("make_network()", "", "float(losses.mean())", 1),
    ],
)
def test_a_detector_gives_its_losses_in_training_mode_only(network: str, targets: str, read: str, count: int) -> None:
    code = DETECTION.format(network=network, targets=targets, read=read)
    assert len(findings(code, "TRAIN04")) == count
