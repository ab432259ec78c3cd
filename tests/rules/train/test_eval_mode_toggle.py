"""TRAIN04: networks with dropout or batch norm are evaluated in training mode, or trained in evaluation mode."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.support import findings, fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability
from torchlint.semantics.project import Project
from torchlint.source import Source

SETUP = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
train_loader = [(torch.randn(2, 4), torch.tensor([0, 2])) for _ in range(3)]
test_loader = [(torch.randn(2, 4), torch.tensor([1, 2])) for _ in range(2)]

def train_epoch():
    for x, y in train_loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()

"""

NETWORKS = """\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))

    def forward(self, x):
        return x + self.body(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(F.dropout(x, 0.5, training=self.training))

"""
OPTIONAL = """\
class Layer(nn.Module):
    def __init__(self, size, norm="instance", drop=False):
        super().__init__()
        self.linear = nn.Linear(4, size)
        if norm == "instance":
            self.norm = nn.InstanceNorm1d(size)
        elif norm == "batch":
            self.norm = nn.BatchNorm1d(size)
        self.drop = nn.Dropout() if drop else nn.Identity()

    def forward(self, x):
        return self.drop(self.norm(self.linear(x)))

class Pair(nn.Module):
    def __init__(self, norm="instance"):
        super().__init__()
        self.layers = nn.Sequential(Layer(4, norm), nn.ReLU(), Layer(3, norm=norm))

    def forward(self, x):
        return self.layers(x)

"""
LOOP = """\
for x, y in test_loader:  # found
    print((net(x).argmax(1) == y).sum().item())
"""

VARIANTS = {
    "a loop over test data": LOOP,
    "a function that evaluates": """\
def evaluate(model, batches):
    hits = 0
    with torch.no_grad():
        for x, y in batches:  # found
            hits += (model(x).argmax(1) == y).sum().item()
    return hits

for epoch in range(2):
    train_epoch()
    print(evaluate(net, test_loader))
""",
    "batch norm in a block of a class": NETWORKS + "net = Net()\n" + LOOP,
    "functional dropout that asks for the mode": NETWORKS + "net = Functional()\n" + LOOP,
    "a layer that an option asks for": OPTIONAL + "net = Layer(3, drop=True)\n" + LOOP,
    "a layer that an option of the class around it asks for": OPTIONAL + "net = Pair('batch')\n" + LOOP,
    "a recurrent network with dropout between its layers": "net = nn.LSTM(4, 3, 2, dropout=0.5)\n"
    + LOOP.replace("net(x)", "net(x)[0]"),
    "a network of torchvision": "import torchvision\n\nnet = torchvision.models.resnet18(num_classes=3)\n" + LOOP,
    "a wrapped network": "net = nn.DataParallel(net)\n" + LOOP,
    "one function for both phases": """\
class Trainer:
    def __init__(self, model):
        self.model = model

    def batch(self, x, y, train):
        with torch.set_grad_enabled(train):
            loss = F.cross_entropy(self.model(x), y)
        if train:
            opt.zero_grad()
            loss.backward()
            opt.step()
        return loss.item()

    def epoch(self, batches, train=True):
        for x, y in batches:
            print(self.batch(x, y, train))

    def fit(self):
        for _ in range(2):
            self.epoch(train_loader)
            self.epoch(test_loader, train=False)  # found

Trainer(net).fit()
""",
    "evaluation mode that is never left": """\
for epoch in range(3):
    train_epoch()
    net.eval()  # found
    for x, y in test_loader:
        print((net(x).argmax(1) == y).sum().item())
""",
    "training mode before the epochs alone": """\
net.train()
for epoch in range(3):
    for x, y in train_loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    if epoch % 2 == 0:
        net.eval()  # found
        with torch.no_grad():
            for x, y in test_loader:
                print((net(x).argmax(1) == y).sum().item())
""",
    "an evaluation in the midst of an epoch": """\
class Trainer:
    def __init__(self, model):
        self.model = model

    def fit(self):
        for epoch in range(2):
            self.model.train()
            for i, (x, y) in enumerate(train_loader):
                opt.zero_grad()
                F.cross_entropy(self.model(x), y).backward()
                opt.step()
                if i % 2 == 1:
                    self.validate()

    @torch.no_grad()
    def validate(self):
        self.model.eval()  # found
        print(sum((self.model(x).argmax(1) == y).sum().item() for x, y in test_loader))

Trainer(net).fit()
""",
    "evaluation mode that a function does not leave": """\
def evaluate(batches):
    net.eval()  # found
    for x, y in batches:
        print((net(x).argmax(1) == y).sum().item())

for epoch in range(3):
    train_epoch()
    evaluate(test_loader)
""",
}

