"""SYNC01: the fix keeps a running sum on the device, and the number is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.sync.programs import HEAD, TORCH_ONLY, evaluation, line_of, result_of, training
from tests.support import findings, fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability
from torchlint.semantics.project import Project
from torchlint.source import Source

# -- the fix ---------------------------------------------------------------------------------------------------------
REWRITES = {
    "a sum": ("total += loss.item()", "total = 0.0", "return total / (len(loader) or 1)"),
    "a sum from an integer": ("total += loss.item()", "total = 0", "return total / (len(loader) or 1)"),
    "a sum weighted from the right": ("total += loss.item() * y.size(0)", "total = 0.0", "return total"),
    "a sum weighted from the left": ("total += len(y) * loss.item()", "total = 0.0", "return total"),
    "float of a tensor": ("total += float(loss)", "total = 0.0", "return total"),
    "float of an expression": ("total += float(loss / 3)", "total = 0.0", "return total"),
    "a formatted read": ("total += loss.item()", "total = 0.0", "return f'{total} {total / 7:.3f}', type(total)"),
    "a read as float": ("total += loss.item()", "total = 0.0", "return float(total), total"),
    "a division behind the loop": (
        "total += loss.item()",
        "total = 0",
        "total /= len(loader) + 1\nif total > 1:\n    total = -total\nreturn total",
    ),
    "a division by a sum": ("total += loss.item()", "total = 0.0", "total /= 1 + len(loader)\nreturn total"),
    "two sums": (
        "total += loss.item()\nsquares += (loss * loss).item()",
        "total, squares = 0.0, 0.0",
        "return total, squares",
    ),
    "a sum that is written out": ("total = total + loss.item() * len(y)", "total = 0.0", "return total"),
    "a half": ("total += loss.item() / 2", "total = 0.0", "return total"),
    "a constant share": ("total += 3 * loss.item() / 0.25", "total = 0.0", "return total"),
    "a quotient under the same name": (
        "total += loss.item()",
        "total = 0",
        "total = total / (len(loader) + 1)\nif total > 1:\n    total = -total\nreturn total",
    ),
    "read several times": (
        "total += loss.item()",
        "total = 0.0",
        "if total > 1:\n    return total, total * 2\nreturn total / (len(loader) + 1), total",
    ),
    "read in another loop": (
        "total += loss.item()",
        "total = 0.0",
        "kept = []\nfor _ in range(2):\n    kept.append(total)\nreturn kept",
    ),
    "under a condition": ("if step > 0:\n    total += loss.item()", "total = 0.0", "return total"),
    "read at intervals": (
        "total += loss.item()\nif step % 2 == 0:\n    kept.append(total / (step + 1))",
        "total, kept = 0.0, []",
        "return total, kept",
    ),
    "reset at intervals": (
        "total += loss.item()\nif step % 2 == 1:\n    kept.append(total)\n    total = 0.0",
        "total, kept = 0.0, []",
        "return total, kept, type(total)",
    ),
    "reset at intervals, from an integer": (
        "total += loss.item()\nif step % 2 == 1:\n    kept.append(f'{total / 2:.9f}')\n    total = 0",
        "total, kept = 0, []",
        "return kept",
    ),
    "kept under another name while the sum grows": (
        "total += loss.item()\nif step % 2 == 1:\n    kept.append((total - before) / 2)\n    before = last = total",
        "total, before, last, kept = 0.0, 0.0, 0.0, []",
        "return total, before, last, kept",
    ),
}


@pytest.mark.parametrize(("body", "before", "after"), REWRITES.values(), ids=REWRITES)
@pytest.mark.parametrize("batches", [0, 1, 5])
@pytest.mark.parametrize("loop", [training, evaluation], ids=["training", "evaluation"])
def test_the_rewritten_sum_is_the_same_number(loop, body: str, before: str, after: str, batches: int) -> None:  # type: ignore[no-untyped-def]
    code = loop(body, before, after, head=TORCH_ONLY)
    new = fixed(code, "SYNC01", unsafe=False)
    assert (".detach().double()" if loop is training else ".double()") in new
    assert loop is training or ".detach()" not in new
    assert ".item()" not in new
    function = "train" if loop is training else "evaluate"
    old_result, new_result = result_of(code, function, batches), result_of(new, function, batches)
    assert repr(old_result) == repr(new_result)
    assert _types(old_result) == _types(new_result)


@pytest.mark.parametrize("read", ["loss.detach().cpu().item()", "loss.cpu().detach().item()", "loss.cpu().item()"])
def test_a_number_that_is_read_from_a_copy_on_the_host_stays_on_the_device(read: str) -> None:
    code = training(f"total += {read} * len(loader)", "total = 0.0", "return total", head=TORCH_ONLY)
    new = fixed(code, "SYNC01", unsafe=False)
    assert new == code.replace(read, "loss.detach().double()").replace("return total", "return float(total)")
    assert result_of(code, "train", 3) == result_of(new, "train", 3)


@pytest.mark.parametrize(
    ("term", "why"),
    [
        ("loss.item() * model.weight_of_batch", "`model.weight_of_batch` is taken for a number of Python."),
        ("model.weight_of_batch * float(loss)", "`model.weight_of_batch` is taken for a number of Python."),
        ("loss.item() / model.steps", "`model.steps` is taken for a number of Python that is not 0."),
    ],
)
def test_what_nothing_is_known_of_is_taken_for_a_number(term: str, why: str) -> None:
    [finding] = findings(training(f"total += {term}", "total = 0.0", "return total"), "SYNC01")
    assert finding.fix is not None
    assert (finding.fix.applicability, finding.fix.why) == (Applicability.UNSAFE, why)


def _types(value: object) -> object:
    return tuple(map(_types, value)) if isinstance(value, tuple) else type(value)


def test_only_the_term_and_the_reads_change() -> None:
    code = training(
        "total += loss.item()  # before the next batch",
        "total = 0.0  # of the epoch",
        'return f"{total / len(loader):.4f}"  # the mean',
        head=TORCH_ONLY,
    )
    assert fixed(code, "SYNC01", unsafe=False) == code.replace("loss.item()", "loss.detach().double()").replace(
        "{total /", "{float(total) /"
    )


def test_a_division_behind_the_loop_settles_the_number() -> None:
    code = training("total += loss.item()", "total = 0", "total /= len(loader)\nreturn total", head=TORCH_ONLY)
    assert fixed(code, "SYNC01", unsafe=False).endswith("    total = float(total) / len(loader)\n    return total\n")


MANY = "print(total)\nfor name in model:\n    print(name, total)\nreturn total"


def test_a_division_in_a_with_statement_around_the_loop_settles_the_number_behind_that() -> None:
    before = evaluation("total += loss.item()", "total = 0.0").replace("@torch.no_grad()\n", "")
    lines = before[before.index("    for step") :]
    under = "    with torch.no_grad():\n" + "".join(f"    {line}\n" for line in lines.splitlines())
    code = before.replace(
        lines, under + "        total /= len(loader)\n    print(f'{total:.3f}', total)\n    return total\n"
    )
    after = fixed(code, "SYNC01")
    assert "        total = float(total) / len(loader)\n    print(f'{total:.3f}', total)\n    return total\n" in after


def test_one_conversion_behind_the_loop_serves_many_reads() -> None:
    code = training("total += loss.item()", "total = 0.0", MANY, head=TORCH_ONLY)
    changed = code.replace("loss.item()", "loss.detach().double()")
    assert fixed(code, "SYNC01", unsafe=False) == changed.replace(
        "    print(total)", "    total = float(total)\n    print(total)", 1
    )


def test_one_conversion_serves_what_stands_behind_the_with_statement_around_the_loop() -> None:
    code = training("total += loss.item()", "total = 0.0", "print(total)\nreturn total", head=TORCH_ONLY)
    head, loop = code[: code.index("    for step")], code[code.index("    for step") : code.index("    print(total)")]
    under = head + "    with torch.enable_grad():\n    " + loop.replace("\n", "\n    ").rstrip()
    after = under.replace("loss.item()", "loss.detach().double()") + "\n        total = float(total)\n"
    tail = "    print(total)\n    return total\n"
    assert fixed(f"{under}\n{tail}", "SYNC01", unsafe=False) == after + tail


@pytest.mark.parametrize("read", ["loss.detach().item()", "loss.data.item()", "float(loss.detach())"])
def test_what_backward_starts_from_is_a_real_number_in_whatever_way_it_is_detached(read: str) -> None:
    code = training(f"total += {read}", "total = 0.0", "return total", head=TORCH_ONLY)
    code = code.replace("criterion = nn.CrossEntropyLoss()", "criterion = model.criterion")
    new = fixed(code, "SYNC01")
    assert f"total += {'loss.data' if '.data' in read else 'loss.detach()'}.double()" in new
    assert "return float(total)" in new


@pytest.mark.parametrize(
    ("beside", "is_fixed"),
    [
        ("mean += out.mean().item()", True),
        ("hits += (out.argmax(1) == y).sum().item()", True),
        ("part = measure(out)\nmean += part.item()", False),
        ("part = measure(out)\nif step % 9 == 0:\n    mean += part.item()", True),
        ("part = measure(out)\nmean += part", True),
        ("rows.append(out.cpu().numpy())", False),
        ("if loss > 3:\n    break", False),
        ("if step % 9 == 0:\n    rows.append(out.cpu().numpy())", True),
        ("hits += len(torch.where(out.argmax(1) == y)[0])", False),
        ("mean += share(out, y)", False),
        ("if step % 9 == 0:\n    mean += share(out, y)", True),
        ("mean += share(torch.ones(2), torch.zeros(2))", True),
        ("mean += kept(out, y)", True),
    ],
)
def test_no_fix_where_the_step_waits_anyway_for_what_cannot_stay_on_the_device(beside: str, is_fixed: bool) -> None:
    head = f"{HEAD}def share(out, y):\n    right = (out.argmax(1) == y).sum()\n    return right.item()\n\n\n"
    head += "def kept(out, y):\n    return (out.argmax(1) == y).sum()\n\n\n"
    begin = "total, mean, hits, rows = 0.0, 0.0, 0, []"
    code = training(f"total += loss.item()\n{beside}", begin, "return total", head)
    assert ("loss.detach().double()" in fixed(code, "SYNC01", "SYNC06")) is is_fixed


def test_reads_that_a_way_around_the_loop_leads_to_are_converted_one_by_one() -> None:
    code = training("total += loss.item()", "total = 0.0", "print(total)\nreturn total", head=TORCH_ONLY)
    head, loop, tail = code[: code.index("    for step")], code[code.index("    for step") :], "print(total)"
    nested = head + "    if model.training:\n    " + loop.replace("\n", "\n    ")
    nested = nested.replace(f"        {tail}", f"    {tail}").replace("        return", "    return").rstrip() + "\n"
    new = fixed(nested, "SYNC01", unsafe=False)
    assert "print(float(total))" in new
    assert "return float(total)" in new


def test_two_loops_that_share_a_name_are_both_rewritten() -> None:
    code = evaluation("total += loss.item()", "total = 0.0", "first = total\ntotal = 0.0", head=TORCH_ONLY)
    loop = code[code.index("    for step") : code.index("    first")]
    code += loop + "    return first, total\n"
    new = fixed(code, "SYNC01", unsafe=False)
    assert new.count(".double()") == 2
    assert repr(result_of(code, "evaluate", 3)) == repr(result_of(new, "evaluate", 3))


def test_each_of_two_loops_that_share_a_name_has_one_conversion_for_its_own_reads() -> None:
    code = evaluation("total += loss.item()", "total = 0.0", "a = total, total / 2\ntotal = 0.0", head=TORCH_ONLY)
    code += code[code.index("    for step") : code.index("    a = total")] + "    return a, total, total / 2\n"
    new = fixed(code, "SYNC01", unsafe=False)
    assert new == code.replace("loss.item()", "loss.double()").replace(
        "    a = total", "    total = float(total)\n    a = total"
    ).replace("    return a", "    total = float(total)\n    return a")
    assert repr(result_of(code, "evaluate", 3)) == repr(result_of(new, "evaluate", 3))


UNFIXED = {
    "a root of each term": training("total += math.sqrt(loss)", "total = 0.0", "return total"),
    "read in the loop": training("total += loss.item()\nprint(total)", "total = 0.0", "return total"),
    "read below on the same condition": training(
        "if step % 2:\n    total += loss.item()\n    print(total / step)", "total = 0.0", "return total"
    ),
    "an attribute": training("stats.total += loss.item()", "stats = Stats()", "return stats"),
    "a global": training("global total\ntotal += loss.item()"),
    "a closure reads it": training(
        "total += loss.item()", "total = 0.0\ndef show():\n    print(total)", "show()\nreturn total"
    ),
    "a parameter": training("total += loss.item()", "", "return total").replace("optimizer)", "optimizer, total)"),
    "it starts from a tensor": training("total += loss.item()", "total = torch.zeros(())", "return total"),
    "divided into": training("total += 1 / loss.item()", "total = 0.0", "return total"),
    "subtracted": training("total = total - loss.item()", "total = 0.0", "return total"),
    "added the other way round": training("total = loss.item() + total", "total = 0.0", "return total"),
    "multiplied by a tensor": training("total += loss.item() * x.sum()", "total = 0.0", "return total"),
    "a self-documenting f-string": training("total += loss.item()", "total = 0.0", "print(f'{total=}')"),
    "an exception is caught": training(
        "try:\n    total += loss.item()\nexcept RuntimeError:\n    pass", "total = 0.0", "return total"
    ),
    "locals are read": training("total += loss.item()", "total = 0.0", "return locals()"),
    "a deleted name": training("total += loss.item()", "total = 0.0", "print(total)\ndel total"),
    "subtracted behind the loop": training("total += loss.item()", "total = 0.0", "total -= 1\nreturn total"),
    "float means something else": training("total += loss.item()", "float = str\ntotal = 0.0", "return total"),
    "a comment on what is gone": training(
        "# .item() makes a Python number of it\ntotal += loss.item()", "total = 0.0", "return total"
    ),
    "a comment inside": training("total += loss.item(  # wait\n)", "total = 0.0", "return total"),
    "an asynchronous copy waits for it": training(
        "kept = x.to('cpu', non_blocking=True)\ntotal += loss.item()\nuse(kept)", "total = 0.0", "return total"
    ),
    "a device without double precision": training("total += loss.item()", "total = 0.0", "return total").replace(
        '"cpu")', '"mps")'
    ),
    "a value of unknown type": training("total += measure(model, x).item()", "total = 0.0", "return total"),
    "a list in a dict": training("history['loss'].append(loss.item())", "history = {'loss': []}", "return history"),
}


@pytest.mark.parametrize("code", UNFIXED.values(), ids=UNFIXED)
def test_no_fix_where_a_read_could_tell(code: str) -> None:
    for finding in findings(code, "SYNC01"):
        assert finding.fix is None
    assert fixed(code, "SYNC01") == code


DOUBTFUL = {
    "a share, which a GPU may round in another way": training(
        "total += loss.item() / len(loader)", "total = 0.0", "return total"
    ),
    "a constant share": training("total += 3 * loss.item() / 7", "total = 0.0", "return total"),
    "divided by what may be zero": training("total += loss.item() / step", "total = 0.0", "return total"),
    "reset to an integer in the loop": training(
        "total += loss.item()\nif step % 9 == 0:\n    print(total)\n    total = 0", "total = 0.0", "return total"
    ),
    "an integer that may be seen after an empty loop": training("total += loss.item()", "total = 0", "return total"),
    "the loop reads a clock": training(
        "total += loss.item()\nprint(time.time() - start)", "total, start = 0.0, time.time()", "return total"
    ),
    "the device is any accelerator": training("total += loss.item()", "total = 0.0", "return total").replace(
        'torch.device("cuda" if torch.cuda.is_available() else "cpu")', "torch.accelerator.current_accelerator()"
    ),
    "the device comes from elsewhere": training(
        "total += loss.item()", "total = 0.0", "return total", head="import torch\nfrom torch import nn\n\n\n"
    ).replace("optimizer)", "optimizer, device)"),
}


@pytest.mark.parametrize("code", DOUBTFUL.values(), ids=DOUBTFUL)
def test_the_fix_is_unsafe_where_more_than_the_sum_may_depend_on_it(code: str) -> None:
    [finding] = findings(code, "SYNC01")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert finding.fix.why
    assert fixed(code, "SYNC01", unsafe=False) == code


REASONS = {
    "line": training("total += loss.item()\nprint(total)", "total = 0.0", "return total"),
    "not simply added": training("stats.total += loss.item()", "stats = Stats()", "return stats"),
    "other code sees `total`": training("total += loss.item()", "", "return total").replace(
        "optimizer)", "optimizer, total)"
    ),
    "a clock is stopped below": training(
        "start = time.time()\ntotal += loss.item()\nspent += time.time() - start",
        "total, spent = 0.0, 0.0",
        "return total, spent",
    ),
    "no number can stand for `total`": training("total += loss.item()", "total = 0.0", "print(f'{total=}')"),
}


@pytest.mark.parametrize(("reason", "code"), REASONS.items(), ids=REASONS)
def test_the_finding_says_why_a_sum_gets_no_fix(reason: str, code: str) -> None:
    [finding] = findings(code, "SYNC01")
    reads = f"the loop reads `total` on line {line_of(code, 'print(total)')}" if reason == "line" else reason
    assert finding.fix is None
    assert reads in finding.no_fix


def test_a_sum_that_gets_a_fix_needs_no_reason() -> None:
    [finding] = findings(training("total += loss.item()", "total = 0.0", "return total"), "SYNC01")
    assert finding.message.endswith("read the sum once at the end.")
    assert finding.no_fix == ""


@pytest.mark.parametrize(("asked", "is_fixed"), [("vars(model)", True), ("vars()", False), ("dir()", False)])
def test_what_an_object_has_is_no_list_of_the_names_of_the_function(asked: str, is_fixed: bool) -> None:
    code = training("total += loss.item()", "total = 0.0", f"print({asked})\nreturn total")
    assert (fixed(code, "SYNC01") != code) is is_fixed


@pytest.mark.parametrize("is_program", [True, False])
def test_a_file_that_imports_a_program_does_not_see_what_it_makes_when_it_is_run(
    is_program: bool, tmp_path: Path
) -> None:
    guard = 'if __name__ == "__main__":' if is_program else "if True:"
    code = training("total += loss.item()", "total = 0.0", "print(total)", head=TORCH_ONLY)
    code = code.replace("def train(model, loader, optimizer):", f"from data import model, loader, optimizer\n\n{guard}")
    (tmp_path / "main.py").write_text(code)
    (tmp_path / "eval.py").write_text("import torch\nfrom main import device\n\ntotal = torch.ones(2, device=device)\n")
    (tmp_path / "pyproject.toml").touch()
    [finding] = lint(Source.read(tmp_path / "main.py"), Settings.selecting("SYNC01"), project=Project())
    assert (finding.fix is not None) is is_program


@pytest.mark.parametrize(("other", "is_fixed"), [("mps", False), ("cuda:1", True)])
def test_no_double_where_the_device_of_another_file_may_lack_it(other: str, is_fixed: bool, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    chosen = f'torch.device("cuda" if torch.cuda.is_available() else "{other}")'
    (tmp_path / "places.py").write_text(f"import torch\n\n\ndef get_device():\n    return {chosen}\n")
    code = training("total += loss.item()", "total = 0.0", "return total").replace(
        'torch.device("cuda" if torch.cuda.is_available() else "cpu")', "get_device()"
    )
    (tmp_path / "main.py").write_text("from places import get_device\n" + code)
    source = Source.read(tmp_path / "main.py")
    (finding,) = lint(source, Settings.selecting("SYNC01"), strict=True, project=Project())
    assert (finding.fix is not None) is is_fixed


@pytest.mark.parametrize(
    ("said", "is_fixed"), [('DEVICE = "mps"', False), ("mps = 3", True), ('DEVICE = "cuda"', True)]
)
@pytest.mark.parametrize("own", ["device = get()", 'device = torch.device("cuda")'])
def test_no_double_where_another_file_of_the_project_names_a_device_without_it(
    said: str, is_fixed: bool, own: str, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "run.py").write_text(f"import main\n\n{said}\n")
    code = training("total += loss.item()", "total = 0.0", "return total")
    line = next(line for line in code.splitlines() if line.startswith("device = "))
    (tmp_path / "main.py").write_text(code.replace(line, own))
    (finding,) = lint(Source.read(tmp_path / "main.py"), Settings.selecting("SYNC01"), strict=True, project=Project())
    assert (finding.fix is not None) is (is_fixed or "cuda" in own)
    if finding.fix is not None and not is_fixed:
        assert finding.fix.applicability is Applicability.UNSAFE


ACCUMULATED = """\
import torch
from torch import nn

