"""The arguments of a call wherever they were written: by position, by keyword, or in a dict behind `**`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from torchlint.semantics.entities import Argument, ArgumentState, Binding, Call
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.values import Kind, Value

_ABSENT = Argument(ArgumentState.ABSENT)
_HIDDEN = Argument(ArgumentState.HIDDEN)
_DEPTH = 6
# What a dict may be asked without anything being written to it.
_READING_METHODS = frozenset({"get", "items", "keys", "values", "copy"})

Entries = dict[str, tuple[cst.BaseExpression, cst.CSTNode]]


def string_value(node: cst.CSTNode | None) -> str | None:
    """The text of a plain string literal."""
    if not isinstance(node, cst.SimpleString):
        return None
    text = node.value
    if text[0] in "'\"" and "\\" not in text:
        quotes = 3 if text[:3] in ("'''", '"""') and len(text) >= 6 else 1
        return text[quotes:-quotes]
    value = node.evaluated_value
    return value if isinstance(value, str) else None


def _with_partial(call: Call) -> Sequence[cst.Arg]:
    """The arguments of a call, among those that functools.partial has filled in: positions before, keywords behind."""
    if not call.partial:
        return call.node.args
    partial = next(iter(call.partial))
    if not isinstance(partial, cst.Call) or len(call.partial) > 1:
        return call.node.args
    filled = partial.args[1:]
    return [
        *(arg for arg in filled if arg.keyword is None and arg.star != "**"),
        *call.node.args,
        *(arg for arg in filled if arg.keyword is not None or arg.star == "**"),
    ]


class ArgumentFinder:
    """Answers `Call.argument`."""

    def __init__(self, scopes: Scopes, value_of: Callable[[cst.CSTNode], Value]) -> None:
        self._scopes = scopes
        self._value_of = value_of
        self._dicts: dict[Binding, Entries | None] = {}

    def __call__(self, call: Call, name: str, position: int | None) -> Argument:
        index = 0
        starred = False
        hidden = len(call.partial) > 1
        for arg in _with_partial(call):
            if arg.star == "*":
                starred = True
            elif arg.star == "**":
                entries = self.entries(arg.value)
                if entries is None:
                    hidden = True
                elif name in entries:
                    node, entry = entries[name]
                    return Argument(ArgumentState.GIVEN, node, self._value_of(node), None, entry)
            elif arg.keyword is not None:
                if arg.keyword.value == name:
                    return Argument(ArgumentState.GIVEN, arg.value, self._value_of(arg.value), arg)
            else:
                if index == position and not starred:
                    return Argument(ArgumentState.GIVEN, arg.value, self._value_of(arg.value), arg)
                index += 1
        if hidden or (starred and position is not None):
            return _HIDDEN
        return _ABSENT

    def entries(self, node: cst.BaseExpression, depth: int = 0) -> Entries | None:
        """Every key that a dict expression may hold, with where it is written; None when not all of it is in sight."""
        if depth > _DEPTH:
            return None
        match node:
            case cst.Dict():
                return self._literal(node, depth)
            case cst.Call(func=cst.Name(value="dict")):
                return self._constructor(node, depth)
            case cst.IfExp():
                return self._merged(self.entries(node.body, depth + 1), self.entries(node.orelse, depth + 1))
            case cst.BinaryOperation(operator=cst.BitOr()):
                return self._merged(self.entries(node.left, depth + 1), self.entries(node.right, depth + 1))
            case cst.Name() | cst.Attribute():
                binding = self._scopes.bindings.get(node)
                return None if binding is None else self._of_binding(binding, depth)
            case _:
                return None

    @staticmethod
    def _merged(first: Entries | None, second: Entries | None) -> Entries | None:
        return None if first is None or second is None else {**first, **second}

    def _literal(self, node: cst.Dict, depth: int) -> Entries | None:
        found: Entries = {}
        for element in node.elements:
            if isinstance(element, cst.StarredDictElement):
                inner = self.entries(element.value, depth + 1)
                if inner is None:
                    return None
                found.update(inner)
            elif isinstance(element, cst.DictElement):
                key = string_value(element.key)
                if key is None:
                    return None
                found[key] = (element.value, element)
        return found

    def _constructor(self, node: cst.Call, depth: int) -> Entries | None:
        found: Entries = {}
        for arg in node.args:
            if arg.keyword is not None:
                found[arg.keyword.value] = (arg.value, arg)
                continue
            inner = self.entries(arg.value, depth + 1) if arg.star != "*" else None
            if inner is None:
                return None
            found.update(inner)
        return found

    def _of_binding(self, binding: Binding, depth: int) -> Entries | None:
        if binding not in self._dicts:
            self._dicts[binding] = None  # a dict that contains itself is not in sight
            self._dicts[binding] = self._collect(binding, depth)
        return self._dicts[binding]

    def _collect(self, binding: Binding, depth: int) -> Entries | None:
        found: Entries = {}
        for write in binding.writes:
            if write.kind not in ("assign", "augmented") or write.unpacked or write.value is None:
                return None
            inner = self.entries(write.value, depth + 1)
            if inner is None:
                return None
            found.update(inner)
        for read in binding.reads:
            inner = self._added_by(read, depth)
            if inner is None:
                return None
            found.update(inner)
        return found

    def _added_by(self, read: cst.CSTNode, depth: int) -> Entries | None:
        """What the use of a dict at `read` adds to it; None when it may add anything."""
        parent = self._scopes.parents[read]
        above = self._scopes.parents.get(parent)
        match parent:
            case cst.Arg(star="**"):
                return {}
            case cst.Arg():
                return {} if isinstance(above, cst.Call) and self._only_reads(above) else None
            case cst.Attribute() if isinstance(above, cst.Call) and above.func is parent:
                return self._method(parent.attr.value, above, depth)
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]) if parent.value is read:
                return self._item_stored(parent, key)
            case cst.StarredDictElement() | cst.For() | cst.Comparison() | cst.ComparisonTarget() | cst.If():
                return {}
            case _:
                return None

    def _only_reads(self, call: cst.Call) -> bool:
        """Whether a function leaves a dict that it is given as it is."""
        match call.func:
            case cst.Name(value="print" | "len" | "dict" | "str"):
                return True
            case cst.Attribute(value=receiver, attr=cst.Name(value="update")):
                return self._value_of(receiver).kind is Kind.DICT
        return False

    def _method(self, method: str, call: cst.Call, depth: int) -> Entries | None:
        if method in _READING_METHODS:
            return {}
        if method == "update":
            return self._constructor(call, depth)
        if method == "setdefault" and len(call.args) == 2:
            key = string_value(call.args[0].value)
            return None if key is None else {key: (call.args[1].value, call.args[1])}
        return None

    def _item_stored(self, subscript: cst.Subscript, key: cst.BaseExpression) -> Entries | None:
        target = self._scopes.parents.get(subscript)
        if not isinstance(target, cst.AssignTarget):
            return {} if not isinstance(target, (cst.AugAssign, cst.Del)) else None
        assign = self._scopes.parents[target]
        name = string_value(key)
        if name is None or not isinstance(assign, cst.Assign):
            return None
        return {name: (assign.value, assign)}
