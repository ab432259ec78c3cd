"""What one walk finds in a file: functions, classes, loops, calls and bindings, and the surroundings of every node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.entities import Binding, Call, Class, Function, Loop, Scope


class Context(NamedTuple):
    """Where a node stands: its function, scope and innermost loop, and the statement it belongs to."""

    function: Function
    scope: Scope
    loop: Loop | None
    statement: cst.CSTNode | None


Path = tuple[Binding, tuple[str, ...]]  # a variable, or a `self.x`, and the attributes that lead on from there


@dataclass(slots=True)
class Scopes:
    """Everything one walk finds. `parents` and `contexts` hold every node that is code."""

    module: cst.Module
    parents: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)
    contexts: dict[cst.CSTNode, Context] = field(default_factory=dict)
    functions: list[Function] = field(default_factory=list)
    classes: list[Class] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    bindings: dict[cst.CSTNode, Binding] = field(default_factory=dict)  # of a Name or a `self.x`
    function_of: dict[cst.CSTNode, Function] = field(default_factory=dict)  # of a def or lambda
    class_of: dict[cst.CSTNode, Class] = field(default_factory=dict)
    loop_of: dict[cst.CSTNode, Loop] = field(default_factory=dict)
    call_of: dict[cst.CSTNode, Call] = field(default_factory=dict)
    star_imports: list[str] = field(default_factory=list)
    modules: set[Path] = field(default_factory=set)  # what methods are called on that only modules have

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What a node stands in, the innermost first; the module last."""
        parent = self.parents.get(node)
        while parent is not None:
            yield parent
            parent = self.parents.get(parent)

    def declaring(self, scope: Scope, name: str) -> Scope:
        """The scope that a name belongs to where `global` or `nonlocal` may say so."""
        how = scope.outer.get(name)
        if how == "global":
            return self.functions[0].scope
        if how == "nonlocal":
            outer = scope.parent
            while outer is not None and (outer.kind == "class" or name not in outer.bindings):
                outer = outer.parent
            return outer or scope
        return scope

    def path(self, node: cst.CSTNode) -> Path | None:
        """`trainer` and `("model",)` of `trainer.model`."""
        names: list[str] = []
        while isinstance(node, cst.Attribute) and node not in self.bindings:
            names.append(node.attr.value)
            node = node.value
        binding = self.bindings.get(node)
        return (binding, tuple(reversed(names))) if binding is not None and names else None

    def lookup(self, name: str, scope: Scope | None) -> Binding | None:
        """The variable that a name means in a scope."""
        first = True
        while scope is not None:
            if scope.kind != "class" or first:
                where = self.declaring(scope, name)
                if name in where.bindings:
                    return where.bindings[name]
            first = first and scope.kind == "comprehension"
            scope = scope.parent
        return None