LOOK_ALIKES = {
    "layers that the default of an option leaves out": OPTIONAL + "net = Layer(3)\n" + LOOP,
    "layers that the options of the class around them leave out": OPTIONAL + "net = Pair().to('cpu')\n" + LOOP,
    "nothing differs between the modes": "net = nn.Linear(4, 3)\n" + LOOP,
    "dropout of nothing": "net = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.0))\n" + LOOP,
    "dropout on a recurrent network of one layer": "net = nn.LSTM(4, 3, dropout=0.5)\n"
    + LOOP.replace("net(x)", "net(x)[0]"),
    "batch norm without statistics": "net = nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False))\n" + LOOP,
    "a network out of sight": "net = torch.hub.load('somewhere', 'net')\n" + LOOP,
    "the features of a network without dropout in them": "import torchvision\n\nvgg = torchvision.models.vgg16()\n"
    "net = nn.Sequential(*list(vgg.children())[0][:22])\n" + LOOP,
    "evaluation mode": "net.eval()\n" + LOOP,
    "training mode is switched off": "net.train(False)\n" + LOOP,
    "the flag is set": "net.training = False\n" + LOOP,
    "somebody switches the mode": "def evaluation(module):\n    return module.eval()\n\nevaluation(net)\n" + LOOP,
    "training data": LOOP.replace("test_loader", "train_loader"),
    "Monte Carlo dropout": """\
def mc_dropout(batches):
    with torch.no_grad():
        for x, y in test_loader:
            print(torch.stack([net(x) for _ in range(10)]).std(0).mean().item())

mc_dropout(test_loader)
""",
    "training mode at each epoch": """\
for epoch in range(3):
    net.train()
    train_epoch()
    net.eval()
    for x, y in test_loader:
        print((net(x).argmax(1) == y).sum().item())
""",
    "evaluation behind the epochs": """\
for epoch in range(3):
    train_epoch()
net.eval()
for x, y in test_loader:
    print((net(x).argmax(1) == y).sum().item())
""",
    "evaluation behind the last epoch": """\
for epoch in range(3):
    train_epoch()
    if epoch == 2:
        net.eval()
        for x, y in test_loader:
            print((net(x).argmax(1) == y).sum().item())
""",
    "evaluation before the program ends": """\
for epoch in range(3):
    train_epoch()
    if epoch > 1:
        net.eval()
        for x, y in test_loader:
            print((net(x).argmax(1) == y).sum().item())
        break
""",
    "evaluation mode from the beginning": """\
net.eval()
for epoch in range(3):
    train_epoch()
    net.eval()
    for x, y in test_loader:
        print((net(x).argmax(1) == y).sum().item())
""",
    "training mode behind the evaluation": """\
net.train()
for epoch in range(3):
    train_epoch()
    net.eval()
    for x, y in test_loader:
        print((net(x).argmax(1) == y).sum().item())
    net.train()
""",
    "another network in evaluation mode": """\
teacher = nn.Sequential(nn.Linear(4, 3), nn.Dropout())
for epoch in range(3):
    train_epoch()
    teacher.eval()
    for x, y in test_loader:
        print((teacher(x).argmax(1) == y).sum().item())
""",
    "a loop that trains": """\
for x, y in test_loader:
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()
""",
}

