"""TIME01: a clock is read while the device is still at work."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.rules.time.timed_programs import LOOK_ALIKES, SETUP, UNSYNCHRONISED
from tests.support import findings, fixed, marked
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Confidence
from torchlint.semantics.project import Project
from torchlint.source import Source


def found(code: str, setup: str = SETUP) -> list[int]:
    """Lines of the findings, counted behind the setup."""
    return [finding.line - setup.count("\n") for finding in findings(setup + code, "TIME01")]


@pytest.mark.parametrize("case", UNSYNCHRONISED)
def test_work_that_is_not_waited_for_is_found(case: str) -> None:
    code = UNSYNCHRONISED[case]
    assert found(code) == marked(code)


@pytest.mark.parametrize("case", LOOK_ALIKES)
def test_look_alikes_are_silent(case: str) -> None:
    assert found(LOOK_ALIKES[case]) == []


def test_a_little_product_behind_a_wait_for_the_pass_is_silent() -> None:
    code = """\
for batch, _ in loader:
    t0 = time.time()
    out = net(batch.to(device))
    rows = out.cpu().numpy()
    turned = out.t() @ out
    print(time.time() - t0)
print(turned.sum().item(), len(rows))
"""
    assert found(code) == []


def test_a_program_that_never_moves_anything_runs_on_the_host() -> None:
    setup = "import time\nimport torch\nfrom torch import nn\nnet = nn.Linear(4, 3)\nx = torch.randn(2, 4)\n"
    assert found(UNSYNCHRONISED["a forward pass"], setup) == []


def test_the_finding_names_the_work_and_the_first_reading() -> None:
    (finding,) = findings(SETUP + UNSYNCHRONISED["two names"], "TIME01")
    assert "`net(x)`" in finding.message
    assert f"line {SETUP.count(chr(10)) + 2}" in finding.message
    assert finding.confidence is Confidence.CERTAIN


def test_an_interval_that_waits_for_a_part_of_its_work_is_less_certain() -> None:
    (finding,) = findings(SETUP + UNSYNCHRONISED["a wait before the work"], "TIME01")
    assert finding.confidence is Confidence.LIKELY


# -- fixes


WAIT = "if torch.cuda.is_available():\n    torch.cuda.synchronize()\n"


def after_fix(code: str) -> str:
    return fixed(SETUP + code, "TIME01").removeprefix(SETUP)


def test_the_fix_waits_before_both_readings() -> None:
    assert after_fix(UNSYNCHRONISED["a forward pass"]) == (
        f"{WAIT}t0 = time.time()\nout = net(x)\n{WAIT}print(time.time() - t0)  # here\n"
    )


def test_the_fix_is_not_a_safe_one() -> None:
    code = SETUP + UNSYNCHRONISED["a forward pass"]
    assert fixed(code, "TIME01", unsafe=False) == code


def test_a_reading_that_follows_a_wait_gets_no_second_one() -> None:
    code = "torch.cuda.synchronize()\nstart = time.time()\nout = net(x)\nprint(time.time() - start)\n"
    assert after_fix(code).count("synchronize") == 2


def test_two_intervals_share_the_wait_between_them() -> None:
    code = "t0 = time.time()\na = net(x)\nt1 = time.time()\nb = net(x)\nt2 = time.time()\nprint(t1 - t0, t2 - t1)\n"
    assert after_fix(code).count(".synchronize()") == 3


def test_the_name_that_the_file_has_for_torch_is_used() -> None:
    code = """\
import time
import torch as th
device = "cuda" if th.cuda.is_available() else "cpu"
net = th.nn.Linear(4, 3).to(device)
start = time.time()
out = net(th.ones(2, 4, device=device))
print(time.time() - start)
"""
    wait = WAIT.replace("torch", "th")
    expected = code.replace("start = ", f"{wait}start = ").replace("print", f"{wait}print")
    assert fixed(code, "TIME01") == expected


TIMED = """\
import time
import torch

def bench(net, x, gpu):
    {move}
    start = time.time()
    out = net(x)
    print(time.time() - start)
    return out
