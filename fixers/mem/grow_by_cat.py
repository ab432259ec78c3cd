"""Collects the parts in a list, and puts them together after the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers.mem._beginning import Beginning, beginning
from torchlint.fixers.mem._begun_together import begun_together

from torchlint.analyses.exceptions import catches
from torchlint.analyses.mem.cat_growth import Growth, growths
from torchlint.analyses.new_tensors import makes_new_tensor
from torchlint.analyses.order import is_before
from torchlint.analyses.tensor_writes import Written, is_its_own, memory_of, mentions, written_at
from torchlint.edits.rewriter import Rewriter
from torchlint.edits.spelling import is_free
from torchlint.finding import Applicability, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.rule import Report
    from torchlint.semantics.model import Model

_CAT = ("torch.cat", "torch.concat", "torch.concatenate")
_SAFE = "The same parts are put together, once."
_UNSAFE = "A part that a later iteration changes in place would change the result."
_BEGUN = f"{_UNSAFE} With a single iteration the tensor is a copy of the part; with none, another error is raised."


def fix(report: Report, model: Model) -> Fix:
    growth: Growth = report.facts
    collected = _collected(model, growth)
    together = _growths_together(model, growth)
    fixes = [_collected_beside(model, other) if other.call is not growth.call else collected for other in together]
    return begun_together(model, together, fixes) or collected


def _growths_together(model: Model, growth: Growth) -> list[Growth]:
    """What grows in the same block: two of three tensors that go together would be put together in another way."""
    block = model.parent(model.statement(growth.call))
    return [other for other in growths(model) if model.parent(model.statement(other.call)) is block]


def _collected_beside(model: Model, other: Growth) -> Fix:
    try:
        return _collected(model, other)
    except NoFixError as left:
        raise NoFixError(f"`{other.name}` grows beside it, and cannot be collected: {left}") from left


def _collected(model: Model, growth: Growth) -> Fix:
    _check_is_collectable(model, growth)
    parts = f"{growth.name}_parts"
    begun = beginning(model, growth, parts)
    _check_is_alone(model, growth, begun)
    if len(growth.parts) == 1 and _are_elements_of_one(begun.value, growth.parts[0], model):
        raise NoFixError("what holds the parts can be put together as it is, and how much of it is for you to say")
    rest = _other_arguments(model, growth.call)
    if begun.made is not None:
        _check_stays(model, begun.made, begun.value, begun.loop)
    if parts in model.code(model.function(begun.loop).node) or not is_free(model, parts, begun.loop):
        raise NoFixError(f"the name `{parts}` is taken")
    rewriter = Rewriter(model)
    start, end = model.span(begun.appends)
    if "\n" in (code := model.source.text[start:end]) and "#" in code:
        raise NoFixError("a comment stands inside of what becomes one call")
    codes = [model.code(part) for part in growth.parts]
    added = f"append({codes[0]})" if len(codes) == 1 else f"extend([{', '.join(codes)}])"
    together = f"{growth.name} = {model.code(growth.call.func)}({', '.join([parts, *rest])})"
    if begun.otherwise:
        together += f" if {parts} else {begun.otherwise}"
    edits = [
        *begun.edits,
        rewriter.replace(begun.appends, f"{parts}.{added}"),
        rewriter.insert_after(_last_put_together(model, begun.loop), together),
    ]
    collected = growth.parts if begun.made is not None else (*growth.parts, begun.value)
    are_left_alone = [_is_left_alone(model, growth, part) for part in collected]
    is_safe = begun.made is not None and all(are_left_alone) and makes_new_tensor(model, begun.value)
    applicability = Applicability.SAFE if is_safe else Applicability.UNSAFE
    if begun.is_in_branch:  # in which a list is begun that could be empty before the loop: for you to put together
        applicability = Applicability.DISPLAY
    return Fix(tuple(edits), applicability, _SAFE if is_safe else _UNSAFE if begun.made is not None else _BEGUN)


def _are_elements_of_one(first: cst.BaseExpression, part: cst.BaseExpression, model: Model) -> bool:
    """`parts[0]` and `parts[k + 1]`, of a list that is there already."""
    match first, part:
        case cst.Subscript(value=cst.Name() as held), cst.Subscript(value=cst.Name() as other):
            is_list = model.value(held).kind in (Kind.LIST, Kind.TUPLE)
            return is_list and model.binding(held) is model.binding(other)
    return False


def _is_left_alone(model: Model, growth: Growth, part: cst.BaseExpression) -> bool:
    """Whether the part is a new tensor to which nothing writes. Raises NoFixError where something does later."""
    if makes_new_tensor(model, part):
        return True
    loop, binding = growth.loops[0], memory_of(model, part)
    if binding is not None:
        is_made_anew = all(loop.node in model.ancestors(write.target) for write in binding.writes)
        for node in mentions(model, binding):
            is_later = not is_made_anew or is_before(model, growth.call, node)
            if is_later and written_at(model, node) is Written.SURELY:
                raise NoFixError(f"`{model.code(part)}` is written to in place, on {model.place(node)}")
    return is_its_own(model, part, loop)


def _check_stays(model: Model, made: cst.Assign, value: cst.BaseExpression, loop: cst.CSTNode) -> None:
    """What the tensor begins with is copied behind the loop only."""
    binding = memory_of(model, value)
    for node in mentions(model, binding) if binding is not None else ():
        is_before_copy = is_before(model, node, loop) or loop in model.ancestors(node)
        if is_before(model, made, node) and is_before_copy and written_at(model, node) is Written.SURELY:
            raise NoFixError(f"`{model.code(value)}` is written to in place, on {model.place(node)}")


def _check_is_collectable(model: Model, growth: Growth) -> None:
    if growth.binding.cls is not None:
        raise NoFixError(f"other methods, and other files, may read `{growth.name}` at any time")
    if not growth.first:
        raise NoFixError("the parts go in front, so that their order is turned around")
    if growth.moved:
        raise NoFixError(f"each iteration moves `{growth.name}` to where its parts are")


def _check_is_alone(model: Model, growth: Growth, begun: Beginning) -> None:
    """Nothing else in the loop may have to do with the tensor, and no errors may be caught around it."""
    loop = begun.loop
    if getattr(loop, "orelse", None) is not None:
        raise NoFixError("the loop has an `else`")
    if any(catches(node, model) for node in model.ancestors(growth.call)):
        raise NoFixError("an exception that is caught around it would leave other parts behind")
    replaced = {growth.call, begun.appends, begun.test}
    others = [read for read in growth.binding.reads if replaced.isdisjoint(model.ancestors(read))]
    if not others:
        raise NoFixError(f"nothing reads `{growth.name}`, and what it is for is for you to say")
    for read in others:
        if loop in model.ancestors(read):
            raise NoFixError(f"the loop reads `{growth.name}` on {model.place(read)}")


def _last_put_together(model: Model, loop: cst.CSTNode) -> cst.CSTNode:
    """The loop, or the last of the lines right behind it that put together what it has collected: the next one comes
    behind them, in the order of the loop."""
    block = list(getattr(model.parent(loop), "body", ()))
    last = loop
    for line in block[block.index(loop) + 1 :]:
        match line:
            case cst.SimpleStatementLine(
                body=[
                    cst.Assign(
                        value=cst.Call(func=func, args=[first, *_])
                        | cst.IfExp(body=cst.Call(func=func, args=[first, *_]))
                    )
                ]
            ):
                if model.qualified(func) in _CAT and model.code(first.value).endswith("_parts"):
                    last = line
                    continue
        break
    return last


def _other_arguments(model: Model, call: cst.Call) -> list[str]:
    """The dimension as it is written."""
    if model.qualified(call.func) not in _CAT:
        raise NoFixError("it is not `torch.cat` that puts the parts together")
    for argument in call.args[1:]:
        keyword = argument.keyword.value if argument.keyword is not None else "dim"
        number = argument.value.expression if isinstance(argument.value, cst.UnaryOperation) else argument.value
        if keyword not in ("dim", "axis") or not isinstance(number, cst.Integer) or argument.star:
            raise NoFixError("the dimension may differ between iterations")
    return [model.source.text[model.span(a)[0] : model.span(a.value)[1]] for a in call.args[1:]]