# On the way: what other networks and other evaluations do counts not.
WAYS = """\
teacher = nn.Sequential(nn.Linear(4, 3), nn.Dropout())

def train_all(model):
    model.train()
    train_epoch()

def evaluate(model, batches):
    hits = 0
    with torch.no_grad():
        for x, y in batches:
            hits += (model(x).argmax(1) == y).sum().item()
    return hits

"""
MISSED = {
    "the teacher is in evaluation mode": "teacher.eval()\ntrain_all(net)\nprint(evaluate(net, test_loader))\n",
    "eval() comes behind": "train_all(net)\nprint(evaluate(net, test_loader))\nnet.eval()\n",
    "train() comes between": "net.eval()\ntrain_all(net)\nprint(evaluate(net, test_loader))\n",
    "layers are out of sight, but training mode was asked for": """\
net = torch.hub.hub_model('net')
for epoch in range(3):
    train_all(net)
    print(evaluate(net, test_loader))
""",
}
# A network around another one: what counts is the mode of the inner one.
AROUND = """\
class Sampler(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)

def sample(sampler, inner, batches=test_loader):
{}    with torch.no_grad():
        for x, y in batches:
            print(sampler(x).argmax(1))
{}
"""
MISSED["the inner network is in training mode"] = (
    AROUND.format("", "") + "net.eval()\ntrain_all(net)\ndrawer = Sampler(net)\nsample(drawer, net)\n"
)
KEPT = {
    "the inner network is switched beside the outer": AROUND.format("    inner.eval()\n", "    inner.train()\n")
    + "drawer = Sampler(net)\ntrain_all(net)\nsample(drawer, net)\n",
    "the inner network is switched before it is wrapped": AROUND.format("", "")
    + "train_all(net)\nnet.eval()\nteacher.eval()\ndrawer = Sampler(net).to('cpu')\nsample(drawer, net)\n",
    "the caller switches": "train_all(net)\nnet.eval()\nprint(evaluate(net, test_loader))\n",
    "the caller's caller switches": """\
def report(model):
    print(evaluate(model, test_loader))

train_all(net)
net.eval()
report(net)
""",
    "a function called before switches": """\
def prepare(model):
    model.eval()

train_all(net)
prepare(net)
print(evaluate(net, test_loader))
""",
    "under another name": "train_all(net)\nsame = net\nsame.eval()\nprint(evaluate(net, test_loader))\n",
    "all networks in a loop": """\
train_all(net)
for each in (net, teacher):
    each.eval()
print(evaluate(net, test_loader))
""",
    "the code that may switch is out of sight": """\
from helpers import eval_all

train_all(net)
eval_all(net)
print(evaluate(net, test_loader))
""",
    "one way leads past eval()": """\
import sys

train_all(net)
if len(sys.argv) > 1:
    net.eval()
print(evaluate(net, test_loader))
""",
    "all layers are in sight and none minds": """\
net = nn.Linear(4, 3)
train_all(net)
print(evaluate(net, test_loader))
teacher.eval()
""",
}


def marked(code: str) -> list[int]:
    return [number for number, line in enumerate(code.splitlines(), 1) if "# found" in line]


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_finds(code: str) -> None:
    assert [finding.line for finding in findings(SETUP + code, "TRAIN04")] == marked(SETUP + code)


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


def test_training_mode_that_is_switched_back_on_is_not_switched_twice() -> None:
    code = (
        SETUP
        + """\
teacher = nn.Dropout()
teacher.eval()
for epoch in range(2):
    net.train()
    train_epoch()
    with torch.no_grad():
        shown = net(test_loader[0][0])
    net.train()
    print(shown)
"""
    )
    assert fixed(code, "TRAIN04") == code.replace("        shown =", "        net.eval()\n        shown =")


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_fixed_code_has_no_finding(code: str) -> None:
    after = fixed(SETUP + code, "TRAIN04")
    assert after != SETUP + code
    assert findings(after, "TRAIN04") == []


