"""SYNC01: the fix keeps the numbers of a list on the device until the loop is over, and they are the same."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import TORCH_ONLY, evaluation, result_of, training
from tests.support import findings, fixed
from torchlint.finding import Applicability

REWRITES = {
    "appended": ("kept.append(loss.item())", "return kept, sum(kept) / (len(kept) or 1)"),
    "added": ("kept += [loss.item()]", "return max(kept, default=0.0), len(kept), kept[-1:]"),
    "as a float": ("kept.append(float(loss))", "return kept"),
    "of an expression": ("kept.append((loss * 2).item())", "return [f'{number:.3f}' for number in kept]"),
    "of a sum of operands": ("kept.append(float(loss + 1))", "return kept"),
    "of a copy on the host": ("kept.append(loss.detach().cpu().item())", "return kept"),
    "of its data": ("kept.append(loss.data.item())", "return kept"),
    "whose mean takes its name": ("kept.append(loss.item())", "kept = sum(kept) / (len(kept) or 1)\nreturn kept"),
    "at two places": ("kept.append(loss.item())\nif step > 0:\n    kept.append((loss * 2).item())", "return kept"),
    "under a condition": ("if step > 0:\n    kept.append(loss.item())", "return kept"),
    "of a tensor that is written to later": ("kept.append(loss.item())\nloss.data.mul_(2)", "return kept"),
    "of a tensor that another name writes to": (
        "kept.append(loss.item())\nother = loss.data\nother += 1",
        "return kept",
    ),
    "of one element": ("kept.append(loss.reshape(1)[0].item())", "return kept"),
}


@pytest.mark.parametrize(("body", "after"), REWRITES.values(), ids=REWRITES)
@pytest.mark.parametrize("batches", [0, 1, 5])
@pytest.mark.parametrize("loop", [training, evaluation], ids=["training", "evaluation"])
def test_the_list_has_the_same_numbers(loop, body: str, after: str, batches: int) -> None:  # type: ignore[no-untyped-def]
    code = loop(body, "kept = []", after, head=TORCH_ONLY)
    new = fixed(code, "SYNC01", unsafe=False)
    assert " for value in kept]\n" in new
    function = "train" if loop is training else "evaluate"
    assert repr(result_of(code, function, batches)) == repr(result_of(new, function, batches))


def test_the_conversion_stands_right_behind_the_loop() -> None:
    code = training("kept.append(loss.item())", "kept = []", "print('done')\nreturn kept", head=TORCH_ONLY)
    after = code.replace("kept.append(loss.item())", "kept.append(loss.detach())").replace(
        "    print('done')", "    kept = [value.item() for value in kept]\n    print('done')"
    )
    assert fixed(code, "SYNC01", unsafe=False) == after
    assert findings(after, "SYNC", "VEC", "MEM") == []


def test_what_may_be_written_to_later_is_copied() -> None:
    written = "kept.append(loss.item())\nloss.data.mul_(2)\nloss.mul_(2)"
    code = evaluation(written, "kept = []", "return kept", head=TORCH_ONLY)
    assert "kept.append(loss.clone())" in fixed(code, "SYNC01", unsafe=False)


def test_lists_are_read_in_the_order_in_which_the_loop_fills_them() -> None:
    body = "kept.append(loss.item())\nothers.append((-loss.mean()).item())\nthird.append(out.mean().item())"
    code = training(body, "kept, others, third = [], [], []", "return kept, others, third", head=TORCH_ONLY)
    new = fixed(code, "SYNC01")
    names = ("kept", "others", "third")
    lines = "".join(f"    {name} = [value.item() for value in {name}]\n" for name in names)
    assert new.endswith(f"{lines}    return kept, others, third\n")
    assert "clone" not in new
    assert repr(result_of(code, "train", 3)) == repr(result_of(new, "train", 3))


def test_what_is_made_once_and_written_to_in_each_step_is_copied() -> None:
    head = "static = torch.zeros(1).sum().to(device)\nkept = []"
    code = training("model.replay()\nkept.append(static.item())", head, "return kept", head=TORCH_ONLY)
    assert "kept.append(static.clone())" in fixed(code, "SYNC01")


def test_the_results_of_cuda_graphs_are_copied() -> None:
    code = training("kept.append(loss.item())", "kept = []", "return kept", head=TORCH_ONLY)
    compiled = code.replace("    criterion", '    model = torch.compile(model, mode="reduce-overhead")\n    criterion')
    assert "kept.append(loss.detach().clone())" in fixed(compiled, "SYNC01")


WRITTEN_LATER = {
    "by a function of torch": "torch.clamp_(loss, max=0.5)",
    "where it is told to": "F.relu(loss.data, inplace=True)",
    "by a layer": "nn.Threshold(5.0, 0.25, inplace=True)(loss.data)",
    "by a function of the file": "halve(loss)",
    "in a dict": "parts = {'loss': loss.data}\nparts['loss'] /= 4",
    "in a list": "for part in [loss.data, loss.data]:\n    part /= 2",
    "from all processes": "torch.distributed.all_reduce(loss)",
}
HALVING = "def halve(tensor):\n    tensor.data /= 2\n\n\n"


@pytest.mark.parametrize("later", WRITTEN_LATER.values(), ids=WRITTEN_LATER)
def test_the_list_has_the_numbers_of_before_a_later_write(later: str) -> None:
    head = TORCH_ONLY.replace("from torch import nn", "from torch import nn\nfrom torch.nn import functional as F")
    code = evaluation(f"kept.append(loss.item())\n{later}", "kept = []", "return kept", head=head + HALVING)
    new = fixed(code, "SYNC01", unsafe=False)
    assert "kept.append(loss.clone())" in new
    if "distributed" not in later:
        assert repr(result_of(code, "evaluate", 3)) == repr(result_of(new, "evaluate", 3))


def test_an_element_is_copied_so_that_the_tensor_that_it_is_of_is_not_kept() -> None:
    code = training("kept.append(loss.item())", "kept = []", "return kept", head=TORCH_ONLY)
    code = code.replace("loss = criterion(out, y)", "losses = criterion(out, y).repeat(9)\n        loss = losses[0]")
    assert "kept.append(loss.detach().clone())" in fixed(code, "SYNC01")


@pytest.mark.parametrize("comment", ["a scalar for the list", "a number of Python", "转成标量"])
def test_a_comment_that_explains_the_read_keeps_it(comment: str) -> None:
    code = training(f"kept.append(loss.item())  # {comment}", "kept = []", "return kept", head=TORCH_ONLY)
    assert fixed(code, "SYNC01") == code
    assert fixed(code.replace(f"  # {comment}", "  # of the batch"), "SYNC01") != code


LEFT_ALONE = {
    "read in the loop": ("kept.append(loss.item())\nprint(kept[-1])", "kept = []", "return kept"),
    "counted in the loop": ("kept.append(loss.item())\nif len(kept) > 3:\n    break", "kept = []", "return kept"),
    "given away before": ("kept.append(loss.item())", "kept = []\nall_kept = [kept]", "return kept"),
    "not empty at first": ("kept.append(loss.item())", "kept = [0.5]", "return kept"),
    "replaced in the loop": ("kept.append(loss.item())\nif step > 3:\n    kept = [0.5]", "kept = []", "return kept"),
    "replaced before": ("kept.append(loss.item())", "kept = []\nif model:\n    kept = [0.5]", "return kept"),
    "handed in": ("model.kept.append(loss.item())", "model.kept = []", "return model.kept"),
    "of other numbers, too": ("kept.append(loss.item())\nkept.append(step)", "kept = []", "return kept"),
    "of pairs": ("kept.append((step, loss.item()))", "kept = []", "return kept"),
    "never read": ("kept.append(loss.item())", "kept = []", "return 0"),
    "within a try": (
        "try:\n    kept.append(loss.item())\nexcept RuntimeError:\n    pass",
        "kept = []",
        "return kept",
    ),
    "beside a wait": ("kept.append(loss.item())\nif loss > 3:\n    break", "kept = []", "return kept"),
    "made in a branch": ("kept.append(loss.item())", "if model:\n    kept = []", "return kept"),
}


@pytest.mark.parametrize(("body", "before", "after"), LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_other_lists_stay_as_they_are(body: str, before: str, after: str) -> None:
    code = training(body, before, after, head=TORCH_ONLY)
    assert fixed(code, "SYNC01") == code


def test_a_list_of_the_parts_of_one_loss_is_full_within_the_step() -> None:
    code = (
        TORCH_ONLY
        + """\
