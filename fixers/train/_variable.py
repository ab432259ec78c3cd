"""`Variable(x)` becomes the tensor that it returns."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.train.graph_origin import Origin, origin, receives_graph
from torchlint.analyses.train.owned_tensors import (
    is_cut_before,
    is_made_anew,
    without_moves,
)
from torchlint.analyses.variable_wrapper import VARIABLE, Wrapper, questions, wrapper_of
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.dataflow import text as text_of
from torchlint.semantics.parallel_assignment import assigned_pairs
from torchlint.semantics.tree import is_name, walk
from torchlint.semantics.values import Kind

from ._bare_tensors import has_leaf, is_temporary, may_stand_bare, name_of, wants_gradients, with_moves

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

_VOLATILE = re.compile(r"(?i)\bvolatile")
_WRAPPED = re.compile(r"\bVariables?\b|(?i:\bwrap)")  # a comment that would be wrong
_MADE = re.compile(r"(?i)\bvariables?\b")  # and one that would stand above nothing
_SHORT = 40  # characters
_FACTORIES = frozenset(
    f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "eye", "rand", "randn", "linspace", "tensor")
)


@dataclass(frozen=True, slots=True)
class _Remedy:
    """`cut` is what the tensor itself needs behind it to be what `Variable` makes of it."""

    cut: str
    applicability: Applicability
    why: str = ""


_RANKED = list(Applicability)
Pair = tuple[cst.BaseExpression, cst.BaseExpression]


def unwrap(wrapper: Wrapper, model: Model) -> Fix:
    """What takes a call of Variable away. Raises NoFixError where the tensor itself cannot stand there."""
    statement = model.small_statement(wrapper.call.node)
    beside = (call for call in model.calls_to(VARIABLE) if model.small_statement(call.node) is statement is not None)
    all_of_it = [wrapper, *map(wrapper_of, beside)]
    for each in all_of_it:
        _check(each, model)
    least = max((_remedy(each, model) for each in all_of_it), key=lambda remedy: _RANKED.index(remedy.applicability))
    taken = _taken_together(wrapper.call, model) or _is_all_of_a_list(wrapper, model)
    said = Rewriter(model).comments(wrapper.call.node)
    if _WRAPPED.search(said) or (taken and _MADE.search(said)):
        raise NoFixError("a comment says that a `Variable` is made here, and would be left")
    if _is_the_other_arm(wrapper, model):
        raise NoFixError("both arms of the condition would be the same")
    edits = _removal(wrapper.call, model) if taken else _replacement(wrapper, _remedy(wrapper, model).cut, model)
    idle = [] if taken else _idle_pairs(statement, model)
    if isinstance(statement, cst.Assign) and idle:
        left = {id(node) for _, value in idle for node in walk(value)}
        others = {each.call: each for each in all_of_it if id(each.call.node) not in left}.values()
        edits = [edit for each in others for edit in _replacement(each, _remedy(each, model).cut, model)]
        edits += _without_pairs(statement, idle, model)
    return Fix(tuple(edits), least.applicability, least.why)


def bare_together(wrapper: Wrapper, model: Model) -> list[Wrapper]:
    """The wrappers of a statement where the tensor itself takes the place of each; otherwise none."""
    statement = model.small_statement(wrapper.call.node)
    calls = (call for call in model.calls_to(VARIABLE) if model.small_statement(call.node) is statement is not None)
    found = [*map(wrapper_of, calls)]
    return found if not any(_remedy(each, model).cut for each in found) else []


def _is_the_other_arm(wrapper: Wrapper, model: Model) -> bool:
    """`Variable(x) if wanted else x`"""
    match model.parent(wrapper.call.node):
        case cst.IfExp(body=one, orelse=other) if wrapper.call.node in (one, other) and wrapper.data.node is not None:
            return any(arm.deep_equals(wrapper.data.node) for arm in (one, other))
    return False


def _remedy(wrapper: Wrapper, model: Model) -> _Remedy:
    """Bare where there is no graph to end, cut off where there is one, and only shown where nothing in sight tells."""
    inner = wrapper.data.node
    assert inner is not None
    if isinstance(inner, cst.Attribute) and inner.attr.value == "data" and _is_tensor(inner.value, model):
        is_count = model.value(inner.value).dtype in ("int", "bool") and not wants_gradients(wrapper)
        return _Remedy("" if is_count or _is_plain(inner.value, model) else ".detach()", Applicability.SAFE)
    if may_stand_bare(wrapper, model) or is_cut_before(inner, model):
        return _Remedy("", Applicability.SAFE)
    found = origin(model, inner)
    if found is Origin.GRAPH or wants_gradients(wrapper):
        return _Remedy(".detach()", Applicability.SAFE)
    name = text_of(inner) if len(text_of(inner)) < _SHORT else "the tensor"
    is_off = model.grad_enabled(wrapper.call.node) is False
    is_for_no_graph = wrapper.asks_for_no_graph and _is_without_gradients(wrapper, model)
    if _is_told_apart(wrapper.call.node, inner, model) and (is_off or not is_for_no_graph):
        return _Remedy(".detach()", Applicability.SAFE)
    if is_for_no_graph:
        return _Remedy("", Applicability.UNSAFE, f"`{name}` was to have no graph, and none is recorded here")
    if found is Origin.HIDDEN:
        return _Remedy(
            ".detach()", Applicability.DISPLAY, f"whether `{name}` has a graph to be cut off is out of sight"
        )
    why = f"`Variable` would end a graph behind `{name}`, and nothing in the file gives it one"
    return _Remedy("", Applicability.UNSAFE, why)


def _is_tensor(node: cst.BaseExpression, model: Model) -> bool:
    return model.value(node).is_(Kind.TENSOR, Kind.UNKNOWN)


def _is_plain(node: cst.BaseExpression, model: Model) -> bool:
    """Whether a tensor has no graph that its `.data` would leave out."""
    return is_made_anew(node, model) or (is_temporary(node, model) and origin(model, node) is Origin.NOWHERE)


def _is_told_apart(call: cst.Call, inner: cst.BaseExpression, model: Model) -> bool:
    """Whether the tensor and what Variable makes of it are two names, of which one becomes part of a graph."""
    held: cst.BaseExpression = without_moves(inner, model)
    while isinstance(held, cst.Subscript) or (
        isinstance(held, cst.Call) and model.call(held).receiver_value.kind is Kind.TENSOR
    ):
        held = held.value if isinstance(held, cst.Subscript) else model.call(held).receiver or held
        held = without_moves(held, model)
    names = {name_of(with_moves(call, model), model), model.binding(held)} - {None}
    return any(name is not None and (has_leaf(name, model) or receives_graph(model, name)) for name in names)


def _check(wrapper: Wrapper, model: Model) -> None:
    if not _is_understood(wrapper):
        raise NoFixError("not all arguments are in sight")
    if wrapper.asks_for_no_graph and not _is_without_gradients(wrapper, model):
        raise NoFixError("what is to run under `torch.no_grad()` is for you to say")
    if model.once(questions):
        raise NoFixError("the file asks what is a `Variable`, and what is to become of that is for you to say")
    if _VOLATILE.search(Rewriter(model).comments(wrapper.call.node)):
        raise NoFixError("a comment beside it explains what volatile variables are for")


def _is_without_gradients(wrapper: Wrapper, model: Model) -> bool:
    """Whether a variable is made where autograd is off, or read nowhere else."""
    call = wrapper.call.node
    if model.grad_enabled(call) is False:
        return True
    binding = name_of(with_moves(call, model), model)
    target = (
        next((write.target for write in binding.writes if write.statement is model.statement(call)), None)
        if binding
        else None
    )
    if binding is None or target is None or binding.cls is not None or binding.shared:
        return False
    reads = [read for read in binding.reads if reaches(model, binding, target, read)]
    return bool(reads) and all(model.grad_enabled(read) is False for read in reads)


def _is_understood(wrapper: Wrapper) -> bool:
    arguments = (wrapper.data, wrapper.requires_grad, wrapper.volatile)
    given = [argument.arg for argument in arguments if argument.given]
    return wrapper.data.given and None not in given and len(given) == len(wrapper.call.arguments)


def _removal(call: Call, model: Model) -> list[Edit]:
    rewriter = Rewriter(model)
    block = model.parent(model.statement(call.node))
    suite = model.parent(model.small_statement(call.node) or call.node)
    block = suite if isinstance(suite, cst.SimpleStatementSuite) else block
    if isinstance(block, cst.BaseSuite) and all(_does_nothing(line, model) for line in block.body):
        whole = rewriter.remove_clause(block)
        if whole is None:
            raise NoFixError("nothing would be left of the block that it is part of")
        return [whole]
    edit = rewriter.remove_statement(call.node)
    assert edit is not None
    if edit.text == "pass":
        raise NoFixError("nothing would be left of the block that it is all of")
    return [edit]


def _does_nothing(line: cst.CSTNode, model: Model) -> bool:
    """Whether a line is there for nothing but calls of Variable that go."""
    match line:
        case cst.SimpleStatementLine(body=[cst.Assign() as statement]) | (cst.Assign() as statement):
            pairs = assigned_pairs(statement)
            return bool(pairs) and all(isinstance(v, cst.Call) and _is_itself(t, v, model) for t, v in pairs)
    return False


def _taken_together(call: Call, model: Model) -> set[Call]:
    """The uses of `x = Variable(x)` or `x, y = Variable(x), Variable(y)`, of which nothing would be left."""
    pairs = assigned_pairs(model.small_statement(call.node))
    found = {
        model.call(value) for target, value in pairs if isinstance(value, cst.Call) and _is_itself(target, value, model)
    }
    return found if len(found) == len(pairs) else set()


def _idle_pairs(statement: cst.CSTNode | None, model: Model) -> list[Pair]:
    """The parts of `x, y = Variable(x), Variable(2 * y)` of which nothing would be left."""
    pairs = assigned_pairs(statement)
    return [
        (target, value) for target, value in pairs if isinstance(value, cst.Call) and _is_itself(target, value, model)
    ]


def _without_pairs(statement: cst.Assign, gone: list[Pair], model: Model) -> list[Edit]:
    """The edits that take parts out of `x, y = ...`."""
    target, value = statement.targets[0].target, statement.value
    if target.lpar or value.lpar:
        raise NoFixError("nothing would be left of a part of the statement")
    kept = [pair for pair in assigned_pairs(statement) if pair not in gone]
    edits = []
    for whole, side in ((target, 0), (value, 1)):
        start, end = model.span(whole)
        for each in kept:
            first, last = model.span(each[side])
            edits.append(Edit(start, first, "" if each is kept[0] else ", "))
            start = last
        edits.append(Edit(start, end, ""))
    return [edit for edit in edits if model.source.text[edit.start : edit.end] != edit.text]


def _is_all_of_a_list(wrapper: Wrapper, model: Model) -> bool:
    """Whether `a, b = [Variable(x) for x in [a, b]]` does nothing else. Raises NoFixError for others of which only a
    copy would be left."""
    call, inner = wrapper.call.node, wrapper.data.node
    made = model.parent(call)
    match made:
        case cst.ListComp(elt=elt, for_in=cst.CompFor(target=cst.Name(value=name), iter=each, ifs=[])) if elt is call:
            is_copy = isinstance(inner, cst.Name) and inner.value == name and not wants_gradients(wrapper)
        case _:
            return False
    if not is_copy or _remedy(wrapper, model).cut:
        return False
    pairs = assigned_pairs(model.small_statement(call))
    target = pairs[0][0] if len(pairs) == 1 and pairs[0][1] is made else None
    if isinstance(target, cst.Tuple) and isinstance(each, (cst.List, cst.Tuple)):
        names = [text_of(element.value) for element in target.elements]
        if names == [text_of(element.value) for element in each.elements]:
            return True
    raise NoFixError("nothing but a copy of the list would be left")


def _is_itself(target: cst.BaseExpression, value: cst.Call, model: Model) -> bool:
    """Whether `target = value` would do nothing if `value` were not wrapped."""
    call = model.call(value)
    if call.callee != VARIABLE:
        return False
    wrapper = wrapper_of(call)
    return (
        not wants_gradients(wrapper)
        and isinstance(target, (cst.Name, cst.Attribute))
        and wrapper.data.node is not None
        and model.code(target) == model.code(wrapper.data.node)
        and _remedy(wrapper, model).cut == ""
        and not _takes_gradients(target, model)
    )


def _takes_gradients(target: cst.BaseExpression, model: Model) -> bool:
    """Whether a variable is made a leaf with gradients somewhere, which must not reach the tensor outside."""
    binding = model.binding(target)
    return binding is not None and has_leaf(binding, model)


def _replacement(wrapper: Wrapper, cut: str, model: Model) -> list[Edit]:
    call, inner = wrapper.call.node, wrapper.data.node
    assert inner is not None
    text = model.source.text
    (start, end), (first, last) = model.span(call), model.span(inner)
    if "#" in text[start:first] + text[last:end]:
        raise NoFixError("a comment stands inside of the call")
    if isinstance(inner, cst.Attribute) and inner.attr.value == "data" and _is_tensor(inner.value, model):
        last = model.span(inner.value)[1]
    before, suffix = "", cut
    asked = wrapper.requires_grad.node
    if asked is not None and not is_name(asked, "False"):
        suffix += f".requires_grad_({model.code(asked).removeprefix('True')})"
    if suffix == ".requires_grad_()" and "\n" not in text[start:end] and _is_factory(inner, model):
        argued = Rewriter(model).add_argument(cst.ensure_type(inner, cst.Call), "requires_grad=True")
        return [Edit(start, first, ""), argued, Edit(last, end, "")]
    if not _holds_together(inner, suffix, model.parent(call)):
        before, suffix = "(", ")" + suffix
    alone = text[last:end].strip() == ")" and call.args[0].keyword is None and last == model.span(inner)[1]
    if alone and not call.lpar and "\n" in text[start:first] and not _fits_joined(wrapper, suffix, model):
        return [Edit(start, text.index("(", model.span(call.func)[1]), ""), Edit(end, end, suffix)]
    rewriter, given = Rewriter(model), text[first:last]
    if "\n" not in given:
        start, end = rewriter.around_only_argument(call, len(before + given + suffix)) or (start, end)
    aligned = rewriter.moved_left(inner, _columns(text, start, first) - len(before))
    return [Edit(start, first, before), *aligned, Edit(last, end, suffix)]


def _columns(text: str, start: int, first: int) -> int:
    """How far to the left what stands at `first` comes at `start`; from a line of its own, how far its further lines
    are indented from the line that it comes to."""
    begin = text.rfind("\n", 0, start) + 1
    if "\n" not in text[start:first]:
        return first - start
    indentation = len(text[begin:]) - len(text[begin:].lstrip(" \t"))
    return first - text.rfind("\n", 0, first) - 1 - indentation


def _is_factory(node: cst.BaseExpression, model: Model) -> bool:
    """Whether a tensor is made by a function of torch that can make it a leaf with gradients by itself."""
    if not isinstance(node, cst.Call) or node.lpar:
        return False
    call = model.call(node)
    return call.callee in _FACTORIES and call.argument("requires_grad").absent


def _fits_joined(wrapper: Wrapper, suffix: str, model: Model) -> bool:
    """Whether the tensor has room on the line of the call, when the others on its line are unwrapped too. If not, the
    parentheses of the call stay, and with them the line break behind the first one."""
    call, inner = wrapper.call.node, wrapper.data.node
    assert inner is not None
    text, (start, end), (first, last) = model.source.text, model.span(call), model.span(inner)
    line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    rest = text[end:] if line_end < 0 else text[end:line_end]
    others = (model.span(other.node) for other in model.calls_to(VARIABLE) if other is not wrapper.call)
    gone = sum(len("Variable()") for span in others if line_start <= span[0] and span[1] <= start)
    joined = text[line_start:start] + text[first:last] + suffix + rest
    return max(map(len, joined.splitlines())) - gone <= model.line_length


def _holds_together(inner: cst.BaseExpression, suffix: str, parent: cst.CSTNode | None) -> bool:
    """Whether the expression needs no parentheses where the call was."""
    if inner.lpar:
        return True
    is_atom = isinstance(inner, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
    if isinstance(parent, cst.Arg):
        return is_atom or not suffix
    if not is_atom and (suffix or not isinstance(parent, (cst.Assign, cst.Return, cst.Element, cst.BaseSimpleComp))):
        return False
    try:
        ast.parse(text_of(inner), mode="eval")
    except SyntaxError:  # it has line ends that only the parentheses of the call allowed
        return False
    return True
