"""Variables of a program that say whether it uses a GPU: `use_cuda`, `args.cuda`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.once import once_for_each
from torchlint.semantics.arguments import string_value
from torchlint.semantics.dataflow import text

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function, Scope
    from torchlint.semantics.model import Model

AVAILABLE = "torch.cuda.is_available"
_ASKS_FOR_GPU = re.compile(r"(?i)cuda|gpu|device|cpu")
_FLAG = re.compile(r"(?i)(^|[._])(cuda|gpus?)$")


def cuda_flag(model: Model, at: cst.CSTNode, moves: Iterable[cst.CSTNode]) -> str | None:
    """A variable or an attribute that is true at a place where the program uses a GPU, as it is written there.

    moves: copies to a GPU. The flag that all of them run under is one, too.
    """
    return _available(model, at) or flag_around(model, at, list(moves)) or _flag_of_device(model, at)


def needs_cuda(model: Model, function: Function, moves: Sequence[Call]) -> bool:
    """Whether a program cannot run without CUDA: it never asks whether there is any, and all copies, or the function
    itself, name it under no condition."""
    if "is_available" in model.source.text:
        return False
    if moves and all(_names_cuda(move) and _is_unconditional(move.node, model) for move in moves):
        return True
    return _runs_on_cuda_alone(model, function) or _runs_on_cuda_alone(model, model.functions[0])


@once_for_each
def _runs_on_cuda_alone(model: Model, function: Function) -> bool:
    return any(_names_cuda(call) and _is_unconditional(call.node, model) for call in function.calls)


def _names_cuda(call: Call) -> bool:
    """`x.cuda()`, `x.to("cuda")`, `torch.device("cuda")`"""
    if call.method == "cuda":
        return True
    is_device = call.method == "to" or call.callee == "torch.device"
    return is_device and bool(call.arguments) and (string_value(call.arguments[0].value) or "").startswith("cuda")


def _is_unconditional(node: cst.CSTNode, model: Model) -> bool:
    tests = [guard.test for guard in model.guards(node)]
    return not any(isinstance(above, (cst.IfExp, cst.Lambda)) for above in model.ancestors(node)) and not any(
        test is None or _ASKS_FOR_GPU.search(text(test)) for test in tests
    )


def _available(model: Model, at: cst.CSTNode) -> str | None:
    start = model.span(at)[0]
    for name, binding in _saying_available(model, model.scope(at)):
        if model.span(binding.writes[0].statement)[1] < start:
            return name
    attributes = model.once(assigned)
    visible = dict(_visible(model.scope(at))) if attributes else {}
    for written, assigns in attributes.items():
        owner = written.partition(".")[0]
        is_before = model.span(assigns[-1])[1] < start and all(_is_on_top(assign, model) for assign in assigns)
        if is_before and visible.get(owner) is _owner(assigns[-1], model) and _asks_torch(assigns[-1].value, model):
            return written
    return None


def flag_around(model: Model, at: cst.CSTNode, moves: Sequence[cst.CSTNode]) -> str | None:
    """A flag that all of the moves run under."""
    for written, test in _tests_around(model, moves[0]).items() if moves else ():
        is_around = all(written in _tests_around(model, move) for move in moves)
        if is_around and _FLAG.search(written) and means_the_same(test, at, model):
            return written
    return None


@once_for_each
def _tests_around(model: Model, move: cst.CSTNode) -> dict[str, cst.BaseExpression]:
    return {text(guard.test): guard.test for guard in model.guards(move) if guard.branch == "body" and guard.test}


def _flag_of_device(model: Model, at: cst.CSTNode) -> str | None:
    """`args.cuda` of `"cuda" if args.cuda else "cpu"`."""
    for node in model.nodes_of(cst.IfExp):
        assert isinstance(node, cst.IfExp)
        chooses = _names(node.body, "cuda") and _names(node.orelse, "cpu") and _FLAG.search(text(node.test)) is not None
        if chooses and model.span(node)[1] < model.span(at)[0] and means_the_same(node.test, at, model):
            return text(node.test)
    return None


def _names(node: cst.BaseExpression, device: str) -> bool:
    """`"cuda:0"` or `torch.device("cuda")`."""
    if isinstance(node, cst.Call) and len(node.args) == 1:
        node = node.args[0].value
    return (string_value(node) or "").startswith(device)


def means_the_same(test: cst.BaseExpression, at: cst.CSTNode, model: Model) -> bool:
    """Whether a flag, a variable or an attribute of one, means the same at a place."""
    root = test.value if isinstance(test, cst.Attribute) else test
    binding, visible = model.binding(root), dict(_visible(model.scope(at)))
    if not isinstance(root, cst.Name) or binding is None or visible.get(root.value) is not binding:
        return False
    set_at = [write.target for write in binding.writes]
    later = model.once(assigned).get(text(test), [])
    return len(set_at) == 1 and all(model.span(node)[0] < model.span(at)[0] for node in (*set_at, *later))


def _visible(scope: Scope | None) -> Iterator[tuple[str, Binding]]:
    """The variables of a scope and of those around it, the inner ones first."""
    seen: set[str] = set()
    while scope is not None:
        if scope.kind != "class":
            yield from ((name, binding) for name, binding in scope.bindings.items() if name not in seen)
            seen.update(scope.bindings)
        scope = scope.parent


def assigned(model: Model) -> dict[str, list[cst.Assign]]:
    """Attributes of variables, such as `args.cuda`, and where the file assigns them."""
    found: dict[str, list[cst.Assign]] = {}
    for assign in model.nodes_of(cst.Assign):
        match assign:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name()) as target)]):
                found.setdefault(text(target), []).append(assign)
    return found


def _owner(assign: cst.Assign, model: Model) -> Binding | None:
    target = assign.targets[0].target
    return model.binding(target.value) if isinstance(target, cst.Attribute) else None


@once_for_each
def _saying_available(model: Model, scope: Scope) -> list[tuple[str, Binding]]:
    visible = dict(_visible(scope)).items()
    return [(name, binding) for name, binding in visible if _says_available(binding, model)]


def _says_available(binding: Binding, model: Model) -> bool:
    """Bound once, at the top of its function, to `torch.cuda.is_available()` or to a conjunction with it."""
    if len(binding.writes) != 1:
        return False
    write = binding.writes[0]
    if write.kind != "assign" or write.unpacked or write.value is None:
        return False
    return _is_on_top(write.statement, model) and _asks_torch(write.value, model)


def _is_on_top(statement: cst.CSTNode, model: Model) -> bool:
    """Whether a statement runs whenever its function does."""
    block = model.parent(model.statement(statement))
    return isinstance(block, cst.Module) or isinstance(model.parent(block or statement), cst.FunctionDef)


def _asks_torch(value: cst.BaseExpression, model: Model) -> bool:
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, cst.BooleanOperation) and isinstance(part.operator, cst.And):
            parts += [part.left, part.right]
        elif isinstance(part, cst.Call) and model.call(part).callee == AVAILABLE:
            return True
    return False