RECORDED = """\
modes = []
net.register_forward_hook(lambda module, args, out: modes.append((module.training, args[0] is probe)))
probe = test_loader[0][0]
"""


REPAIRED = [
    "a loop over test data",
    "a function that evaluates",
    "one function for both phases",
    "evaluation mode that is never left",
    "evaluation mode that a function does not leave",
]


@pytest.mark.parametrize("name", REPAIRED)
def test_the_fix_evaluates_in_evaluation_mode_and_trains_in_training_mode(name: str) -> None:
    names: dict[str, object] = {}
    exec(fixed(SETUP + RECORDED + VARIANTS[name], "TRAIN04"), names)
    modes = names["modes"]
    assert isinstance(modes, list)
    assert {training for training, is_test in modes if is_test} == {False}
    trained = [training for training, is_test in modes if not is_test][:3]
    assert not trained or name == "a loop over test data" or set(trained) == {True}


def test_the_fix_makes_results_repeatable() -> None:
    code = SETUP + "result = []\nfor x, y in test_loader:\n    result.append(net(x))\n"
    names: list[dict[str, torch.Tensor]] = [{}, {}]
    for seed, scope in enumerate(names):
        exec(fixed(code, "TRAIN04").replace("result = []", f"torch.manual_seed({seed})\nresult = []"), scope)
    assert all(map(torch.equal, names[0]["result"], names[1]["result"]))


def test_the_switch_above_the_epochs_moves_into_them() -> None:
    code = SETUP + VARIANTS["evaluation mode that is never left"]
    assert fixed(code.replace("for epoch in", "net.train()\nfor epoch in", 1), "TRAIN04") == fixed(code, "TRAIN04")


def test_is_never_safe() -> None:
    (finding,) = findings(SETUP + LOOP, "TRAIN04")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


def test_does_not_return_from_evaluation_past_the_switch() -> None:
    code = (
        SETUP
        + """\
def hits():
    for x, y in test_loader:
        return (net(x).argmax(1) == y).sum().item()

print(hits())
"""
    )
    assert fixed(code, "TRAIN04") == code


PROJECT = {
    "net.py": """\
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 3), nn.Dropout())

    def forward(self, x):
        return self.body(x)
""",
    "train.py": """\
import torch
from net import Net
from evaluation import accuracy

def main(train_loader, test_loader):
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in train_loader:
            opt.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
        print(accuracy(net, test_loader))
""",
    "evaluation.py": """\
import torch

def accuracy(model, test_loader):
    hits = 0
    with torch.no_grad():
        for x, y in test_loader:
            hits += (model(x).argmax(1) == y).sum().item()
    return hits
""",
}


def lines_of(folder: Path, files: dict[str, str], name: str) -> list[int]:
    (folder / "pyproject.toml").touch()
    for file, text in files.items():
        (folder / file).write_text(text)
    source = Source.read(folder / name)
    return [finding.line for finding in lint(source, Settings.selecting("TRAIN04"), strict=True, project=Project())]


def test_finds_it_across_files(tmp_path: Path) -> None:
    assert lines_of(tmp_path, PROJECT, "evaluation.py") == [6]


@pytest.mark.parametrize("line", ["net.eval()", "net.train(False)"])
def test_another_file_may_switch_the_mode(tmp_path: Path, line: str) -> None:
    caller = PROJECT["train.py"].replace("        print(", f"        {line}\n        print(")
    assert lines_of(tmp_path, {**PROJECT, "train.py": caller}, "evaluation.py") == []


def test_training_mode_of_another_file(tmp_path: Path) -> None:
    caller = (
        PROJECT["train.py"].replace("        for x", "        net.train()\n        for x") + "        opt.x.eval()\n"
    )
    assert lines_of(tmp_path, {**PROJECT, "train.py": caller}, "evaluation.py") == [6]