net = nn.Linear(3, 1).cuda()
opt = torch.optim.SGD(net.parameters(), 1)
total = 0.0
for i, (x, y) in enumerate(loader):
    loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
    loss.backward()
    total += loss.item()
    if FIRST:
        opt.step()
        opt.zero_grad()
        if SECOND:
            print(total)
            total = 0.0
"""


@pytest.mark.parametrize(
    ("first", "second", "is_fixed"),
    [
        ("(i + 1) % accumulation_steps == 0", "i % accumulation_steps", False),
        ("(i + 1) % accumulation_steps == 0", "i % 1000 == 0", True),
        ("(i + 1) % 100 == 0", "i % 1000 == 0", True),
    ],
    ids=["at each update", "at an interval of updates", "at an interval"],
)
def test_a_sum_that_is_read_with_each_update_is_left(first: str, second: str, is_fixed: bool) -> None:
    code = ACCUMULATED.replace("FIRST", first).replace("SECOND", second)
    assert len(findings(code, "SYNC01")) == 1
    assert ("loss.detach().double()" in fixed(code, "SYNC01", unsafe=True)) is is_fixed


SUMMED_BEFORE = """\
import torch
from torch import nn

net = nn.Linear(3, 1).cuda()
opt = torch.optim.SGD(net.parameters(), 1)
for i in range(1000):
    total = 0.0
    for _ in range(iter_size):
        x, y = next(batches)
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        loss.backward()
        total += loss.item()
    opt.step()
    opt.zero_grad()
    meter.update(total)
