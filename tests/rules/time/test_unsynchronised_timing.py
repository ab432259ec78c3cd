"""TIME01: a clock is read while the device is still at work."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.support import findings, fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Confidence
from torchlint.semantics.project import Project
from torchlint.source import Source

SETUP = """\
import time
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).to(device)
x = torch.randn(2, 4, device=device)
y = torch.tensor([0, 2], device=device)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader([(torch.randn(4), 1) for _ in range(4)], batch_size=2)
"""


def found(code: str, setup: str = SETUP) -> list[int]:
    """Lines of the findings, counted behind the setup."""
    return [finding.line - setup.count("\n") for finding in findings(setup + code, "TIME01")]


def marked(code: str) -> list[int]:
    return [number for number, line in enumerate(code.splitlines(), 1) if "# here" in line]


UNSYNCHRONISED = {
    "a forward pass": """\
t0 = time.time()
out = net(x)
print(time.time() - t0)  # here
""",
    "functions that are handed in": """\
def measure(label, fn):
    for _ in range(2):
        fn()
    t0 = time.perf_counter()
    for _ in range(10):
        fn()
    return label, (time.perf_counter() - t0) / 10  # here

print(measure("one", lambda: net(x)), measure("loss", lambda: F.cross_entropy(net(x), y).item()))
""",
    "a decorator": """\
def timed(fn):
    def run(*args):
        t0 = time.time()
        result = fn(*args)
        print(time.time() - t0)  # here
        return result
    return run

@timed
def predict(batch):
    return net(batch)

predict(x)
""",
    "two names": """\
with torch.no_grad():
    start = time.perf_counter()
    out = net(x)
    end = time.perf_counter()  # here
elapsed = end - start
print(elapsed)
""",
    "a loop of repetitions": """\
start = time.time()
for _ in range(10):
    out = net(x)
print((time.time() - start) / 10)  # here
""",
    "a time that is kept for each batch": """\
seconds = []
for images, _ in loader:
    images = images.to(device)
    start = time.perf_counter()
    logits = net(images)
    seconds.append(time.perf_counter() - start)  # here
    print(logits.argmax(1).tolist())
print(sum(seconds))
""",
    "a sum of times": """\
total = 0
for images, _ in loader:
    images = images.to(device)
    start = time.time()
    logits = net(images)
    total += time.time() - start  # here
    print(logits.sum().item())
print(total)
""",
    "the backward pass alone": """\
loss = F.cross_entropy(net(x), y)
start = time.time()
loss.backward()
print("backward", time.time() - start)  # here
""",
    "a training step that nothing waits for": """\
for step in range(5):
    start = time.time()
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    seconds = time.time() - start  # here
    print(step, seconds, loss.item())
""",
    "a product of matrices": """\
a = torch.randn(1000, 1000, device="cuda")
start = time.time()
b = a @ a
print(f"{time.time() - start:.4f}")  # here
""",
    "one operation": """\
a = torch.randn(100_000, device=device)
start = time.time()
b = torch.sort(a).values
print(time.time() - start)  # here
""",
    "a function of this file": """\
def run(batch):
    return F.softmax(net(batch), 1)

start = time.time()
probabilities = run(x)
stop = time.time()  # here
print(stop - start)
""",
    "a clock in a helper": """\
def now():
    return time.perf_counter()

start = now()
out = net(x)
print(now() - start)  # here
""",
    "datetime": """\
from datetime import datetime
start = datetime.now()
out = net(x)
print(datetime.now() - start)  # here
""",
    "a time that is returned": """\
def latency(model, batch):
    start = time.monotonic()
    model(batch.to(device))
    return time.monotonic() - start  # here

print(latency(net, x))
""",
    "the later of two intervals, the earlier is waited for": """\
t0 = time.time()
print(net(x).sum().item())
t1 = time.time()
out = net(x)
t2 = time.time()  # here
print(t1 - t0, t2 - t1)
""",
    "layers that stand in other files": """\
from layers import Encoder

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

    def forward(self, x):
        return self.encoder(x)

model = Net().cuda()
start = time.time()
out = model(x)
print(time.time() - start)  # here
""",
    "a wait before the work": """\
start = time.time()
print(net(x).sum().item())
out = net(x)
print(time.time() - start)  # here
""",
    "another name for the module": """\
import time as t
start = t.time()
out = net(x)
print(t.time() - start)  # here
""",
}


@pytest.mark.parametrize("case", UNSYNCHRONISED)
def test_work_that_is_not_waited_for_is_found(case: str) -> None:
    code = UNSYNCHRONISED[case]
    assert found(code) == marked(code)


LOOK_ALIKES = {
    "a decorator of a function that waits": """\
def timed(fn):
    def run(*args):
        t0 = time.time()
        result = fn(*args)
        print(time.time() - t0)
        return result
    return run

@timed
def predict(batch):
    return net(batch).argmax(1).tolist()

predict(x)
""",
    "functions that wait, handed in": """\
def measure(label, fn):
    t0 = time.perf_counter()
    for _ in range(10):
        fn()
    return label, (time.perf_counter() - t0) / 10

print(measure("loss", lambda: F.cross_entropy(net(x), y).item()), measure("no work", lambda: len(loader)))
""",
    "synchronize before the second reading": """\
torch.cuda.synchronize()
start = time.time()
out = net(x)
torch.cuda.synchronize()
print(time.time() - start)
""",
    "a guarded synchronize": """\
start = time.time()
out = net(x)
if torch.cuda.is_available():
    torch.cuda.synchronize()