"""


@pytest.mark.parametrize(
    ("move", "condition"),
    [
        pytest.param("if gpu:\n        net, x = net.cuda(), x.cuda()", "gpu", id="a parameter"),
        pytest.param("use = torch.cuda.is_available()\n    x = x.to('cuda')", "use", id="a variable that asks torch"),
        pytest.param("x = x.to('cuda')", "torch.cuda.is_available()", id="nothing"),
        pytest.param("net, x = net.cuda(), x.cuda()", None, id="a call that needs CUDA"),
        pytest.param("if gpu > 1:\n        net, x = net.cuda(), x.cuda()", "torch.cuda.is_available()", id="no flag"),
        pytest.param("if x:\n        net, x = net.cuda(), x.cuda()", "torch.cuda.is_available()", id="of another name"),
    ],
)
def test_the_wait_stands_under_the_condition_that_the_program_has_for_its_gpu(move: str, condition: str | None) -> None:
    code = TIMED.format(move=move)
    wait = "    torch.cuda.synchronize()\n"
    wait = wait if condition is None else f"    if {condition}:\n    {wait}"
    expected = code.replace("    start = ", f"{wait}    start = ").replace("    print", f"{wait}    print")
    assert fixed(code, "TIME01") == expected


def test_both_waits_ask_for_nothing_where_the_work_between_needs_a_gpu() -> None:
    code = TIMED.format(move="pass").replace("    out = net(x)", "    x = x.cuda()\n    out = net(x)")
    assert ".cuda()" in code
    after = fixed(code, "TIME01")
    assert after.count("    torch.cuda.synchronize()\n") == 2
    assert "if torch.cuda" not in after


def test_a_wait_under_the_condition_already_gets_none_of_its_own() -> None:
    code = TIMED.format(move="x = x.to('cuda')").replace("x, gpu):\n", "x, gpu):\n    if torch.cuda.is_available():\n")
    code = "".join(
        f"    {line}" if line.startswith("    ") and not line.startswith("    if") else line
        for line in code.splitlines(keepends=True)
    )
    assert fixed(code, "TIME01").count("        torch.cuda.synchronize()\n") == 2


@pytest.mark.parametrize(
    "case",
    {
        "a training loop": UNSYNCHRONISED["a training step that nothing waits for"],
        "work in the statement of the second reading": "t = time.time()\nprint(net(x).size(), time.time() - t)\n",
    }.items(),
    ids=lambda case: case[0],
)
def test_there_is_no_fix(case: tuple[str, str]) -> None:
    assert len(found(case[1])) == 1
    assert after_fix(case[1]) == case[1]


FIXABLE = [case for case in UNSYNCHRONISED if case != "a training step that nothing waits for"]
RUNNABLE = [case for case in FIXABLE if case not in ("a product of matrices", "layers that stand in other files")]


@pytest.mark.parametrize("case", FIXABLE)
def test_after_the_fix_nothing_is_found(case: str) -> None:
    assert found(after_fix(UNSYNCHRONISED[case])) == []


def run(code: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, object], int]:
    """The variables of a program, and how many lines it prints."""
    namespace: dict[str, object] = {"__name__": "program"}
    exec(compile(code, "program", "exec"), namespace)
    return namespace, capsys.readouterr().out.count("\n")


@pytest.mark.parametrize("case", RUNNABLE)
def test_the_fixed_program_computes_the_same(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    before, lines = run(SETUP + UNSYNCHRONISED[case], capsys)
    after, lines_after = run(SETUP + after_fix(UNSYNCHRONISED[case]), capsys)
    assert lines == lines_after
    tensors = {name for name, value in before.items() if isinstance(value, torch.Tensor)}
    assert tensors
    for name in tensors:
        torch.testing.assert_close(before[name], after[name], rtol=0, atol=0)


WARM_UP = """\
def latency(batch):
    for _ in range(3):
        net(batch)
    {before}
    start = time.perf_counter()
    net(batch)
    {after}
    return time.perf_counter() - start