"""


def test_a_sum_over_the_batches_of_an_update_that_is_read_behind_them_is_left() -> None:
    assert len(findings(SUMMED_BEFORE, "SYNC01")) == 1
    assert "total += loss.item()" in fixed(SUMMED_BEFORE, "SYNC01", unsafe=True)
    code = SUMMED_BEFORE.replace("iter_size", "parts")
    assert "loss.detach().double()" in fixed(code, "SYNC01", unsafe=True)


@pytest.mark.parametrize(("shown", "is_fixed"), [("print(step, loss)", False), ("print(step)", True)])
def test_a_sum_stays_on_the_host_beside_what_an_evaluation_shows_of_each_batch(shown: str, is_fixed: bool) -> None:
    code = evaluation(f"total += loss.item()\n{shown}", "total = 0.0", "return total")
    assert (".double()" in fixed(code, "SYNC01")) is is_fixed


@pytest.mark.parametrize(
    ("returned", "is_fixed"),
    [("out.mean(), share.item()", False), ("out.mean(), number", False), ("out.mean(), share", True)],
    ids=["beside another", "of a variable", "none"],
)
def test_a_sum_stays_on_the_host_beside_a_call_that_returns_a_number_that_it_reads(
    returned: str, is_fixed: bool
) -> None:
    helper = (
        "\n\ndef judged(out, y):\n    share = (out.argmax(1) == y).float().mean()\n    number = share.cpu().item()\n"
    )
    helper = helper if "number" in returned else helper.replace("    number = share.cpu().item()\n", "")
    code = training("total += loss.item()\nmean, share = judged(out, y)", "total = 0.0", "return total")
    code += f"{helper}    return {returned}\n"
    assert (".double()" in fixed(code, "SYNC01")) is is_fixed
