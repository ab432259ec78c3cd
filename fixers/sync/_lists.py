"""Lists of numbers that stay on the device until the loop is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.sync.number_lists import listed_in, number_list
from torchlint.edits.rewriter import Rewriter
from torchlint.edits.spelling import is_free
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.entities import Role
from torchlint.semantics.values import Grad

from ._sums import TIMED, is_told

if TYPE_CHECKING:
    from torchlint.analyses.sync.number_lists import Item
    from torchlint.analyses.sync.readback import Readback
    from torchlint.semantics.model import Model

_OF_NUMBERS = ("torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor")
_GROWS = "Until the loop is over the numbers stay on the device, some hundred bytes each."


def kept_in_list(model: Model, read: Readback) -> Fix:
    """`losses.append(loss.item())` as `losses.append(loss.detach())`, and the numbers of all of them behind the loop.

    Raises NoFixError.
    """
    listed = number_list(model, read)
    if read.loop is None or read.loop.role not in (Role.STEPS, Role.EVALUATION):
        raise NoFixError("the list is full within the step, which then waits just as long")
    if (again := _made_a_tensor(model, read)) is not None:
        raise NoFixError(f"`{model.code(again)}` makes a tensor of the numbers again, for which `torch.stack` is there")
    rewriter = Rewriter(model)
    if listed.how == "float" and not is_free(model, "float", listed.loop):
        raise NoFixError("`float` means something else where the list is read")
    name, value = listed.name, "number" if listed.name == "value" else "value"
    number = f"float({value})" if listed.how == "float" else f"{value}.item()"
    edits = [_kept(model, item) for item in listed.items]
    place = _behind(model, listed.loop)
    edits.append(rewriter.insert_after(place, f"{name} = [{number} for {value} in {name}]"))
    doubt = TIMED if listed.is_timed else "" if listed.is_one_pass else _GROWS
    why = doubt or "The numbers are the same, and are read when the loop is over."
    return Fix(tuple(edits), Applicability.UNSAFE if doubt else Applicability.SAFE, why)


def _made_a_tensor(model: Model, read: Readback) -> cst.Call | None:
    """`torch.tensor(losses)`, of a list that a number is put into."""
    binding = listed_in(model, read.node)
    for each in binding.reads if binding is not None else ():
        call = model.parent(model.parent(each) or each)
        if isinstance(call, cst.Call) and model.call(call).callee in _OF_NUMBERS:
            return call
    return None


def _behind(model: Model, loop: cst.CSTNode) -> cst.CSTNode:
    """The loop, or the last of the statements right behind it that read such lists: all stand in the order in which the
    loop fills them."""
    body = list(getattr(model.parent(loop), "body", ()))
    place = loop
    for line in body[body.index(loop) + 1 :]:
        match line:
            case cst.SimpleStatementLine(
                body=[
                    cst.Assign(
                        targets=[cst.AssignTarget(target=cst.Name() as name)],
                        value=cst.ListComp(for_in=cst.CompFor(iter=cst.Name() as read)),
                    )
                ]
            ) if name.value == read.value:
                place = line
            case _:
                break
    return place


def _kept(model: Model, item: Item) -> Edit:
    """`loss.detach()` for `loss.item()`; a copy where something else has the memory of the tensor."""
    start, end = model.span(item.read)
    first, last = model.span(item.tensor)
    text = model.source.text
    if item.read.lpar or "#" in text[start:first] + text[last:end]:
        raise NoFixError("a comment or parentheses stand inside of the read")
    if is_told(model, item.read):
        raise NoFixError("a comment beside it explains the read")
    tensor, value = text[first:last], model.value(item.tensor)
    has_graph = value.grad is not Grad.DETACHED and model.grad_enabled(item.read) is not False
    suffix = (".detach()" if has_graph else "") + (".clone()" if item.is_shared else "")
    if suffix and isinstance(item.tensor, (cst.BinaryOperation, cst.UnaryOperation)) and not item.tensor.lpar:
        tensor = f"({tensor})"
    return Edit(start, end, tensor + suffix)
