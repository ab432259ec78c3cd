"""MEM03: a helper or a meter keeps the graph that a call hands over."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.rules.mem.accumulated_tensors import SETUP as TRAINING
from tests.support import findings, fixed, marked, source_of
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project

SETUP = "from collections import defaultdict, deque\n\n" + TRAINING

METER = """\
class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.last, self.sum, self.count = 0, 0.0, 0

    def update(self, value, n=1):
        self.last = value
        self.sum += value * n
        self.count += n

    @property
    def mean(self):
        return self.sum / self.count

"""

STEP = """\
for step, (x, y) in enumerate(loader):
    opt.zero_grad()
    loss = crit(model(x), y)
    loss.backward()
    opt.step()
"""


def found(code: str) -> list[int]:
    """Lines of the findings of the family, counted behind SETUP."""
    return [f.line - SETUP.count("\n") for f in findings(SETUP + code, "MEM01", "MEM02", "MEM03") if f.code == "MEM03"]


VARIANTS = {
    "a meter": METER + "meter = Meter()\n" + STEP + "    meter.update(loss, x.size(0))  # here\nprint(meter.mean)\n",
    "a running mean": """\
class Mean:
    def __init__(self):
        self.count, self.value = 0, 0.0

    def add(self, value):
        self.value = (self.value * self.count + value) / (self.count + 1)
        self.count += 1

mean = Mean()
"""
    + STEP
    + "    mean.add(loss)  # here\nprint(float(mean.value))\n",
    "a moving average with a weight and the rest of it": """\
class Mean:
    def __init__(self, weight):
        self.weight, self._value = weight, None

    def add(self, value):
        if self._value is None:
            self._value = value
        else:
            self._value = self.weight * self._value + (1 - self.weight) * value

    @property
    def value(self):
        return self._value

mean = Mean(0.9)
"""
    + STEP
    + "    mean.add(loss)  # here\nprint(float(mean.value))\n",
    "a meter of a dict": METER
    + "meters = {'loss': Meter()}\n"
    + STEP
    + "    meters['loss'].update(loss)  # here\nprint(meters['loss'].mean)\n",
    "a meter that a dict makes": METER
    + "meters = defaultdict(Meter)\n"
    + STEP
    + "    meters['loss'].update(loss)  # here\nprint(meters['loss'].mean)\n",
    "meters that get keywords": METER
    + """\
class Logger:
    def __init__(self):
        self.meters = defaultdict(Meter)

    def update(self, **values):
        for name, value in values.items():
            self.meters[name].update(value)

logger = Logger()
"""
    + STEP
    + "    logger.update(loss=loss)  # here\nprint(logger.meters['loss'].mean)\n",
    "a dict of values": """\
class Logger:
    def __init__(self):
        self.history = defaultdict(list)

    def add(self, values):
        for name, value in values.items():
            self.history[name].append(value)

logger = Logger()
"""
    + STEP
    + "    logger.add({'loss': loss})  # here\nprint(len(logger.history['loss']))\n",
    "a window of the last values": """\
class Window:
    def __init__(self):
        self.values = deque(maxlen=20)

    def __call__(self, value):
        self.values.append(value)

window = Window()
"""
    + STEP
    + "    window(loss)  # here\nprint(sum(v.item() for v in window.values))\n",
    "a function that fills a list": "def note(history, value):\n    history.append(value)\n\nlosses = []\n"
    + STEP
    + "    note(losses, loss)  # here\nprint(sum(losses).item())\n",
    "a function that updates a meter": METER
    + "def note(meter, value):\n    meter.update(value)\n\nmeter = Meter()\n"
    + STEP
    + "    note(meter, loss)  # here\nprint(meter.mean)\n",
    "a function that writes a global": "total = 0.0\n\ndef note(value):\n    global total\n"
    + "    total += value.mean()\n\n"
    + STEP
    + "    note(loss)  # here\nprint(float(total))\n",
    "its own method": """\
class Trainer:
    def __init__(self):
        self.total = 0.0

    def log(self, value):
        self.total += value

    def fit(self):
        for x, y in loader:
            opt.zero_grad()
            loss = crit(model(x), y)
            loss.backward()
            opt.step()
            self.log(loss)  # here
        print(self.total)

Trainer().fit()
""",
    "in an evaluation that records": METER
    + """\
