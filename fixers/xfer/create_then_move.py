"""`torch.zeros(n).to(device)` becomes `torch.zeros(n, device=device)`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers._together import places_of
from torchlint.fixers.xfer._casts import call_on, cast_again, cast_type, is_cast_to_long, is_shaped_only
from torchlint.fixers.xfer._long_lines import grows_too_long, joins_lines_too_long, outgrows_limit
from torchlint.fixers.xfer._reach import check_reach, is_seeded, made_in_other_arms, runs_once, says_where_numbers_go
from torchlint.fixers.xfer._target import Target, known, target_of, tensor_of_both
from torchlint.fixers.xfer._twins import cut, is_said_by_name, twins

from torchlint.analyses.xfer.agreement import Agreement
from torchlint.analyses.xfer.numbers import MADE_OF_NUMBERS, equal_numbers, fits, is_range, numbers_given, types_of
from torchlint.analyses.xfer.sizes import SIZED_CLASSES, has_sizes
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.dataflow import text
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.xfer.creations import Creation
    from torchlint.finding import Places
    from torchlint.rule import Report
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

_WHY = {
    Agreement.EXACT: "Every device makes these numbers alike.",
    Agreement.ROUNDED: "The GPU may round the last bits of these numbers otherwise.",
    Agreement.RANDOM: "The GPU draws other numbers from the same seed, and later draws of the host shift.",
}
_WHY_ONCE = "In another type than the default one the numbers are rounded once, not twice, and have to fit."
_WHY_RANGE = "Of no numbers, `torch.arange` makes integers too, and it takes no negative size."
_WHY_NONE = "`.cuda(None)` means the current GPU, but `device=None` means the host."
# Factories that make the same numbers in the type that is asked for as in another that is cast to it.
_CASTABLE = frozenset({"torch.zeros", "torch.ones", "torch.eye", "torch.empty", *SIZED_CLASSES})
_OF_INTEGERS = ("torch.randint", "torch.randperm", "torch.arange")  # of 64 bits, where nothing else is said
_WIDE = 120  # characters of a line that says twice where it goes
_CONSTANTS: dict[float, str] = {0: "torch.zeros", 1: "torch.ones"}
_OF_TENSOR = {
    "torch.zeros": "new_zeros",
    "torch.ones": "new_ones",
    "torch.empty": "new_empty",
    "torch.full": "new_full",
    "torch.tensor": "new_tensor",
}


def fix(report: Report, model: Model) -> Fix:
    creation: Creation = report.facts
    rewriter = Rewriter(model)
    target = target_of(creation.move, rewriter, model)
    if target.dtype is not None and _is_cast_behind(creation, rewriter, model):
        target = replace(target, dtype=None)  # in which it is for a moment only
    check_reach(creation, model)
    if _would_leave_a_second_name(creation, model):
        raise NoFixError("a second name for the same tensor would be left of the copy")
    made = _made(creation, target, rewriter, model)
    beside, places = twins(creation, target, rewriter, model)
    alike = _made_alike(creation.made.factories, made.edits, model)
    return replace(made, edits=(*made.edits, *beside), goes_with=(places, alike))


def _made_alike(factories: Sequence[Call], edits: Sequence[Edit], model: Model) -> Places:
    """What other branches make in the same way, where another function is to make it."""
    renamed = {edit.start for edit in edits if edit.start < edit.end}
    calls = [call for call in factories if model.span(call.node.func)[0] in renamed]
    return places_of([other.func for call in calls for other in made_in_other_arms(call, model)], model)


def _made(creation: Creation, target: Target, rewriter: Rewriter, model: Model) -> Fix:
    edits = _edits(creation, target, rewriter, model)
    why = _WHY[creation.made.agreement]
    if target.is_certain and _is_rounded_once(creation, target, model):
        return Fix(tuple(edits), Applicability.UNSAFE, _WHY_ONCE)
    numbers = numbers_given(creation.factory, model)
    if isinstance(numbers, cst.Call) and is_range(numbers, model) and not _is_filled(numbers):
        return Fix(tuple(edits), Applicability.UNSAFE, _WHY_RANGE)
    if not target.is_certain:
        return Fix(tuple(edits), Applicability.DISPLAY, _WHY_NONE)
    if creation.made.agreement is Agreement.RANDOM and is_seeded(model):
        return Fix(tuple(edits), Applicability.DISPLAY, why)
    is_exact = creation.made.agreement is Agreement.EXACT
    return Fix(tuple(edits), Applicability.SAFE if is_exact else Applicability.UNSAFE, why)


def _is_cast_behind(creation: Creation, rewriter: Rewriter, model: Model) -> bool:
    """`torch.ones(n).type_as(x).long()`: the type that the copy brings is not the one in the end."""
    cast, factory = call_on(creation.move.node, model), creation.factory
    if cast is None or creation.source is not factory.node or not factory.argument("dtype").absent:
        return False
    if creation.made.agreement is Agreement.RANDOM and _is_long_by_itself(factory, model):
        return is_cast_to_long(cast, model)
    return factory.callee in _CASTABLE and cast_type(cast, rewriter, model) is not None


def _would_leave_a_second_name(creation: Creation, model: Model) -> bool:
    """`on_gpu = on_cpu.to(device)`"""
    match model.parent(creation.move.node), creation.move.receiver:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]), cst.Name(value=other):
            return name != other
    return False


def _is_rounded_once(creation: Creation, target: Target, model: Model) -> bool:
    """Whether written numbers no longer pass through the default type on their way to another."""
    factory = creation.factory
    if creation.source is not factory.node or target.dtype is None or not factory.argument("dtype").absent:
        return False
    return numbers_given(factory, model) is not None or _is_filled_with_integer(factory)


def _is_filled_with_integer(factory: Call) -> bool:
    """`torch.full(size, -100)`"""
    match factory.node.args:
        case [_, cst.Arg(keyword=None, value=cst.Integer() | cst.UnaryOperation(expression=cst.Integer()))]:
            return factory.callee == "torch.full"
    return False


# -- edits


@dataclass(slots=True)
class _Names:
    """How a factory is called: by its own name, or as a method of the tensor that has the device and the type."""

    factory: Call
    tensor: str | None
    rewriter: Rewriter
    is_of_tensor: bool = False

    def of(self, qualified: str) -> str:
        method = _OF_TENSOR.get(qualified)
        if self.tensor is None or method is None or any(arg.keyword is not None for arg in self.factory.arguments):
            return known(qualified, self.factory.node, self.rewriter)
        self.is_of_tensor = True
        return f"{self.tensor}.{method}"

    def known(self, qualified: str) -> str:
        return known(qualified, self.factory.node, self.rewriter)


def _edits(creation: Creation, target: Target, rewriter: Rewriter, model: Model) -> list[Edit]:
    dtype, folded = _dtype(creation, target, rewriter, model)
    keeps = f".to({target.dtype})" if target.dtype is not None and target.dtype != dtype else ""
    gone = [*folded, *_moved_again(creation.move.node, target, model)]
    whole = _whole_statement(creation, gone, model) if not keeps else None
    removed = rewriter.remove_statement(whole) if whole is not None else None
    cuts = [removed if removed is not None else cut(creation.move.node, keeps, model)]
    if removed is None and not keeps:
        cuts += _without_parentheses(creation, model)
    cuts += [cut(node, "", model) for node in gone if removed is None or whole not in set(model.ancestors(node))]
    casts = _casts_to_host(creation, folded, rewriter, model)
    edits: list[Edit] = []
    for factory in creation.made.factories:
        is_scripted = factory.callee == "torch.tensor" and "torch.jit" in model.source.text  # without `new_tensor`
        tensor = tensor_of_both(factory, target, dtype, model) if not is_scripted else None
        names = _Names(factory, tensor, rewriter)
        if numbers_given(factory, model) is not None:
            is_plain = runs_once(creation.move, model) or model.once(says_where_numbers_go)
            made, arguments = _of_numbers(factory, dtype is not None, is_plain, names, model)
        elif factory.callee in SIZED_CLASSES:
            made, arguments = _renamed(creation, factory, dtype is not None, names, model)
        else:
            made, arguments = _of_tensor(factory, names, model)
        edits += made
        if not names.is_of_tensor:
            arguments += ([f"dtype={dtype}"] if dtype is not None else []) + [f"device={target.device}"]
        if arguments:
            edits.append(rewriter.add_argument(factory.node, ", ".join(arguments), [*edits, *casts, *cuts]))
    edits += [*casts, *cuts]
    alike = _alike_in_statement(creation, model)
    allowed = model.line_length if keeps or alike > 1 else max(model.line_length, _WIDE)
    if outgrows_limit(creation.move.node, edits, model):
        raise NoFixError("a line that is too long would grow")
    says_twice = keeps or len(creation.made.factories) > 1 or alike > 1
    if says_twice and grows_too_long(creation.move.node, edits, allowed, model, alike):
        raise NoFixError("a line that is too long would say twice where it goes")
    if any("#" in model.source.text[edit.start : edit.end] for edit in edits):
        raise NoFixError("a comment stands inside of the call")
    if joins_lines_too_long(creation.move.node, edits, model):
        raise NoFixError("its lines would become one that is too long")
    return edits


def _alike_in_statement(creation: Creation, model: Model) -> int:
    """How many tensors go to the same place in one statement, each by a copy of its own."""
    move = creation.move
    own = [model.code(arg) for arg in move.arguments]
    return sum(
        isinstance(node, cst.Call)
        and model.call(node).method == move.method
        and [model.code(arg) for arg in node.args] == own
        for node in walk(model.small_statement(move.node) or move.node)
    )


def _casts_to_host(creation: Creation, folded: Sequence[cst.Call], rewriter: Rewriter, model: Model) -> list[Edit]:
    """`.type(torch.LongTensor)` copies to the host what is no longer there: only its dtype is meant."""
    edits = []
    made = {creation.factory.node, *(read for read, _ in creation.made.writes)}
    for root in (creation.source, *(write.value for _, write in creation.made.writes)):
        for node in walk(root) if root is not None else ():
            if not isinstance(node, cst.Call) or model.call(node).method != "type" or len(node.args) != 1:
                continue
            if node in folded:
                continue
            cast = model.qualified(node.args[0].value)
            if made.isdisjoint(walk(node.func)) or model.value(node.args[0].value).kind is Kind.DTYPE:
                continue
            if cast not in SIZED_CLASSES:
                raise NoFixError(f"`{model.code(node)}` may copy to the host, where that is a class of tensors")
            dtype = SIZED_CLASSES[cast]
            if dtype is None:
                raise NoFixError(f"`{model.code(node)}` casts to the default type, whichever that is")
            edits.append(rewriter.replace_argument(node.args[0], known(dtype, node, rewriter)))
    return edits


def _dtype(creation: Creation, target: Target, rewriter: Rewriter, model: Model) -> tuple[str | None, list[cst.Call]]:
    """The type to make the tensor in, and the casts that this replaces, those of the copy left out."""
    factory = creation.factory
    own = call_on(factory.node, model)
    own = call_on(own, model) if own is creation.move.node else own
    if target.dtype is None and _is_long_by_itself(factory, model):
        last = call_on(creation.move.node, model)
        own = last if last is not None and is_shaped_only(creation, model) else own
        if own is not None:
            return None, [own] if is_cast_to_long(own, model) else []
    castable = factory.callee in _CASTABLE or creation.made.agreement is not Agreement.EXACT
    castable = castable or _is_filled_with_integer(factory)
    if len(creation.made.factories) > 1 or not factory.argument("dtype").absent:
        return None, cast_again(creation, model) if target.dtype is None else []
    if numbers_given(factory, model) is not None:
        return _dtype_of_numbers(creation, target, rewriter, model)
    if not castable and not (target.holds_integers and _counts(factory, model)):
        return None, []
    if factory.callee == "torch.arange" and target.may_be_complex:  # of which there is no range
        return None, []
    if creation.source is factory.node and target.dtype is not None:
        return target.dtype, []
    made_as = _filled(factory, model)
    cast = call_on(made_as, model)
    if cast is creation.move.node:
        cast = call_on(cast, model)
    found = cast_type(cast, rewriter, model) if cast is not None and factory.callee in _CASTABLE else None
    return (found, [cast]) if found is not None and cast is not None and target.dtype is None else (None, [])


def _is_long_by_itself(factory: Call, model: Model) -> bool:
    counts = factory.callee != "torch.arange" or _counts(factory, model)
    return factory.callee in _OF_INTEGERS and counts and factory.argument("dtype").absent


def _counts(factory: Call, model: Model) -> bool:
    """`torch.arange(n)` of whole numbers, which are the same in all types of integers."""
    return factory.callee == "torch.arange" and all(model.value(arg.value).dtype == "int" for arg in factory.arguments)


def _dtype_of_numbers(
    creation: Creation, target: Target, rewriter: Rewriter, model: Model
) -> tuple[str | None, list[cst.Call]]:
    """`torch.tensor(0).float()` has the numbers of `torch.tensor(0, dtype=torch.float)`; not so for all other casts."""
    if creation.source is creation.factory.node and target.dtype is not None:
        return target.dtype, []
    factory = creation.factory
    cast, numbers = call_on(factory.node, model), numbers_given(factory, model)
    cast = call_on(cast, model) if cast is creation.move.node else cast
    is_long = SIZED_CLASSES.get(factory.callee or "", "torch.int64") == "torch.int64"
    if is_long and is_range(numbers, model) and cast is not None and is_cast_to_long(cast, model):
        return None, [cast]  # `torch.arange` counts in that type
    alike = equal_numbers(numbers) if numbers is not None else None
    is_constant = alike is not None and _constant(alike[1], is_typed=True) is not None
    is_float = SIZED_CLASSES.get(factory.callee or "", "torch.float32") in (None, "torch.float32")
    if not (is_float or is_constant) or cast is None:
        return None, []
    found = cast_type(cast, rewriter, model) if target.dtype is None else None
    kept = found is not None and (is_constant or found.endswith((".float", ".float32")))
    return (found, [cast]) if kept else (None, [])


def _of_tensor(factory: Call, names: _Names, model: Model) -> tuple[list[Edit], list[str]]:
    """`torch.zeros(3)` as `x.new_zeros(3)`."""
    name = names.of(factory.callee) if factory.callee in _OF_TENSOR and factory.arguments else None
    if name is None or not names.is_of_tensor:
        return [], []
    edits = _called(factory, name, names.rewriter, model)
    only = factory.arguments[0].value
    length = len(model.code(only)) + len(name) - len(model.code(factory.node.func))
    room = names.rewriter.around_only_argument(only, length) if "\n" not in model.code(only) else None
    if room is not None and len(edits) == 1:
        begin, end = model.span(only)
        edits += [Edit(room[0], begin, ""), Edit(end, room[1], "")]
    return edits, []


def _of_numbers(
    factory: Call, has_dtype: bool, is_plain: bool, names: _Names, model: Model
) -> tuple[list[Edit], list[str]]:
    """`torch.FloatTensor([1, 2])` as `torch.tensor([1, 2])`, what is all alike as `torch.full((), 7)`, which waits for
    no copy, unless that is done once, or the file does so elsewhere, and the number reads better in `torch.tensor(7)`;
    and its type."""
    numbers = numbers_given(factory, model)
    assert numbers is not None
    if factory.callee == "torch.as_tensor" and not is_said_by_name(factory):
        raise NoFixError("the type has its place behind the data there, and would be said twice")
    if factory.callee == "torch.scalar_tensor":  # whose type is the default one, whatever the number
        return [], []
    kept = SIZED_CLASSES.get(factory.callee or "")
    is_cast = has_dtype and kept in (None, "torch.float32")
    if factory.callee in SIZED_CLASSES and not is_cast and not _keeps_numbers(kept, types_of(numbers, model)):
        raise NoFixError(f"`{model.code(factory.node.func)}` may round or wrap the numbers that it is given")
    own = SIZED_CLASSES.get(factory.callee or "") if not has_dtype else None
    if isinstance(numbers, cst.Call) and is_range(numbers, model):
        return _of_range(factory, numbers, own, names.rewriter, model)
    is_typed = has_dtype or own is not None or not factory.argument("dtype").absent
    alike = equal_numbers(numbers)
    alike = alike if alike is not None and fits(alike[1], is_typed) and not is_plain else None
    constant = _constant(alike[1], is_typed) if alike is not None else None
    if constant is None and alike is not None and not is_typed:
        constant = _constant(alike[1], is_typed=True)  # `torch.tensor([0])` makes whole numbers of 64 bits
        own = "torch.int64" if constant is not None else None
    same = factory.callee if factory.callee in MADE_OF_NUMBERS and names.tensor is None else "torch.tensor"
    name = constant or ("torch.full" if alike is not None else same or "")
    typed = [f"dtype={names.known(own)}"] if own is not None else []
    if not factory.arguments:
        typed.insert(0, "0")
    edits = _named(factory, numbers, names.of(name), names.rewriter, model)
    if alike is not None:
        sizes = (alike[0].strip("(),") or alike[0]) if constant else f"{alike[0]}, {model.code(alike[1])}"
        edits.append(names.rewriter.replace(numbers, sizes))
    return edits, typed


def _of_range(
    factory: Call, numbers: cst.Call, own: str | None, rewriter: Rewriter, model: Model
) -> tuple[list[Edit], list[str]]:
    """`torch.tensor(range(n))` as `torch.arange(n)`; and its type. Of what is empty, that is not the same, or an
    error."""
    if any(arg.star or arg.keyword is not None for arg in numbers.args) or not numbers.args:
        raise NoFixError("what `range` is given is not in sight")
    if len(numbers.args) > 1 and not _is_filled(numbers):
        raise NoFixError("`torch.arange` takes no range that may be empty")
    edits = [
        rewriter.replace(factory.node.func, known("torch.arange", factory.node, rewriter)),
        Edit(model.span(numbers)[0], model.span(numbers.args[0])[0], ""),
        Edit(model.span(numbers.args[-1])[1], model.span(numbers)[1], ""),
    ]
    return edits, [f"dtype={known(own, factory.node, rewriter)}"] if own is not None else []


def _is_filled(numbers: cst.Call) -> bool:
    """Whether a range of written numbers has one at least."""
    try:
        return bool(range(*(int(ast.literal_eval(text(arg.value))) for arg in numbers.args)))
    except (ValueError, TypeError):
        return False


def _called(factory: Call, name: str, rewriter: Rewriter, model: Model) -> list[Edit]:
    """Another name for what makes the tensor, and the further lines of its arguments under the first one."""
    columns = len(model.code(factory.node.func)) - len(name)
    return [rewriter.replace(factory.node.func, name), *rewriter.arguments_moved_left(factory.node, columns)]


def _named(factory: Call, first: cst.BaseExpression, name: str, rewriter: Rewriter, model: Model) -> list[Edit]:
    """Likewise, where only the lines of the first argument need be under it."""
    start, begin = model.span(factory.node.func)[0], model.span(first)[0]
    columns = len(model.code(factory.node.func)) - len(name)
    edits = _called(factory, name, rewriter, model)
    aligned = rewriter.moved_left(first, columns) if "\n" not in model.source.text[start:begin] else []
    return edits if len(edits) > 1 else [*edits, *aligned]


def _constant(number: cst.BaseExpression, is_typed: bool) -> str | None:
    """The factory that fills a tensor with a number: with a float, where nothing else is said of the dtype."""
    if isinstance(number, cst.Float) or (is_typed and isinstance(number, cst.Integer)):
        return _CONSTANTS.get(number.evaluated_value)
    return None


def _keeps_numbers(dtype: str | None, types: frozenset[str | None]) -> bool:
    """Whether `torch.tensor` makes the numbers that a class of tensors makes, whose type is the default one if None."""
    if dtype is None:
        return "float" in types
    return dtype in ("torch.float32", "torch.float64") or (dtype == "torch.int64" and types == {"int"})


def _filled(factory: Call, model: Model) -> cst.CSTNode:
    """`torch.LongTensor(n).zero_()` of the factory in it."""
    above = call_on(factory.node, model)
    if factory.callee in SIZED_CLASSES and above is not None and _filler(above) is not None:
        return above
    return factory.node


def _renamed(
    creation: Creation, factory: Call, has_dtype: bool, names: _Names, model: Model
) -> tuple[list[Edit], list[str]]:
    """`torch.FloatTensor(n)` as `torch.empty(n)`, or with its filler as `torch.zeros(n)`; and its type. That of no
    arguments has no elements."""
    if not has_sizes(factory, model):
        raise NoFixError(f"what `{model.code(factory.node.func)}` is given may be no sizes")
    filler = call_on(factory.node, model)
    if filler is creation.move.node:
        filler = call_on(filler, model)
    name = (_filler(filler) if filler is not None else None) or "torch.empty"
    own = SIZED_CLASSES[factory.callee or ""] if not has_dtype else None
    typed = [f"dtype={names.known(own)}"] if own is not None else []
    if not factory.arguments:
        typed.insert(0, "0")
    edits = _called(factory, names.of(name), names.rewriter, model)
    if filler is not None and name != "torch.empty":
        edits.append(cut(filler, "", model))
    return edits, typed


def _filler(call: cst.Call) -> str | None:
    """The factory that does what a class of tensors and a call that fills its tensor do."""
    match call:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="zero_")), args=[]):
            return "torch.zeros"
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="fill_")), args=[cst.Arg(value=number, keyword=None)]):
            if isinstance(number, (cst.Integer, cst.Float)):
                return _CONSTANTS.get(number.evaluated_value)
    return None


def _whole_statement(creation: Creation, gone: Sequence[cst.Call], model: Model) -> cst.CSTNode | None:
    """`x = x.to(device)`, which nothing is left of, nor of the calls behind it that go."""
    last = creation.move.node
    while (behind := call_on(last, model)) is not None and behind in gone:
        last = behind
    match model.parent(last):
        case cst.Assign(targets=[cst.AssignTarget(target=target)]) as statement if creation.made.writes:
            same = model.binding(target) is model.binding(creation.source) is not None
            return statement if same else None
    return None


def _moved_again(move: cst.Call, target: Target, model: Model) -> list[cst.Call]:
    """`.type_as(x).to(x.device)`, `.to(device).to(device=device)`: the second move, which finds nothing left to do.
    Raises NoFixError where it goes elsewhere."""
    match outer := call_on(move, model):
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="to")), args=[cst.Arg(keyword=name, star="", value=to)]):
            if name is not None and name.value != "device":
                return []
            if model.code(to) == target.device:
                return [outer]
            if model.value(to).kind is Kind.DEVICE or name is not None:
                raise NoFixError(f"`{model.code(to)}` is where it goes from there")
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="cuda")), args=[]):
            return [outer] if target.device.strip("\"'") == "cuda" else []
    return []


def _without_parentheses(creation: Creation, model: Model) -> list[Edit]:
    """Takes off the parentheses that the copy of a computed tensor needed, and the tensor alone does not."""
    inner = creation.move.receiver
    if isinstance(creation.factory.node, cst.Call) and creation.factory.node.lpar:
        return _bare(creation.factory.node, model)
    needs_none = isinstance(model.parent(creation.move.node), (cst.Assign, cst.Arg, cst.Return, cst.AugAssign))
    if not isinstance(inner, (cst.BinaryOperation, cst.UnaryOperation)) or not needs_none or len(inner.lpar) != 1:
        return []
    return _bare(inner, model)


def _bare(node: cst.BaseExpression, model: Model) -> list[Edit]:
    """Takes the parentheses off an expression that are close to it and on its line."""
    start, end = model.span(node)
    inside = model.source.text[start + 1 : end - 1]
    if inside != inside.strip() or "\n" in inside or len(node.lpar) != 1:
        return []
    return [Edit(start, start + 1, ""), Edit(end - 1, end, "")]
