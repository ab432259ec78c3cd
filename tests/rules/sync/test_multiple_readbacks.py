"""SYNC02: several numbers that are read one by one, and numbers that are read again."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import TORCH_ONLY, evaluation, line_of, result_of, training
from tests.support import findings, fixed
from torchlint.finding import Applicability

ALL = ("SYNC01", "SYNC02", "SYNC03", "SYNC04", "SYNC06", "SYNC07", "SYNC09")

SEVERAL = {
    "in a print": training("print(loss.item(), out.mean().item())"),
    "in a log": training("wandb.log({'loss': loss.item(), 'mean': out.mean().item()})"),
    "in a text": training("print(f'{loss.item():.3f} {out.mean().item():.3f} {out.std().item():.3f}')"),
    "in a list": training("history.append((loss.item(), out.mean().item()))", "history = []"),
    "in a new tensor": training("shown = torch.tensor([loss, out.mean()])\nif step % 10 == 0:\n    print(shown)"),
    "by float": evaluation("history.append([float(loss), float(out.mean())])", "history = []"),
}


@pytest.mark.parametrize(
    ("read", "name"),
    [
        ("(loss_a + loss_b).item()", "loss_sum"),
        ("(loss_a + out.mean()).item()", "sum_value"),
        ("(loss_a * 2).item()", "value"),
        ("torch.mean(out).item()", "out_mean"),
        ("(out < 3).float().mean().item()", "out_lt_3_mean"),
        ("out.abs().mean().item()", "out_abs_mean"),
        ("out[:, 0].mean().item()", "out_0_mean"),
        ("out[step].mean().item()", "value"),
    ],
)
def test_a_number_is_named_after_what_it_is_of(read: str, name: str) -> None:
    code = training(f"loss_a, loss_b = loss, loss * 2\nprint(loss.item(), {read})")
    assert f"loss_value, {name} = torch.stack([" in fixed(code, "SYNC02")


AGAIN = {
    "summed and printed": training("total += loss.item()\nprint(loss.item())", "total = 0.0"),
    "once more on one way": training(
        "print(loss.item())\nif step > 3:\n    history.append(loss.item())", "history = []"
    ),
}

SINGLE = {
    "two sums": training("total += loss.item()\nmean += out.mean().item()", "total = mean = 0.0"),
    "a new value under the name": training("print(loss.item())\nloss = loss * 2\nprint(loss.item())"),
    "changed in place": training("print(out[0, 0].item())\nout.zero_()\nprint(out[0, 0].item())"),
    "a value that is changed": training("print(loss.item())\nloss.mul_(2)\nprint(loss.item())"),
    "on different ways": training("if step > 3:\n    print(loss.item())\nelse:\n    print('loss', loss.item())"),
}

SILENT = {
    "at log intervals": training("if step % 100 == 0:\n    print(loss.item(), out.mean().item())"),
    "on the host": training("low = out.detach().cpu()\nprint(low.mean().item(), low.std().item())"),
    "in a new tensor that goes back to the device": training(
        "weights = torch.tensor([loss, out.mean()]).to(device)\n(weights * model(x).mean()).sum().backward()"
    ),
    "sizes in a new tensor": training("shown = torch.tensor([len(x), out.size(1)])\nprint(shown)"),
    "all at once": training("print(*torch.stack([loss, out.mean()]).tolist())"),
}


@pytest.mark.parametrize("code", SEVERAL.values(), ids=SEVERAL)
def test_the_reads_of_one_statement_are_one_finding(code: str) -> None:
    [finding] = findings(code, *ALL)
    assert finding.code == "SYNC02"
    assert "numbers from the device one by one" in finding.message


@pytest.mark.parametrize("code", AGAIN.values(), ids=AGAIN)
def test_what_is_read_again_is_found_where_it_is_read_the_second_time(code: str) -> None:
    first, second = findings(code, *ALL)
    assert (first.code, second.code) == ("SYNC01", "SYNC02")
    assert f"on line {first.line}" in second.message


@pytest.mark.parametrize(("asked", "code"), [("", "SYNC02"), ("step > 3 and ", "SYNC01")])
def test_what_a_condition_has_asked_for_each_time_is_read_again(asked: str, code: str) -> None:
    body = f"if {asked}loss.item() > 9:\n    break\nprint(loss.item())"
    assert [finding.code for finding in findings(training(body), *ALL)] == [code]


@pytest.mark.parametrize(
    "asked", ["assert out.requires_grad, f'{loss.item()}'", "if 3 < step < loss.item():\n    break"]
)
def test_what_is_asked_for_only_after_something_else_is_not_read_each_time(asked: str) -> None:
    assert not findings(training(f"{asked}\nprint(loss.item())"), "SYNC02")


@pytest.mark.parametrize("code", SINGLE.values(), ids=SINGLE)
def test_reads_of_different_numbers_in_different_statements_are_matters_of_their_own(code: str) -> None:
    assert [finding.code for finding in findings(code, *ALL)] == ["SYNC01", "SYNC01"]


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_reads_that_are_rare_or_cost_nothing_are_silent(code: str) -> None:
    assert findings(code, "SYNC02") == []


def test_a_sum_of_a_product_is_one_finding_and_a_matter_of_the_sum() -> None:
    code = training("total += float(loss) * float(out.std())", "total = 0.0", "return total")
    assert [finding.code for finding in findings(code, *ALL)] == ["SYNC01"]


def test_the_message_counts_the_reads() -> None:
    code = SEVERAL["in a text"]
    [finding] = findings(code, "SYNC02")
    assert finding.line == line_of(code, "out.std()")
    assert "reads 3 numbers" in finding.message


# -- the fix ---------------------------------------------------------------------------------------------------------

TOGETHER = {
    "two": "kept.append((loss.item(), out.mean().item()))",
    "by float": "kept.append([float(loss), float(out.mean()), float(out.std())])",
    "in a text": "kept.append(f'{loss.item()} {out.mean().item():.3f}')",
    "in keywords": "kept.append(dict(loss=loss.item(), mean=out.mean().item()))",
    "an expression": "kept.append((loss.item(), (loss * 2).item()))",
}


@pytest.mark.parametrize("body", TOGETHER.values(), ids=TOGETHER)
@pytest.mark.parametrize("loop", [training, evaluation], ids=["training", "evaluation"])
def test_the_stacked_numbers_are_the_same(loop, body: str) -> None:  # type: ignore[no-untyped-def]
    code = loop(body, "kept = []", "return kept", head=TORCH_ONLY)
    [finding] = findings(code, "SYNC02")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    new = fixed(code, "SYNC02")
    assert new.count(".tolist()") == 1
    assert ".item()" not in new
    function = "train" if loop is training else "evaluate"
    assert repr(result_of(code, function, 3)) == repr(result_of(new, function, 3))
    assert findings(new, "SYNC01", "SYNC02") == []


ASSIGNED = {
    "one of each": ("a, b = loss.item(), out.mean().item()\nkept.append((a, b))", "a, b = torch.stack(["),
    "read again": ("a, b = loss.item(), out.mean().item()\nkept.append((a, loss.item()))", "a, b = "),
    "in brackets": ("a, b = (loss.item(), out.mean().item())\nkept.append((a, b))", "loss_value, "),
    "more than these": ("a, b, c = loss.item(), out.mean().item(), 1\nkept.append((a, b))", "loss_value, "),
}


@pytest.mark.parametrize(("body", "start"), ASSIGNED.values(), ids=ASSIGNED)
def test_numbers_that_are_assigned_one_by_one_come_out_of_the_stack(body: str, start: str) -> None:
    code = training(body, "kept = []", "return kept", head=TORCH_ONLY)
    new = fixed(code, "SYNC02")
    assert any(line.strip().startswith(start) for line in new.splitlines())
    assert repr(result_of(code, "train", 3)) == repr(result_of(new, "train", 3))


NAMED = {
    "a new name": "kept.append(loss.item())\nmore.append(loss.item())",
    "the name that it has": "value = loss.item()\nkept.append(value)\nmore.append(loss.item() * 2)",
    "on one way": "kept.append(loss.item())\nif step > 0:\n    more.append(loss.item())",
    "asked for first": "if loss.item() > 99:\n    break\nkept.append(loss.item())\nmore.append(loss.item())",
    "three times": "kept.append(loss.item())\nmore.append(loss.item())\nkept.append(-loss.item())",
    "by float": "kept.append(float(loss))\nmore.append(float(loss))",
}


@pytest.mark.parametrize("body", NAMED.values(), ids=NAMED)
def test_a_number_that_has_a_name_is_read_once(body: str) -> None:
    code = training(body, "kept, more = [], []", "return kept, more", head=TORCH_ONLY)
    new = fixed(code, "SYNC02", unsafe=False)
    assert new.count("loss.item()") + new.count("float(loss)") == 1
    assert repr(result_of(code, "train", 3)) == repr(result_of(new, "train", 3))


IN_BETWEEN = {
    "an assertion": ("assert loss.item() < 99", True),
    "a text at an interval": ("if step % 2 == 0:\n    shown.append(f'{loss:.3f}')", True),
    "the text of a tensor": ("shown.append(f'{loss}')", False),
    "a text of what it is next": ("loss = loss * 2\nshown.append(f'{loss:.3f}')", False),
    "what a function reads": ("more.append(lambda: loss.item())", False),
    "what a comment explains": ("shown.append(f'{loss:.3f}')  # .item() is too slow here", False),
}


@pytest.mark.parametrize(("between", "takes_name"), IN_BETWEEN.values(), ids=IN_BETWEEN)
def test_other_reads_of_the_same_number_take_the_name_too(between: str, takes_name: bool) -> None:
    body = f"kept.append(loss.item())\nmore.append(loss.item())\n{between}"
    code = training(body, "kept, more, shown = [], [], []", "return kept, shown", head=TORCH_ONLY)
    new = fixed(code, "SYNC02", unsafe=False)
    assert new != code
    assert new.count("loss_value") == (4 if takes_name else 3)
    assert result_of(code, "train", 3) == result_of(new, "train", 3)


@pytest.mark.parametrize(
    ("rarely", "is_fixed"),
    [
        ("print(loss.item())\n    shown.append(loss.item())", False),
        ("print(loss.item())\n    shown.append(out.mean().item())", True),
        ("print(loss.item())\nelse:\n    shown.append(loss.item())", True),
    ],
)
def test_a_number_that_is_read_twice_on_another_way_too_is_read_alike_on_both(rarely: str, is_fixed: bool) -> None:
    body = f"if step % 100 == 0:\n    {rarely}\nif chatty:\n    kept.append(loss.item())\n    more.append(loss.item())"
    code = training(body, "kept, more, shown, chatty = [], [], [], step_of()")
    assert findings(code, "SYNC02")
    assert ("loss_value" in fixed(code, "SYNC02")) is is_fixed


def test_a_name_that_is_taken_is_left_alone() -> None:
    body = "loss_value = 3\nkept.append(loss.item())\nkept.append(loss.item() + loss_value)"
    for taken, name in (("", "loss_item"), ("loss_item = 4\n", "loss_item_2")):
        code = training(taken + body, "kept = []", "return kept", head=TORCH_ONLY)
        new = fixed(code, "SYNC02", unsafe=False)
        assert f"{name} = loss.item()" in new
        assert result_of(code, "train", 3) == result_of(new, "train", 3)


def test_numbers_that_are_read_again_take_the_names_of_the_first_reading() -> None:
    body = "kept.append((loss.item(), out.mean().item(), (loss * 2).item()))\nmore.append(loss.item())"
    code = training(body, "kept, more = [], []", "return kept, more", head=TORCH_ONLY)
    new = fixed(code, "SYNC02")
    assert new.count(".tolist()") == 1
    assert ".item()" not in new
    assert "more.append(loss_value)" in new
    assert result_of(code, "train", 3) == result_of(new, "train", 3)


def test_a_long_row_of_tensors_is_written_line_by_line() -> None:
    shares = [f"(out < {limit}).float().mean().item()" for limit in range(1, 5)]
    code = training(f"kept.append(({', '.join(shares)}))", "kept = []", "return kept", head=TORCH_ONLY)
    new = fixed(code.replace("kept.append((", "kept.append((\n" + " " * 12).replace("), (out", "),\n (out"), "SYNC02")
    assert max(map(len, new.splitlines())) <= 100
    assert "out_lt_1_mean, out_lt_2_mean, out_lt_3_mean, out_lt_4_mean = torch.stack([\n" in new
    assert result_of(code, "train", 3) == result_of(new, "train", 3)


UNFIXED = {
    "roots of the numbers": training("print(math.sqrt(loss), math.sqrt(loss * 2))"),
    "whole parts of the numbers": training("print(int(loss), int(loss * 2))"),
    "numbers that may be arrays": training("history.append((out[0].item(), out[1].item()))", "history = []"),
    "reads on some ways only": training("print(loss.item() if step else 0, out.mean().item() if step else 0)"),
    "integers and reals": training("history.append((loss.item(), out.argmax(1).eq(y).sum().item()))", "history = []"),
    "several without a name": training("print((loss * 2).item(), (loss * 3).item())"),
    "what runs the model": training("print(model(x).mean().item(), loss.item())"),
    "losses of each sample": training(
        "each = loss_of(out[:1], y[:1])\nprint(each.item(), torch.exp(each).item())",
        'loss_of = nn.CrossEntropyLoss(reduction="none")',
    ),
    "beside curves of one of them": training(
        'writer.add_scalar("loss", loss, step)\nprint(loss.item(), (2 * loss).item())'
    ),
    "beside a copy of all": training("kept.append(out.cpu())\nprint(out.mean().item(), out.std().item())", "kept = []"),
}


@pytest.mark.parametrize("code", UNFIXED.values(), ids=UNFIXED)
def test_no_fix_where_the_numbers_could_differ(code: str) -> None:
    assert all(finding.fix is None for finding in findings(code, "SYNC02"))


def test_a_name_for_what_may_be_written_elsewhere_is_unsafe() -> None:
    code = training("all = out.sum()\nall = all.detach()\nprint(all.item())\nprint(all.item(), 2)")
    [finding] = findings(code, "SYNC02")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


HALVING = "def halve(tensor):\n    tensor.data /= 2\n\n\ndef show(tensor):\n    print(tensor.mean())\n\n\n"
WRITTEN_BETWEEN = {
    "by a function of torch": "torch.clamp_(loss, max=0.5)",
    "by a function of the file": "halve(loss)",
    "by the average of all processes": "torch.distributed.all_reduce(loss)",
    "under another name": "other = loss.detach()\nother.mul_(2)",
    "of what it is a view of": "whole.mul_(2)",
    "in its data": "loss.data[...] = 1",
}


@pytest.mark.parametrize("between", WRITTEN_BETWEEN.values(), ids=WRITTEN_BETWEEN)
def test_what_is_written_between_two_reads_is_read_twice(between: str) -> None:
    code = evaluation(f"print(loss.item())\n{between}\nprint(loss.item())", head=TORCH_ONLY + HALVING)
    code = code.replace("loss = criterion(out, y)", "whole = criterion(out, y)\n        loss = whole.view(())")
    assert "whole" in code
    assert findings(code, "SYNC02") == []


def test_what_is_written_before_both_reads_or_after_them_is_read_once() -> None:
    code = evaluation("halve(loss)\nprint(loss.item())\nprint(loss.item())\nhalve(loss)", head=TORCH_ONLY + HALVING)
    assert len(findings(code, "SYNC02")) == 1


def test_a_write_in_a_loop_comes_between_the_reads_of_the_next_iteration() -> None:
    body = "print(loss.item())\nfor _ in range(3):\n    print(loss.item())\n    halve(loss)"
    assert findings(evaluation(body, head=TORCH_ONLY + HALVING), "SYNC02") == []


@pytest.mark.parametrize(("use", "is_safe"), [("show(loss)", True), ("model.keep(loss)", False)])
def test_what_goes_out_of_sight_between_two_reads_is_read_once_by_an_unsafe_fix(use: str, is_safe: bool) -> None:
    body = f"print(loss.item())\n{use}\nprint(loss.item())"
    [finding] = findings(training(body, head=TORCH_ONLY + HALVING), "SYNC02")
    assert finding.fix is not None
    assert (finding.fix.applicability is Applicability.SAFE) is is_safe


@pytest.mark.parametrize(("returned", "is_fixed"), [("loss.item(), acc.item()", False), ("loss, acc", True)])
def test_numbers_that_are_returned_alike_are_read_alike(returned: str, is_fixed: bool) -> None:
    """The loss of the validation decides something at once, so that nothing is said of reading it later."""
    body = (
        "    out = net(x)\n    acc = (out.argmax(1) == y).float().mean()\n    loss = nn.functional.nll_loss(out, y)\n"
    )
    code = (
        "import torch\nfrom torch import nn\nnet = nn.Linear(3, 2).cuda()\nopt = torch.optim.SGD(net.parameters(), 1)\n"
    )
    code += "x, y = torch.ones(4, 3).cuda(), torch.ones(4).long().cuda()\n"
    code += f"def train():\n    opt.zero_grad()\n{body}    loss.backward()\n    opt.step()\n"
    code += f"    return loss.item(), acc.item()\ndef validate():\n    net.eval()\n{body}    return {returned}\n"
    code += "best = 1e9\nfor epoch in range(100):\n    print(train())\n    loss_val, acc_val = validate()\n"
    code += "    if loss_val < best:\n        best = loss_val\n"
    assert ("torch.stack" in fixed(code, "SYNC02")) is is_fixed


@pytest.mark.parametrize(
    ("between", "is_moved"),
    [
        ("shown = loss.item()", True),
        ("count = 2\nshown = loss.item()", True),
        ("print(shown)\nshown = loss.item()", False),
        ("shown = 1\nshown = loss.item()", False),
        ("shown = loss.item()  # of this step", False),
        ("shown += loss.item()", False),
        ("if len(x) > 1:\n    continue\nshown = loss.item()", False),
    ],
)
def test_the_name_that_a_later_read_gives_the_number_is_given_before_the_first(between: str, is_moved: bool) -> None:
    code = training(f"total += loss.item()\n{between}\nprint(shown)", "total = shown = 0.0", head=TORCH_ONLY)
    after = fixed(code, "SYNC02", unsafe=True)
    assert after != code
    assert ("        shown = loss.item()\n        total += shown\n" in after) is is_moved
    assert ("loss_value" in after) is not is_moved
    assert result_of(after, "train", 3) == result_of(code, "train", 3)


@pytest.mark.parametrize(
    ("around", "behind", "is_moved"),
    [
        ("if len(x) > 1:", "", True),
        ("try:", "except ZeroDivisionError:\n    print(shown)\n", False),
        ("with contextlib.suppress(ZeroDivisionError):", "", False),
    ],
)
def test_a_name_is_not_given_earlier_where_an_exception_may_be_caught_in_between(
    around: str, behind: str, is_moved: bool
) -> None:
    count = f"12 // (len(x) - {0 if is_moved else 5})"  # the second batch has 5 rows
    body = f"{around}\n    total += loss.item()\n    count = {count}\n    shown = loss.item()\n{behind}"
    code = "import contextlib\n" + training(body, "total = shown = 0.0", "return total, shown", TORCH_ONLY)
    after = fixed(code, "SYNC02")
    assert after != code
    assert ("shown = loss.item()\n            total += shown\n" in after) is is_moved
    assert result_of(after, "train", 2) == result_of(code, "train", 2)


def test_a_name_that_the_statement_of_the_first_read_asks_for_is_given_where_it_was() -> None:
    code = training("print(shown, loss.item())\nshown = loss.item()", "shown = 0.0", head=TORCH_ONLY)
    assert "loss_value = loss.item()\n        print(shown, loss_value)\n        shown = loss_value" in fixed(
        code, "SYNC02"
    )


def test_a_number_of_a_tensor_that_is_detached_first_is_named_after_it() -> None:
    code = training("logs = {'a': loss.detach().item(), 'b': out.detach().mean().item()}\nprint(logs)")
    assert "loss_value, out_mean = torch.stack([" in fixed(code, "SYNC02", unsafe=True)


ALTERNATIVES = """
    import torch
    from torch import nn

    net = nn.Linear(4, 1).cuda()
    for batch in torch.utils.data.DataLoader(torch.randn(64, 4), batch_size=8):
        with torch.no_grad():
            energy = net(batch.cuda())
        {read}
