"""Meters that are given tensors, so that the host waits for the device where somebody reads their mean."""

from __future__ import annotations

from collections.abc import Iterator
from string import Formatter
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.devices.visible_devices import names_several_gpus
from torchlint.analyses.sync.accumulators import (
    has_other_purpose,
    is_inside,
    is_log_gated,
    is_partly_in_inference,
    is_seen_elsewhere,
    is_timed,
    is_wrapped,
    takes_cast,
)
from torchlint.analyses.sync.meters import Meter, is_formatted, meter_of, texts_of_list
from torchlint.edits.rewriter import Rewriter
from torchlint.edits.spelling import is_free
from torchlint.finding import Applicability, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.values import Kind

from ._sums import TIMED, detaching, double_doubt, term

if TYPE_CHECKING:
    from torchlint.analyses.sync.readback import Readback
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_HOLDS = "Until it is read, the meter holds a tensor, of which a GPU may round the mean in another way."


class Metered(NamedTuple):
    """`losses.update(loss.item(), n)`"""

    call: cst.Call
    binding: Binding  # of `losses`
    meter: Meter


def metered(model: Model, number: cst.CSTNode) -> Metered | None:
    """The meter that a number is given to, and nothing else."""
    argument = model.parent(number)
    call = model.parent(argument) if isinstance(argument, cst.Arg) else None
    match call:
        case cst.Call(func=cst.Attribute(value=cst.Name() as name, attr=method)) if isinstance(
            model.parent(call), cst.Expr
        ):
            binding = model.binding(name)
        case _:
            return None
    meter = _meter(model, binding, method.value) if binding is not None else None
    if binding is None or meter is None or model.call(call).argument(meter.number, 0).node is not number:
        return None
    return Metered(call, binding, meter)


def _meter(model: Model, binding: Binding, method: str) -> Meter | None:
    """What the class of a variable does, which is the same wherever it is written."""
    refs = {model.value(write.target).ref for write in binding.writes}
    ref = refs.pop() if len(refs) == 1 else None
    is_made = all(write.kind == "assign" for write in binding.writes)
    behind = model.class_behind(ref) if ref is not None and is_made else None
    if behind is None or any(model.value(write.target).kind is not Kind.INSTANCE for write in binding.writes):
        return None
    return meter_of(*behind, method)


def kept_in_meter(model: Model, read: Readback, found: Metered) -> Fix:
    """`losses.update(loss.detach().double(), n)`, and `float(losses.avg)` where no text is made of it.

    Raises NoFixError.
    """
    name, loop = found.binding.name, read.loop
    if loop is None or is_seen_elsewhere(model, found.binding):
        raise NoFixError(f"other code sees `{name}`")
    if names_several_gpus(model):
        raise NoFixError("each network may lie on a device of its own, and so may what is added up")
    if has_other_purpose(model, found.call, loop):
        raise NoFixError("an exception is caught around it, or a copy waits for it")
    if is_partly_in_inference(model, (each for each in found.binding.reads if _is_given(model, each, found))):
        raise NoFixError(f"`{name}` would be made in inference mode, and torch changes no such tensor outside of it")
    others = [arg.value for arg in found.call.args if arg.value is not read.node]
    if any(not model.value(other).is_(Kind.NUMBER) or model.value(other).optional for other in others):
        raise NoFixError(f"`{model.code(found.call)}` is given more than numbers")
    doubt = double_doubt(model)
    shown = [*_shown(model, found)]
    direct = [*_direct(model, found)]
    for node in (*shown, *direct):
        if is_inside(model, node, loop.node) and not is_log_gated(model, node, loop):
            raise NoFixError(f"the loop reads `{name}` on {model.place(node)}")
        if not takes_cast(model, node):
            raise NoFixError(f"no number can stand for `{name}` on {model.place(node)}")
    is_scalar = read.value.rank == 0
    if shown and not is_scalar:
        raise NoFixError(f"`{model.code(read.tensor)}` is not known to have no dimensions, and a text is made of it")
    wrapped = [
        node
        for node in direct
        if not (is_scalar and is_formatted(model, node)) and not is_wrapped(model, node, "builtins.float")
    ]
    if not all(is_free(model, "float", node) for node in wrapped):
        raise NoFixError("`float` means something else where the meter is read")
    edits = [term(model, read, detaching(model, read) + ".double()")]
    edits += [edit for node in wrapped for edit in Rewriter(model).wrap(node, "float(", ")")]
    why = " ".join(filter(None, (_HOLDS, doubt, TIMED if is_timed(loop) else "")))
    return Fix(tuple(edits), Applicability.UNSAFE, why)