meter = Meter()
model.eval()
for x, y in loader:
    meter.update(crit(model(x), y))  # here
print(meter.mean.item())
""",
}

LOOK_ALIKES = {
    "a number": METER + "meter = Meter()\n" + STEP + "    meter.update(loss.item())\nprint(meter.mean)\n",
    "detached": METER + "meter = Meter()\n" + STEP + "    meter.update(loss.detach())\nprint(meter.mean)\n",
    "a meter that reads the number": METER.replace("value * n", "value.item() * n")
    + "meter = Meter()\n"
    + STEP
    + "    meter.update(loss)\nprint(meter.mean)\n",
    "a meter that detaches first": METER.replace(
        "        self.last = value", "        value = value.detach()\n        self.last = value"
    )
    + "meter = Meter()\n"
    + STEP
    + "    meter.update(loss)\nprint(meter.mean)\n",
    "a meter that asks what it is": METER.replace(
        "        self.last = value",
        "        if torch.is_tensor(value):\n            value = value.item()\n        self.last = value",
    )
    + "meter = Meter()\n"
    + STEP
    + "    meter.update(loss)\nprint(meter.mean)\n",
    "two ways to add": METER.replace(
        "        self.sum += value * n",
        "        if isinstance(value, torch.Tensor):\n            self.sum += value.item()\n"
        "        else:\n            self.sum += value",
    )
    + "meter = Meter()\n"
    + STEP
    + "    meter.update(loss)\nprint(meter.mean)\n",
    "a meter under no_grad": METER.replace("    def update", "    @torch.no_grad()\n    def update")
    + "meter = Meter()\n"
    + STEP
    + "    meter.update(loss)\nprint(meter.mean)\n",
    "the last value only": "class Last:\n    def set(self, value):\n        self.value = value\n\nlast = Last()\n"
    + STEP
    + "    last.set(loss)\nprint(last.value)\n",
    "a sum that is sent backward": METER
    + """\
meter = Meter()
for x, y in loader:
    meter.update(crit(model(x), y))
opt.zero_grad()
meter.mean.backward()
opt.step()
""",
    "a list that becomes the loss": """\
def note(terms, value):
    terms.append(value)

for x, y in loader:
    terms = []
    for k in range(2):
        note(terms, crit(model(x), y))
    opt.zero_grad()
    sum(terms).backward()
    opt.step()
""",
    "a meter that is made in every step": METER
    + """\
for x, y in loader:
    meter = Meter()
    opt.zero_grad()
    loss = crit(model(x), y)
    meter.update(loss)
    loss.backward()
    opt.step()
""",
    "what a loss out of sight returns beside the loss": "from losses import Ranking\n\n"
    + METER
    + """\
class Trainer:
    def __init__(self, criterion=Ranking()):
        self.criterion = criterion

    def losses(self, x, y):
        loss, precision = self.criterion(model(x), y)
        return loss, precision

    def fit(self, precisions):
        for x, y in loader:
            loss, precision = self.losses(x, y)
            precisions.update(precision)
            opt.zero_grad()
            loss.backward()
            opt.step()

