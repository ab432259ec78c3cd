"""SYNC01: a meter of the project is given the tensor, and what it tells is the same."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.rules.sync.programs import TORCH_ONLY, result_of, training
from tests.support import findings, fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability
from torchlint.semantics.project import Project
from torchlint.source import Source

METER = '''
class AverageMeter(object):
    """Computes and stores the average and current value"""

    def __init__(self, name="loss", fmt=":.4f"):
        self.name = name
        self.fmt = fmt
        self.reset()

    def reset(self):
        self.val = self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        """Of n values val is the mean."""
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count if self.count else 0

    def mean(self):
        if self.count == 0:
            return 0.0
        return self.sum / self.count

    @property
    def total(self):
        return self.sum

    def synchronize(self):
        self.sum = float(torch.tensor(self.sum))

    def tell(self):
        print(self.avg)

    def summary(self):
        return f"{self.name}: {self.avg:.3f}"

    def __str__(self):
        text = "{name} {val" + self.fmt + "} ({avg" + self.fmt + "})"
        return text.format(**self.__dict__)


class ProgressMeter:
    def __init__(self, batches, meters, prefix=""):
        self.batches = batches
        self.meters = meters
        self.prefix = prefix

    def display(self, batch):
        entries = [self.prefix + f"{batch} of {self.batches}"]
        entries += [str(meter) for meter in self.meters]
        print("; ".join(entries))

    def display_summary(self):
        print([meter.summary() for meter in self.meters])


class Keeper(ProgressMeter):
    pass


class Taker:
    def __init__(self, meters):
        self.meters = meters

    def display(self, batch):
        print([meter.avg for meter in self.meters])


'''
HEAD = TORCH_ONLY + METER.lstrip()
UPDATE = "losses.update(loss.item(), x.size(0))"
BEGIN = "losses = AverageMeter()\nkept = []\n"

KEPT = {
    "a mean": (UPDATE, "", "return losses.avg, losses.sum, losses.val, losses.count"),
    "one value each": ("losses.update(loss.item())", "", "return losses.avg"),
    "by name": ("losses.update(n=len(x), val=float(loss))", "", "return losses.avg"),
    "a number of a copy": ("losses.update(loss.detach().cpu().item(), len(x))", "", "return losses.avg"),
    "a method that computes": (UPDATE, "", "return losses.mean(), losses.total"),
    "texts": (
        UPDATE,
        "",
        "return f'{losses.avg:.3f} {losses.avg}', '%.3f %5.1e' % (losses.avg, losses.sum), str(losses)",
    ),
    "a text with names": (
        f"{UPDATE}\nif step % 2 == 0:\n"
        "    kept.append('{loss.val:.4f} ({loss.avg}) {i}'.format(i=step, loss=losses))",
        "",
        "return kept",
    ),
    "a comparison": (UPDATE, "best = 1.0", "best = min(best, losses.avg)\nreturn best, losses.avg < 2"),
    "reset at intervals": (
        f"{UPDATE}\nif step % 2 == 1:\n    kept.append(losses.avg)\n    losses.reset()",
        "",
        "return kept, losses.count",
    ),
    "a display": (
        f"{UPDATE}\nif step % 2 == 0:\n    progress.display(step)",
        "progress = ProgressMeter(len(loader), [losses], prefix='train')",
        "progress.display_summary()\nreturn losses.avg",
    ),
    "two meters": (
        f"{UPDATE}\nsquares.update((loss * loss).item(), len(x))",
        "squares = AverageMeter()",
        "return losses.avg, squares.avg",
    ),
}


@pytest.mark.parametrize(("body", "begin", "end"), KEPT.values(), ids=KEPT.keys())
@pytest.mark.parametrize("batches", [1, 4])
def test_a_meter_tells_the_same_of_tensors(body: str, begin: str, end: str, batches: int) -> None:
    code = training(body, BEGIN + begin, end, HEAD)
    new = fixed(code, "SYNC01")
    assert ".item()" not in new[new.index("def train") :]
    assert "float(loss)" not in new
    assert ".double()" in new
    assert _told(code, batches) == _told(new, batches)


def _told(code: str, batches: int) -> tuple[str, str]:
    """What the training returns, and what it prints."""
    with redirect_stdout(StringIO()) as printed:
        result = result_of(code, "train", batches)
    return repr(result), printed.getvalue()


def test_what_changes_are_the_updates_and_the_reads_that_are_no_texts() -> None:
    code = training(
        f"{UPDATE}\nif step % 50 == 0:\n    print(f'{{losses.val:.3f}} of {{losses.count}}', losses)",
        "losses = AverageMeter()",
        "return losses.avg",
        HEAD,
    )
    new = fixed(code, "SYNC01")
    assert new == code.replace("loss.item()", "loss.detach().double()").replace(
        "return losses.avg", "return float(losses.avg)"
    )


def test_the_fix_is_unsafe_and_says_what_the_meter_holds() -> None:
    [finding] = findings(training(UPDATE, BEGIN, "return losses.avg", HEAD), "SYNC01")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert "the meter holds a tensor" in finding.fix.why


LEFT = {
    "read in each step": (f"{UPDATE}\nkept.append(losses.avg)", "", "return losses.avg"),
    "shown in each step": (f"{UPDATE}\nkept.append(str(losses))", "", "return losses.avg"),
    "displayed in each step": (
        f"{UPDATE}\nprogress.display(step)",
        "progress = ProgressMeter(len(loader), [losses])",
        "return losses.avg",
    ),
    "given to others": (UPDATE, "", "return losses"),
    "in a list": (UPDATE, "meters = [losses]", "return losses.avg"),
    "a display that reads more than texts": (UPDATE, "progress = Taker([losses])", "return losses.avg"),
    "a display with a base": (UPDATE, "progress = Keeper(len(loader), [losses])", "return losses.avg"),
    "a method that does more": (UPDATE, "", "losses.synchronize()\nreturn losses.avg"),
    "a method that prints": (UPDATE, "", "losses.tell()\nreturn losses.avg"),
    "all of its attributes": (UPDATE, "", "return losses.__dict__"),
    "set from outside": (UPDATE, "losses.sum = 3", "return losses.avg"),
    "a tensor for a weight": ("losses.update(loss.item(), y.sum())", "", "return losses.avg"),
    "another half that stays": (f"{UPDATE}\nlosses.update(model(x).item())", "", "return losses.avg"),
    "repr in a text": (UPDATE, "", "return f'{losses.avg!r}', '{m.avg!r}'.format(m=losses)"),
    "two classes": (UPDATE, "if loader:\n    losses = Taker([])", "return losses.avg"),
    "a text that has the expression": (UPDATE, "", "return f'{losses.avg=}'"),
    "partly in inference mode": (
        UPDATE,
        "",
        "with torch.inference_mode():\n    losses.update(1.0)\nreturn losses.avg",
    ),
    "caught": (f"try:\n    {UPDATE}\nexcept ValueError:\n    pass", "", "return losses.avg"),
}


@pytest.mark.parametrize(("body", "begin", "end"), LEFT.values(), ids=LEFT.keys())
def test_a_number_for_a_meter_stays_one(body: str, begin: str, end: str) -> None:
    code = training(body, BEGIN + begin, end, HEAD)
    assert fixed(code, "SYNC01") == code


OTHER_METERS = {
    "a list of values": ("self.sum += val * n", "self.values.append(val)"),
    "a comparison": ("self.val = val", "self.val = max(self.val, val)"),
    "a check": ("self.val = val", "if val == val:\n            self.val = val"),
    "a divisor": ("self.val = val", "self.val = 1 / val"),
    "one tensor with two names": ("self.val = val", "self.val = val\n        self.avg = self.sum"),
    "added to what it was given": ("self.val = val", "self.sum = val"),
    "a class with a base": ("AverageMeter(object)", "AverageMeter(ProgressMeter)"),
    "attributes that are set in its own way": (
        "    def mean(self)",
        "    def __setattr__(self, name, value):\n        self.__dict__[name] = float(value)\n\n    def mean(self)",
    ),
    "a format of its own": (
        "    def tell(self)",
        "    def __format__(self, text):\n        return repr(self.avg)\n\n    def tell(self)",
    ),
    "a text of the number itself": ('"{name} {val"', '"{name} {val!r"'),
}


@pytest.mark.parametrize(("old", "new"), OTHER_METERS.values(), ids=OTHER_METERS.keys())
def test_a_class_that_does_more_than_arithmetic_gets_numbers(old: str, new: str) -> None:
    end = "return f'{losses}'" if "text" in new or "{name}" in old else "return losses.avg"
    code = training(UPDATE, BEGIN, end, HEAD.replace(old, new, 1))
    assert fixed(code, "SYNC01") == code


def test_no_text_is_made_of_what_may_have_a_dimension() -> None:
    code = training(UPDATE, BEGIN, "return str(losses), losses.avg", HEAD)
    code = code.replace("criterion = nn.CrossEntropyLoss()", "criterion = model.criterion")
    assert fixed(code, "SYNC01") == code
    alone = code.replace("str(losses), losses.avg", "f'{losses.avg:.3f}', losses.avg")
    assert "return f'{float(losses.avg):.3f}', float(losses.avg)" in fixed(alone, "SYNC01")


def test_a_meter_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "meters.py").write_text("import torch\n" + METER)
    code = training(UPDATE, BEGIN, "return losses.avg", TORCH_ONLY + "from meters import AverageMeter\n\n\n")
    path = tmp_path / "train.py"
    path.write_text(code)
    [finding] = lint(Source.read(path), Settings.selecting("SYNC01"), project=Project())
    assert finding.fix is not None
    assert ".double()" in {edit.text[-9:] for edit in finding.fix.edits}