def _direct(model: Model, found: Metered) -> Iterator[cst.BaseExpression]:
    """What gives the sum or the mean itself: `losses.avg`, `losses.mean()`."""
    meter = found.meter
    for name in found.binding.reads:
        node = model.parent(name)
        if not isinstance(node, cst.Attribute):
            continue
        above, attribute = model.parent(node), node.attr.value
        call = above if isinstance(above, cst.Call) and above.func is node else None
        if isinstance(above, (cst.AssignTarget, cst.AugAssign, cst.Del, cst.AnnAssign)):
            raise NoFixError(f"`{model.code(node)}` is set on {model.place(node)}")
        if attribute in meter.readers:
            yield call or node
        elif attribute in meter.sums and call is None:
            yield node
        elif attribute not in (*meter.resets, *meter.numbers, *meter.texts) and not _is_same(model, node, found):
            raise NoFixError(f"`{model.code(node)}` may not take a tensor")


def _is_given(model: Model, name: cst.CSTNode, found: Metered) -> bool:
    """Whether a name of the meter stands where it is given a number."""
    node = model.parent(name)
    return isinstance(node, cst.Attribute) and _is_same(model, node, found)


def _is_same(model: Model, node: cst.Attribute, found: Metered) -> bool:
    """Whether an attribute is the method that the number is given to, called as a statement."""
    call = model.parent(node)
    method = found.call.func.attr.value if isinstance(found.call.func, cst.Attribute) else ""
    is_statement = isinstance(call, cst.Call) and call.func is node and isinstance(model.parent(call), cst.Expr)
    return is_statement and node.attr.value == method


def _shown(model: Model, found: Metered) -> Iterator[cst.BaseExpression]:
    """Where the meter as a whole is made a text: `f"{losses}"`, `"{loss.avg:.3f}".format(loss=losses)`, and displays
    that are given it.

    Raises NoFixError where it goes elsewhere.
    """
    for name in found.binding.reads:
        above = model.parent(name)
        if isinstance(above, cst.Attribute) or not isinstance(name, cst.Name):
            continue
        places = _places(model, name, found.meter)
        if places is None:
            raise NoFixError(f"`{name.value}` goes elsewhere on {model.place(name)}")
        yield from places


def _places(model: Model, name: cst.Name, meter: Meter) -> list[cst.BaseExpression] | None:
    """Where a text is made of a meter that stands somewhere; None where more may become of it."""
    above = model.parent(name)
    match above:
        case cst.FormattedStringExpression(equal=None):
            return [name] if meter.shows else None
        case cst.Arg(keyword=keyword):
            call = model.parent(above)
            if not isinstance(call, cst.Call):
                return None
            if model.call(call).callee in ("builtins.str", "builtins.print"):
                return [name] if meter.shows else None
            return [name] if keyword is not None and _fills(call, keyword.value, meter) else None
        case cst.Element():
            listed = model.parent(above)
            argument = model.parent(listed) if isinstance(listed, (cst.List, cst.Tuple)) else None
            call = model.parent(argument) if isinstance(argument, cst.Arg) else None
            if isinstance(call, cst.Call) and isinstance(argument, cst.Arg):
                return texts_of_list(model, call, argument, meter)
    return None


def _fills(call: cst.Call, key: str, meter: Meter) -> bool:
    """Whether `"{loss.val:.4f} ({loss.avg:.4f})".format(loss=losses)` asks for attributes of a meter alone."""
    match call.func:
        case cst.Attribute(
            value=(cst.SimpleString() | cst.ConcatenatedString()) as text, attr=cst.Name(value="format")
        ):
            value = text.evaluated_value
        case _:
            return False
    if not isinstance(value, str):
        return False
    for _, field, _, conversion in Formatter().parse(value):
        first, _, rest = (field or "").partition(".")
        if first != key:
            continue
        if conversion or (rest and rest not in (*meter.sums, *meter.numbers, *meter.readers)) or "[" in rest:
            return False
        if not rest and not meter.shows:
            return False
    return True
