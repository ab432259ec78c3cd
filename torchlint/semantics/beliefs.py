"""What the model believes: of every expression on a line and how that line runs, or of a file as a whole.

For authors of rules, and for users who doubt a finding. `torchlint explain-model` prints it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.account import describe, history, how_often, of_loop
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.rule import Fact
    from torchlint.semantics.entities import Effects, Function
    from torchlint.semantics.model import Model

_EXPRESSIONS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BinaryOperation, cst.Comparison, cst.Await)
_GATES = {
    "log": "every so often, to log or save something",
    "phase": "in one phase of training or evaluation",
    "rank": "in one of the processes",
    "handler": "after an exception",
    "optional": "where an optional value is there",
    "other": "where the condition holds",
}
_GRADIENTS = {True: "on", False: "off", None: "not known: it depends on the caller, or on a decorator"}


@dataclass(frozen=True, slots=True)
class Belief:
    """Of one expression: its text, what it is, and the assignments that this follows from."""

    node: cst.CSTNode
    code: str
    value: str
    because: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class LineBeliefs:
    """`repeated`: the loop that runs the line again and again. `conditions`: those on its way, innermost first."""

    function: str
    repeated: Fact | None
    gradients: str
    conditions: tuple[tuple[cst.CSTNode, str], ...]
    beliefs: tuple[Belief, ...]


@dataclass(frozen=True, slots=True)
class FunctionBeliefs:
    """What the model believes about a function, in words."""

    function: Function
    parameters: tuple[tuple[str, str], ...]
    purpose: str
    effects: tuple[str, ...]
    gradients: str
    callers: tuple[str, ...]


def of_line(model: Model, number: int) -> LineBeliefs | None:
    """Beliefs about the expressions that begin on a 1-based line of the text; None where none does."""
    nodes = _on_line(model, number)
    if not nodes:
        return None
    first = nodes[0]
    function = model.function(first)
    return LineBeliefs(
        function="" if function.is_module else function.qualname,
        repeated=how_often(model, first),
        gradients=_GRADIENTS[model.grad_enabled(first)],
        conditions=tuple((guard.node, _GATES.get(guard.kind, guard.kind)) for guard in model.guards(first)),
        beliefs=tuple(_beliefs(model, nodes)),
    )


def _on_line(model: Model, number: int) -> list[cst.CSTNode]:
    text = model.source
    start = text.line_starts[number - 1]
    end = start + len(text.line(number))
    placed = [(model.span(node), node) for node in model.nodes_of(*_EXPRESSIONS) if not _is_part(model, node)]
    found = [(span, node) for span, node in placed if start <= span[0] < end]
    return [node for _, node in sorted(found, key=lambda item: (item[0][0], -item[0][1]))]


def _is_part(model: Model, node: cst.CSTNode) -> bool:
    """Names that are no expressions: of an attribute, a keyword, a method that is called."""
    parent = model.parent(node)
    if isinstance(parent, cst.Attribute):
        return node is parent.attr
    if isinstance(parent, cst.Arg):
        return node is parent.keyword
    return isinstance(parent, (cst.ImportAlias, cst.ImportFrom, cst.FunctionDef, cst.ClassDef)) or (
        isinstance(parent, cst.Call) and node is parent.func and model.value(node).kind is Kind.UNKNOWN
    )


def _beliefs(model: Model, nodes: list[cst.CSTNode]) -> Iterator[Belief]:
    seen: set[str] = set()
    for node in nodes:
        code = " ".join(model.code(node).split())
        if code not in seen:
            seen.add(code)
            because = tuple(fact for fact in history(model, [node]) if fact.node is not node)
            yield Belief(node, code, describe(model.value(node)), because)


def of_functions(model: Model) -> Iterator[FunctionBeliefs]:
    """Of every function of the file, in the order of the text."""
    for function in model.functions:
        if not isinstance(function.node, cst.FunctionDef):
            continue
        yield FunctionBeliefs(
            function=function,
            parameters=tuple((name, describe(function.parameter(name))) for name in function.params),
            purpose=_purpose(function),
            effects=tuple(_effects(model.effects(function))),
            gradients=_GRADIENTS[model.grad_enabled(function.node.body)],
            callers=(
                *(model.place(call.node) for call in function.callers),
                *dict.fromkeys(call.file_name for call in function.foreign_callers),
            ),
        )


def _purpose(function: Function) -> str:
    if function.is_step:
        return "one call is one training step"
    return "one call is a pass over data" if function.is_pass else ""


def _effects(effects: Effects) -> Iterator[str]:
    for name in effects.categories():
        if effects.has(name):
            here = bool(getattr(effects, name))
            yield name.replace("_", " ") + ("" if here else " (in another file)")


def of_loops(model: Model) -> Iterator[tuple[cst.CSTNode, str]]:
    """Of every loop of statements, what it is for."""
    for loop in model.loops:
        if not loop.is_comprehension:
            yield loop.node, of_loop(model, loop)