Trainer().fit(Meter())
""",
    "a meter of a file that is not there": "from meters import Meter\n\nmeter = Meter()\n"
    + STEP
    + "    meter.update(loss)\nprint(meter.mean)\n",
}


# The graph goes back to the caller, or is needed by what keeps the value: detached at the call, this would raise.
NEEDED = {
    "the result is sent backward": (
        METER.replace("        self.count += n", "        self.count += n\n        return value"),
        "    meter.update(loss).backward()\n",
    ),
    "the result becomes the loss": (
        METER.replace("        self.count += n", "        self.count += n\n        return value / n"),
        "    loss = meter.update(loss, 2)\n    loss.backward()\n",
    ),
    "a helper hands the result on": (
        METER.replace("        self.count += n", "        self.count += n\n        return value")
        + "def note(meter, value):\n    return meter.update(value)\n\n",
        "    note(meter, loss).backward()\n",
    ),
    "what keeps it sends it backward": (
        METER.replace("        self.count += n", "        self.count += n\n        value.backward()"),
        "    meter.update(loss)\n",
    ),
}


@pytest.mark.parametrize(("meter", "call"), NEEDED.values(), ids=NEEDED)
def test_a_graph_that_is_needed_is_not_cut_off(meter: str, call: str) -> None:
    code = SETUP + meter + "meter = Meter()\n" + STEP.replace("    loss.backward()\n", call) + "print(meter.mean)\n"
    assert [f for f in findings(code, "MEM03") if f.fix is not None] == []
    names: dict[str, object] = {}
    exec(fixed(code, "MEM01", "MEM02", "MEM03", unsafe=False), names)
    assert all(parameter.grad is not None for parameter in names["model"].parameters())  # type: ignore[attr-defined]


def test_what_is_kept_twice_and_sent_backward_from_one_place_is_not_cut_off() -> None:
    meter = METER.replace("0, 0.0, 0", "[], 0.0, 0").replace("self.last = value", "self.last.append(value)")
    meter = meter.replace("self.count += n", "self.count = len(self.last)")
    passes = "meter = Meter()\nfor x, y in loader:\n    meter.update(crit(model(x), y))\n"
    assert findings(SETUP + meter + passes + "meter.sum.backward()\n", "MEM03") == []
    assert len(findings(SETUP + meter + passes + "print(meter.sum)\n", "MEM03")) == 1


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_finds_once_and_fixes(code: str) -> None:
    assert found(code) == marked(code)
    after = fixed(SETUP + code, "MEM03", unsafe=False)
    assert after != SETUP + code
    assert findings(after, "MEM01", "MEM02", "MEM03") == []
    assert after.replace(".detach()", "") == SETUP + code


@pytest.mark.parametrize("code", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_stays_silent(code: str) -> None:
    assert found(code) == []


def test_same_numbers_and_no_graph() -> None:
    code = SETUP + VARIANTS["a meter"]
    before: dict[str, torch.Tensor] = {}
    after: dict[str, torch.Tensor] = {}
    exec(code, before)
    exec(fixed(code, "MEM03", unsafe=False), after)
    assert before["meter"].sum.grad_fn is not None
    assert after["meter"].sum.grad_fn is None
    assert torch.equal(before["meter"].sum.detach(), after["meter"].sum)
    assert all(map(torch.equal, before["model"].parameters(), after["model"].parameters()))  # type: ignore[attr-defined]


def test_the_facts_in_the_order_of_the_code() -> None:
    (finding,) = findings(SETUP + VARIANTS["a meter"], "MEM03")
    assert "`Meter.update` takes it in" in finding.message


def test_a_meter_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "meters.py").write_text(METER)
    code = SETUP + LOOK_ALIKES["a meter of a file that is not there"]
    source = source_of(code, str(tmp_path / "train.py"))
    (finding,) = lint(source, Settings.selecting("MEM03"), strict=True, project=Project())
    assert finding.line == code[: code.index("meter.update")].count("\n") + 1
    assert "of meters.py" in finding.message


LEARNER = """
import torch
from meters import Meter

class Learner(torch.nn.Module):
    def __init__(self, net, opt):
        super().__init__()
        self.net, self.opt = net, opt

    def {name}(self, loader):
        meter = Meter()
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(self.net(x), y)
            meter.update(loss)
            {last}
        return meter.mean
"""


@pytest.mark.parametrize(
    ("name", "last", "count"), [("learn", "loss.backward()", 1), ("forward", "out = torch.relu(loss)", 0)]
)
def test_a_method_of_a_network_that_trains_looks_into_other_files(
    name: str, last: str, count: int, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "meters.py").write_text(METER)
    source = source_of(LEARNER.format(name=name, last=last), str(tmp_path / "learner.py"))
    assert len(lint(source, Settings.selecting("MEM03"), strict=True, project=Project())) == count


TRACKS = """\
class Mean:
    def __init__(self):
        self.values = []

    def {add}(self, value):
        self.values.append(float(value))
        return self


class Tracks:
    def __init__(self):
        self.tracks = {{}}

    def update(self, values):
        for key, value in values.items():
            if key not in self.tracks:
                self.tracks[key] = self.new()
            self.tracks[key] += value

    def new(self):
        return {made}


tracks = Tracks()
"""


@pytest.mark.parametrize(("add", "made", "count"), [("__iadd__", "Mean()", 0), ("add", "0.0", 1)])
def test_a_meter_in_a_dict_says_itself_what_adding_means(add: str, made: str, count: int) -> None:
    code = TRACKS.format(add=add, made=made) + STEP + "    tracks.update({'loss': loss})\n"
    assert len(found(code)) == count