def parts_of(reals, fakes):
    loss = 0
    kept = []
    for real, fake in zip(reals, fakes):
        part = torch.mean((1 - real) ** 2)
        loss = loss + part
        kept.append(part.item())
    return loss, kept


def train(net, judge, loader, optimizer):
    for x in loader:
        loss, kept = parts_of(judge(x.to(device)), judge(net(x.to(device))))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    )
    [found] = findings(code, "SYNC01")
    assert "full within the step" in (found.no_fix or "")


def in_epochs(begin_outside: bool) -> str:
    code = training("kept.append(loss.item())", "kept = []", "print(sum(kept))", head=TORCH_ONLY)
    head, start, loop = code.partition("    kept = []\n")
    outside, inside = (start, "") if begin_outside else ("", f"    {start}")
    rows = "".join(f"    {line}\n" for line in loop.splitlines())
    return f"{head}{outside}    for epoch in range(3):\n{inside}{rows}    return kept\n"


def test_a_list_that_goes_on_in_the_next_epoch_is_left_alone_where_each_epoch_reads_it() -> None:
    code = in_epochs(begin_outside=True)
    assert fixed(code, "SYNC01") == code


def test_a_list_that_each_epoch_begins_anew_is_converted_in_each() -> None:
    code = in_epochs(begin_outside=False)
    new = fixed(code, "SYNC01", unsafe=False)
    assert "        kept = [value.item() for value in kept]\n        print(sum(kept))\n" in new
    assert repr(result_of(code, "train", 2)) == repr(result_of(new, "train", 2))


