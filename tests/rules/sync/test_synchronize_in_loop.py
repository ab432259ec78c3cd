"""SYNC10: waits for the whole device in every step."""

from __future__ import annotations

import pytest
import torch

from tests.rules.sync.programs import TORCH_ONLY, result_of, training
from tests.support import findings, fixed
from torchlint.finding import Applicability

WAIT = "torch.cuda.synchronize()"
FOUND = {
    "a statement": (WAIT, ""),
    "with its device": ("torch.cuda.synchronize(device)", ""),
    "behind a question for the device": (f"if torch.cuda.is_available():\n    {WAIT}", ""),
    "behind a question on one line": (f"if torch.cuda.is_available(): {WAIT}", ""),
    "beside another statement": (f"seen = step; {WAIT}", "seen = step"),
    "among other statements": (f"seen = step\n{WAIT}\nseen += 1", "seen = step\nseen += 1"),
}


CLOCK = "import time\nstart, total = time.time(), 0.0"


def program(body: str, before: str = "") -> str:
    return training(body, before, "return [p.detach().clone() for p in model.parameters()]", TORCH_ONLY)


@pytest.mark.parametrize(("body", "rest"), FOUND.values(), ids=FOUND)
def test_the_wait_goes_and_nothing_else(body: str, rest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = program(body)
    [finding] = findings(before, "SYNC10")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    after = fixed(before, "SYNC10", unsafe=False)
    assert WAIT not in after
    assert after == program(rest) or not rest
    waits: list[object] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waits.append if "(device)" in body else lambda: waits.append(None))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    old, new = result_of(before, "train", 3), result_of(after, "train", 3)
    assert all(torch.equal(a, b) for a, b in zip(old, new))


def test_a_wait_right_before_a_readback_serves_no_clock() -> None:
    code = program(f"{WAIT}\nseen = y.size(0)\ntotal += loss.item()\nprint(time.time() - start)", CLOCK)
    [finding] = findings(code, "SYNC10")
    assert "`loss.item()` behind it waits by itself" in finding.message
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


SILENT = {
    "a clock before the readback": (f"{WAIT}\nprint(time.time() - start)\ntotal += loss.item()", CLOCK),
    "a clock in the line of the readback": (f"{WAIT}\ntotal += meter(time.time(), loss.item())", CLOCK),
    "a readback on a condition": (f"{WAIT}\nif step > 9:\n    total += loss.item()\nprint(time.time() - start)", CLOCK),
    "a readback on a condition in one line": (
        f"{WAIT}\ntotal += loss.item() if step > 9 else 0\nprint(time.time() - start)",
        CLOCK,
    ),
    "a readback from the host": (f"{WAIT}\ntotal += sizes.cpu().item()\nprint(time.time() - start)", CLOCK),
    "a clock": (f"{WAIT}\nprint(time.time() - start)", "import time\nstart = time.time()"),
    "an event": (f"event.record()\n{WAIT}", "event = torch.cuda.Event(enable_timing=True)"),
    "a profiler": (f"{WAIT}\nprof.step()", "prof = torch.profiler.profile()"),
    "a barrier": (f"{WAIT}\ntorch.distributed.barrier()", ""),
    "a copy on its way": (f"host = out.detach().to('cpu', non_blocking=True)\n{WAIT}\nprint(host)", ""),
    "a copy on its way by position": (f"host = out.detach().to('cpu', torch.float, True)\n{WAIT}\nprint(host)", ""),
    "a copy into a buffer": (f"buffer.copy_(out.detach(), True)\n{WAIT}\nprint(buffer)", "buffer = torch.empty(4, 3)"),
    "another process": (f"queue.put(out.detach())\n{WAIT}", "queue = connect()"),
    "a library behind torch's back": (f"{WAIT}\nlibrary.run(out.data_ptr())", "library = connect()"),
    "every hundred steps": (f"if step % 100 == 0:\n    {WAIT}", ""),
}


@pytest.mark.parametrize(("body", "before"), SILENT.values(), ids=SILENT)
def test_a_wait_that_something_needs_is_silent(body: str, before: str) -> None:
    assert findings(program(body, before), "SYNC10") == []


def test_a_file_that_reads_a_clock_elsewhere_gets_an_unsafe_fix() -> None:
    [finding] = findings("import time\n" + program(WAIT, "print(time.time())"), "SYNC10")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


REASONS = {
    "errors of the device that come out there are caught": f"try:\n    {WAIT}\nexcept RuntimeError:\n    print(step)",
    "part of a larger expression": f"done = {WAIT}",
}


@pytest.mark.parametrize(("reason", "body"), REASONS.items(), ids=REASONS)
def test_why_there_is_no_fix(reason: str, body: str) -> None:
    [finding] = findings(program(body), "SYNC10")
    assert finding.fix is None
    assert reason in finding.no_fix


WARM_UP = """
import time
import torch

def measure(x, labels):
    for _ in range(10):
        leaf = x.clone().detach().cuda().requires_grad_(True)
        loss = (leaf.softmax(-1) * labels).sum()
        loss.backward()
        torch.cuda.synchronize()
    {behind}
    for _ in range(100):
        (x.softmax(-1) * labels).sum()
    torch.cuda.synchronize()
    return time.time() - start
"""


@pytest.mark.parametrize(("behind", "count"), [("start = time.time()", 0), ("start = int(labels.shape[0])", 1)])
def test_a_warm_up_leaves_the_device_idle_for_the_clock_that_is_started_behind_it(behind: str, count: int) -> None:
    assert len(findings(WARM_UP.format(behind=behind), "SYNC10")) == count