"""


@pytest.mark.parametrize(
    ("read", "count"),
    [
        ("print(energy.sum().item() if energy.numel() == 1 else energy[0, 0].item())", 0),
        ("print(energy.sum().item(), energy[0, 0].item() if energy.numel() > 1 else 0.0)", 1),
        ("print(energy.max().item() if energy.numel() == 1 else energy[0, 0].item(), energy.min().item())", 1),
    ],
)
def test_of_two_alternatives_one_is_read(read: str, count: int) -> None:
    found = findings(ALTERNATIVES.format(read=read), "SYNC02")
    assert ["reads 2 numbers" in each.message for each in found] == [True] * count


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("print(loss.item(), float(loss))", "loss_value = loss.item()\n        print(loss_value, loss_value)"),
        ("shown = loss.item()\nprint(float(loss))", "shown = loss.item()\n        print(shown)"),
        ("check(float(loss))\nprint(loss.item())", "loss_value = float(loss)\n        check(loss_value)\n"),
        ("print(int(loss), float(loss))", "print(int(loss), float(loss))"),
    ],
)
def test_float_of_a_loss_is_its_item(body: str, expected: str) -> None:
    after = fixed(training(body), "SYNC02", unsafe=True)
    assert expected in after
    assert "stack" not in after


@pytest.mark.parametrize(("third", "is_fixed"), [("out.long().min().item()", False), ("step", True)])
def test_a_statement_that_waits_for_another_number_anyway_is_left(third: str, is_fixed: bool) -> None:
    code = training(f"print(f'{{loss.item():.3f}} {{out.mean().item():.3f}} {{{third}:d}}')")
    assert findings(code, "SYNC02")
    assert ("torch.stack" in fixed(code, "SYNC02")) is is_fixed


@pytest.mark.parametrize(
    ("other", "further", "is_fixed"),
    [
        ("total += part.item() if step else 0.0", "total -= part.item() if step else 0.0", False),
        ("total += part.item() if step else 0.0", "total -= 1.0", True),
        ("total += part.item() if step else 0.0", "total -= float(part) if step else 0.0", True),
    ],
    ids=["twice", "once", "in two ways"],
)
def test_a_number_beside_another_that_stays_read_twice_stays_so(other: str, further: str, is_fixed: bool) -> None:
    body = f"kept.append(loss.item())\n{other}\nmore.append(loss.item())\n{further}"
    code = training(body, "kept, more, total, part = [], [], 0.0, torch.ones(())")
    assert findings(code, "SYNC02")
    assert ("loss_value" in fixed(code, "SYNC02")) is is_fixed