def test_a_list_of_all_epochs_is_converted_behind_them_and_says_what_that_keeps() -> None:
    code = in_epochs(begin_outside=True).replace("        print(sum(kept))\n", "")
    [finding] = findings(code, "SYNC01")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert "stay on the device" in finding.fix.why
    new = fixed(code, "SYNC01")
    assert new.endswith("    kept = [value.item() for value in kept]\n    return kept\n")
    assert repr(result_of(code, "train", 2)) == repr(result_of(new, "train", 2))


def test_a_sum_and_a_list_of_one_step_move_together() -> None:
    body, begin = "kept.append(loss.item())\ntotal += loss.mean().item()", "kept, total = [], 0.0"
    code = training(body, begin, "return kept, total", head=TORCH_ONLY)
    new = fixed(code, "SYNC01")
    assert "kept.append(loss.detach())" in new
    assert "total += loss.mean().detach().double()" in new
    assert repr(result_of(code, "train", 3)) == repr(result_of(new, "train", 3))


@pytest.mark.parametrize(
    "end", ["except KeyboardInterrupt:\n        print('stopped')", "finally:\n        print(sum(kept))"]
)
def test_a_list_that_is_read_although_an_exception_has_ended_the_loop_is_left_alone(end: str) -> None:
    code = training("kept.append(loss.item())", "kept = []", head=TORCH_ONLY)
    head, start, loop = code.partition("    kept = []\n")
    rows = "".join(f"    {line}\n" for line in (start + loop).splitlines())
    tried = f"{head}    try:\n{rows}    {end}\n    return kept\n"
    assert fixed(tried, "SYNC01") == tried
    inside = f"{head}    try:\n{rows}        return kept\n    {end}\n".replace("print(sum(kept))", "print('end')")
    assert "for value in kept]" in fixed(inside, "SYNC01")


@pytest.mark.parametrize("manager", ["contextlib.suppress(KeyboardInterrupt)", "open(__file__)"])
def test_a_loop_whose_interruption_is_suppressed_is_left_alone(manager: str) -> None:
    code = training("kept.append(loss.item())", "kept = []", head="import contextlib\n" + TORCH_ONLY)
    head, start, loop = code.partition("    kept = []\n")
    rows = "".join(f"    {line}\n" for line in loop.splitlines())
    code = f"{head}    with {manager}:\n    {start}{rows}    return kept\n"
    assert ("for value in kept]" in fixed(code, "SYNC01")) is ("suppress" not in manager)


@pytest.mark.parametrize(
    "use", ["show(loss)", "logger.info('%s', str(loss))", "other = loss.detach()\nprint(other + 1)"]
)
def test_what_is_only_read_is_not_copied(use: str) -> None:
    head = TORCH_ONLY + "def show(tensor):\n    print(f'{tensor:.3f}', tensor.shape[0:1])\n\n\n"
    code = training(f"kept.append(loss.item())\n{use}", "kept = []", "return kept", head=head)
    new = fixed(code, "SYNC01")
    assert "kept.append(loss.detach())" in new


def test_a_loss_of_another_loop_of_the_function_is_no_reason_to_copy() -> None:
    code = """\
import torch
from torch import nn

def train(model: nn.Module, loader, held_out, optimizer, error):
    model.cuda()
    losses = []
    for x, y in loader:
        loss = error(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    for x, y in held_out:
        loss = error(model(x.cuda()), y.cuda())
        print(float(loss))
    return losses
"""
    assert "losses.append(loss.detach())\n" in fixed(code, "SYNC01")
    before_the_loop = code.replace("    losses = []\n", "    loss = error.last\n    losses = []\n").replace(
        "        loss = error(model(x.cuda()), y.cuda())\n        loss.backward()\n", "        loss.backward()\n", 1
    )
    assert "loss.detach())" not in fixed(before_the_loop, "SYNC01")


@pytest.mark.parametrize("after", ["return torch.tensor(kept).mean()", "return sum(kept)"])
def test_numbers_of_which_a_tensor_is_made_again_are_left(after: str) -> None:
    code = training("kept.append(loss.item())", "kept = []", after, head=TORCH_ONLY)
    assert len(findings(code, "SYNC01")) == 1
    assert (fixed(code, "SYNC01") == code) is ("tensor" in after)