def test_another_file_may_return_to_training(tmp_path: Path) -> None:
    evaluation = PROJECT["evaluation.py"].replace("    hits = 0", "    model.eval()\n    hits = 0")
    caller = PROJECT["train.py"].replace("        for x", "        net.train()\n        for x")
    assert lines_of(tmp_path, {**PROJECT, "evaluation.py": evaluation, "train.py": caller}, "evaluation.py") == []
    assert lines_of(tmp_path, {**PROJECT, "evaluation.py": evaluation, "train.py": caller}, "train.py") == []


def test_of_two_networks_that_run_together_both_are_switched_or_none() -> None:
    both = SETUP + (
        "head = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))\n\n"
        "@torch.no_grad()\n"
        "def evaluate(x):\n"
        "    h = net(x)\n"
        "    for _ in range(3):\n"
        "        h = head(h)\n"
        "    return h\n\n"
        "for epoch in range(3):\n"
        "    net.train()\n"
        "    head.train()\n"
        "    train_epoch()\n"
        "    print(evaluate(torch.ones(1, 4)))\n"
    )
    found = lint(Source.from_text(both), Settings.selecting("TRAIN04"), strict=True, project=Project())
    assert len(found) == 2
    assert all(finding.fix is None for finding in found)
    alone = lint(
        Source.from_text(both.replace("    for _ in range(3):\n        h = head(h)\n", "")),
        Settings.selecting("TRAIN04"),
        strict=True,
        project=Project(),
    )
    assert [finding.fix is not None for finding in alone] == [True]


def test_a_call_in_a_loop_over_steps_is_left_to_the_reader() -> None:
    text = SETUP + (
        "@torch.no_grad()\n"
        "def generate(x, length):\n"
        "    for step in range(length):\n"
        "        x = torch.cat((x, net(x)), 1)[:, -4:]\n"
        "    return x\n\n"
        "for epoch in range(3):\n"
        "    net.train()\n"
        "    train_epoch()\n"
        "    print(generate(torch.ones(1, 4), 5))\n"
    )
    (finding,) = lint(Source.from_text(text), Settings.selecting("TRAIN04"), strict=True, project=Project())
    assert finding.fix is None


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


FEATURES = """\
def features():
    trained, tested = [], []
    for x, y in train_loader:
        trained.append(net(x).detach())
    {between}
    {header}
        for x, y in test_loader:
            tested.append(net(x).detach())
    return trained, tested
"""


def test_the_passes_that_belong_together_run_in_one_mode() -> None:
    code = FEATURES.format(between="print(len(trained))", header="with torch.no_grad():") + "made = features()\n"
    names: dict[str, list[tuple[bool, bool]]] = {}
    exec(fixed(SETUP + RECORDED + code, "TRAIN04"), names)
    assert [training for training, _ in names["modes"]] == [False] * 5


def test_one_of_two_passes_that_belong_together_is_not_switched_alone() -> None:
    code = SETUP + FEATURES.format(between="print(len(trained))", header="if len(test_loader):")
    assert len(findings(code, "TRAIN04")) == 1
    assert fixed(code, "TRAIN04") == code


@pytest.mark.parametrize("between", ["train_epoch()", "net.train()", "opt.step()"])
def test_what_comes_before_training_is_another_pass(between: str) -> None:
    code = SETUP + FEATURES.format(between=between, header="with torch.no_grad():")
    after = fixed(code, "TRAIN04")
    assert after != code
    assert after.index("trained.append") < after.index("net.eval()")


def test_a_pass_that_nobody_uses_lets_batch_norm_learn() -> None:
    code = SETUP + FEATURES.format(between="pass", header="with torch.no_grad():")
    after = fixed(code.replace("trained.append(net(x).detach())", "net(x)"), "TRAIN04")
    assert after.index("net(x)\n") < after.index("net.eval()")