"""


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("pass", "torch.cuda.synchronize()", [5]),
        ("pass", "pass", [8]),
        ("torch.cuda.synchronize()", "torch.cuda.synchronize()", []),
        ("print(net(batch))", "torch.cuda.synchronize()", []),
        ("batch = batch.clone()", "torch.cuda.synchronize()", [5]),
        ("pass", "print(net(batch).item())", []),
    ],
)
def test_a_warm_up_that_the_first_reading_does_not_wait_for(before: str, after: str, lines: list[int]) -> None:
    assert found(WARM_UP.format(before=before, after=after)) == lines


def test_a_reading_that_nothing_heavy_comes_before_needs_no_wait() -> None:
    code = WARM_UP.format(before="pass", after="torch.cuda.synchronize()")
    assert found(code.replace("net(batch)", "batch.neg()", 1)) == []
    assert found(code.replace("range(3)", "loader")) == []


def test_the_fix_of_a_warm_up_waits_before_the_first_reading_alone() -> None:
    code = SETUP + WARM_UP.format(before="pass", after="torch.cuda.synchronize()")
    changed = fixed(code, "TIME01")
    assert changed.count("synchronize()") == 2
    assert changed.index("    torch.cuda.synchronize()") < changed.index("start = time")
    assert "is_available" not in changed.removeprefix(SETUP)  # as little as the other wait asks
    assert findings(changed, "TIME01") == []
    for asking in ("if known:\n        {}", "try:\n        {}\n    except AssertionError:\n        pass"):
        waiting = WARM_UP.format(before="pass", after=asking.format("torch.cuda.synchronize()"))
        assert "    if torch.cuda.is_available():" in fixed(SETUP + waiting, "TIME01")


GIVEN_DEVICE = """\
def measure(x, device):
    x = x.to(device)
    start = time.time()
    out = x @ x
    return time.time() - start

print(measure(x, {}))
"""


@pytest.mark.parametrize(("device", "lines"), [('"cpu"', []), ('"cuda"', [5]), ("pick()", [5])])
def test_the_device_that_callers_name_is_where_the_work_runs(device: str, lines: list[int]) -> None:
    assert found(GIVEN_DEVICE.format(device)) == lines


ON_HOST = """\
def on_host(batch):
    start = time.time()
    net(batch)
    return time.time() - start

def on_gpu(batch):
    start = time.time()
    net(batch)
    torch.cuda.synchronize()
    return time.time() - start

for name in ["cuda", "cpu"]:
    if {test}:
        measure = on_host
    else:
        measure = on_gpu
    print(measure(x.to(name)))
"""


@pytest.mark.parametrize(
    ("test", "lines"),
    [
        ('name == "cpu"', []),
        ("not torch.cuda.is_available()", []),
        ('name == "cpu" and x.dim() == 2', []),
        ('name != "cpu"', [4]),
        ('name == "cuda"', [4]),
        ("torch.cuda.is_available()", [4]),
    ],
)
def test_a_function_that_is_only_used_on_the_host(test: str, lines: list[int]) -> None:
    assert found(ON_HOST.format(test=test)) == lines
    assert found(ON_HOST.format(test=test) + "print(on_host(x))\n") == [4]


NEVER_MOVED = """\
from detectors import Detector

{before}detector = Detector({given}).eval(){after}
images = [1, 2]
t0 = time.time()
boxes = detector(images)
print(time.time() - t0)
"""


@pytest.mark.parametrize(
    ("given", "before", "after", "is_found"),
    [
        ('pretrained="faces"', "", "", False),
        ('device=torch.device("cpu")', "", "", False),
        ("device=device", "", "", True),
        ('"cuda:1"', "", "", True),
        ("", "", ".cuda()", True),
        ("", "", "\ndetector.to(device)", True),
        ("", "", "\nmove(detector)", True),
        ("", 'torch.set_default_device("cuda")\n', "", True),
    ],
)
def test_a_model_that_nobody_moves(given: str, before: str, after: str, is_found: bool, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "detectors.py").write_text("from torch import nn\n\nclass Detector(nn.Module):\n    pass\n")
    (tmp_path / "main.py").write_text(SETUP + NEVER_MOVED.format(given=given, before=before, after=after))
    settings = Settings.selecting("TIME01")
    assert bool(lint(Source.read(tmp_path / "main.py"), settings, strict=True, project=Project())) == is_found


ATTACK = """\
import torch

class Attack:
    def __init__(self, model: torch.nn.Module, device):
        self.model = model
        self.device = device

    def attack(self, x):
        x = x.to(self.device)
        out = self.model(x)
        {rest}
"""
TIMED_ATTACK = """\
from attacks import Attack