print(time.time() - start)
""",
    "a helper that waits": """\
def now():
    torch.cuda.synchronize()
    return time.time()

start = now()
out = net(x)
print(now() - start)
""",
    "a helper of another file that waits by its name": """\
from utils import time_synchronized
start = time_synchronized()
out = net(x)
print(time_synchronized() - start)
""",
    "a value that is read": """\
start = time.time()
loss = F.cross_entropy(net(x), y).item()
print(time.time() - start, loss)
""",
    "a copy to the host": """\
start = time.time()
out = net(x).cpu()
print(time.time() - start)
""",
    "a tensor that is printed": """\
start = time.time()
print(net(x))
print(time.time() - start)
""",
    "a tensor in an f-string, the time behind it": """\
start = time.time()
loss = F.cross_entropy(net(x), y)
print(f"{loss:.4f} {time.time() - start:.2f}")
""",
    "a tensor in a formatted text": """\
start = time.time()
loss = F.cross_entropy(net(x), y)
text = "{:.4f}".format(loss)
print(text, time.time() - start)
""",
    "a tensor in a text made with %": """\
start = time.time()
loss = F.cross_entropy(net(x), y)
text = "%d %.4f" % (1, loss)
print(text, time.time() - start)
""",
    "a branch on a tensor": """\
start = time.time()
out = net(x)
if out.sum() > 0:
    print("positive")
print(time.time() - start)
""",
    "a mask as an index": """\
start = time.time()
out = net(x)
kept = out[out > 0]
print(time.time() - start)
""",
    "an epoch over a loader": """\
for epoch in range(2):
    start = time.time()
    for images, labels in loader:
        opt.zero_grad()
        F.cross_entropy(net(images.to(device)), labels.to(device)).backward()
        opt.step()
    print(epoch, time.time() - start)
""",
    "the wall clock of a run": """\
def train():
    for images, labels in loader:
        opt.zero_grad()
        F.cross_entropy(net(images.to(device)), labels.to(device)).backward()
        opt.step()

start = time.time()
for epoch in range(10):
    train()
print("total", time.time() - start)
""",
    "meters of data and batch time": """\
meter = []
end = time.time()
for images, labels in loader:
    meter.append(time.time() - end)
    loss = F.cross_entropy(net(images.to(device)), labels.to(device))
    print(loss.item())
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.append(time.time() - end)
    end = time.time()
""",
    "the next step waits for the tail of this one": """\
for step in range(5):
    start = time.time()
    loss = F.cross_entropy(net(x), y)
    value = loss.item()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(time.time() - start, value)
""",
    "loading data": """\
start = time.time()
batches = list(loader)
print(time.time() - start)
out = net(x)
""",
    "saving": """\
start = time.time()
torch.save(net.state_dict(), "net.pt")
print(time.time() - start)
""",
    "a limit": """\
start = time.time()
while time.time() - start < 0.01:
    out = net(x)
""",
    "a time that nobody reads": """\
start = time.time()
out = net(x)
elapsed = time.time() - start
""",
    "work on the host": """\
model = nn.Linear(4, 3).cpu()
data = torch.randn(2, 4)
start = time.time()
out = model(data)
print(time.time() - start)
""",
    "the backward pass of a graph on the host": """\
w = torch.randn(3, requires_grad=True)
start = time.time()
w.exp().sum().backward()
print(time.time() - start)
""",
    "arrays": """\
import numpy as np
a = np.ones((10, 10))
start = time.time()
b = a @ a
print(time.time() - start)
""",
    "code out of sight that is given the model": """\
from engine import evaluate
start = time.time()
accuracy = evaluate(net, loader)
print(time.time() - start, accuracy)
""",
    "text that a library generates": """\
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("gpt2").to(device)
start = time.time()
tokens = model.generate(x)
print(time.time() - start)
""",
    "metrics from a model of a library": """\
from torch_geometric.nn import GAE
model = GAE(nn.Linear(4, 4)).to(device)
start = time.time()
z = model.encode(x)
area, precision = model.test(z, y, y)
print(time.time() - start)
""",
    "a buffer that is made": """\
start = time.time()
buffer = torch.zeros(2, 4, device="cuda")
print(time.time() - start)
""",
    "only views": """\
start = time.time()
z = x.view(4, 2).transpose(0, 1)
print(time.time() - start)
""",
    "a profiler that waits at its end": """\
start = time.time()
with torch.profiler.profile() as profiler:
    out = net(x)
print(time.time() - start)
""",
    "a barrier": """\
import torch.distributed as dist
start = time.time()
out = net(x)
dist.barrier()
print(time.time() - start)
""",
    "launches that wait": """\
import os
os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
start = time.time()
out = net(x)
print(time.time() - start)
""",
    "a function of another file": """\
from engine import finish
start = time.time()
out = net(x)
finish()
print(time.time() - start)
""",
    "readings in two functions": """\
class Timer:
    def start(self):
        self.began = time.time()

    def stop(self):
        self.seconds = time.time() - self.began
        return self.seconds
""",
    "a reading from another iteration": """\
last = time.time()
for step in range(5):
    out = net(x)
    now = time.time()
    print(now - last)
    last = now
""",
}


@pytest.mark.parametrize("case", LOOK_ALIKES)
def test_look_alikes_are_silent(case: str) -> None:
    assert found(LOOK_ALIKES[case]) == []


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
    assert changed.index("    if torch.cuda.is_available():") < changed.index("start = time")
    assert findings(changed, "TIME01") == []


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