attacker = Attack(model=model, device=device)
x = torch.rand(8, 8).to(device)
t0 = time.time()
y = attacker.attack(x)
print(time.time() - t0)
"""


@pytest.mark.parametrize(
    ("rest", "is_found"),
    [
        ("return out", True),
        ("return out.softmax(1).argmax(1)", True),
        ("best = out.argmax(1)[0].item()\n        return best", False),
        ("return out.softmax(1).cpu()", False),
        ("if x.dim() > 2:\n            return out.cpu()\n        return out.argmax(1).tolist()", False),
        ("return out if x.dim() > 2 else out.t()", True),
    ],
)
def test_a_pass_of_another_file_that_waits_by_itself(rest: str, is_found: bool, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "attacks.py").write_text(ATTACK.format(rest=rest))
    (tmp_path / "main.py").write_text(SETUP + TIMED_ATTACK)
    settings = Settings.selecting("TIME01")
    assert bool(lint(Source.read(tmp_path / "main.py"), settings, strict=True, project=Project())) == is_found


ATTENTION = """\
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def scores(self, x):
        return x @ self.weight

    def update(self, x):
        values = torch.softmax(x @ self.weight, 1)
        self.kept = values.cpu()

    def forward(self, x, mode):
        if mode == "scores":
            return self.scores(x)
        return {rest}
"""
TIMED_ATTENTION = """\
from attentions import Attention

net = Attention().to(device)
x = torch.rand(8, 8).to(device)
t0 = time.time()
net(x, {mode})
print(time.time() - t0)
"""


@pytest.mark.parametrize(
    ("rest", "mode", "is_found"),
    [
        ("self.update(x)", "mode='update'", False),
        ("self.update(x) if mode == 'update' else x.t()", "mode='update'", False),
        ("self.update(x) if mode == 'update' else x.t()", "mode=1", True),
        ("self.scores(x)", "mode='update'", True),
    ],
)
def test_a_network_of_another_file_that_waits_in_a_method_of_its_own(
    rest: str, mode: str, is_found: bool, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "attentions.py").write_text(ATTENTION.format(rest=rest))
    (tmp_path / "main.py").write_text(SETUP + TIMED_ATTENTION.format(mode=mode))
    settings = Settings.selecting("TIME01")
    assert bool(lint(Source.read(tmp_path / "main.py"), settings, strict=True, project=Project())) == is_found


EVALUATION = """\
def evaluate(model, x, rows):
    if rows > 1:
        return model(x[:rows]){rest}
    return model(x[0])[None]{rest}
"""
TIMED_EVALUATION = """\
from evaluation import evaluate

t0 = time.time()
scores = evaluate(net, x, 2)
print(time.time() - t0)
"""


@pytest.mark.parametrize(("rest", "is_found"), [("", True), (".detach().cpu()", False)])
def test_an_evaluation_in_another_file_that_waits_on_either_way(rest: str, is_found: bool, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "evaluation.py").write_text(EVALUATION.format(rest=rest))
    (tmp_path / "main.py").write_text(SETUP + TIMED_EVALUATION)
    settings = Settings.selecting("TIME01")
    assert bool(lint(Source.read(tmp_path / "main.py"), settings, strict=True, project=Project())) == is_found


@pytest.mark.parametrize(
    ("beside", "is_fixed"),
    [
        ("rest = work(out)\nprint(time.time() - t0)\n", False),
        ("rest = work(out)\ntorch.cuda.synchronize()\nprint(time.time() - t0)\n", True),
        ("rest = work(out)\n", True),
    ],
)
def test_times_from_one_start_are_fixed_together_or_not_at_all(beside: str, is_fixed: bool) -> None:
    code = f"from elsewhere import work\nt0 = time.time()\nout = net(x)\nt1 = time.time()\n{beside}print(t1 - t0)\n"
    assert found(code) != []
    assert (fixed(SETUP + code, "TIME01") != SETUP + code) is is_fixed


@pytest.mark.parametrize("comment", ["# torch.cuda.synchronize()", "# the pass"])
def test_a_wait_that_was_taken_out_does_not_come_back(comment: str) -> None:
    code = f"t0 = time.time()\nout = net(x)\n{comment}\nt1 = time.time()\nprint(t1 - t0)\n"
    assert found(code) != []
    assert (fixed(SETUP + code, "TIME01") == SETUP + code) is ("synchronize" in comment)
