"""Meters: classes of the project that add numbers up and give their mean, such as `AverageMeter`.

What such a class does with a number it does with a tensor of one number, too, so that the number may stay on the device
until somebody reads the mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.once import once_for_each
from torchlint.semantics.tree import is_name, walk
from torchlint.word_set import word_set

if TYPE_CHECKING:
    from torchlint.semantics.entities import Class, Function
    from torchlint.semantics.model import Model

_ARITHMETIC = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
_HOST_CALLS = word_set("max min abs float int len")
_INTERCEPTING = word_set("__setattr__ __getattribute__ __getattr__")
_BARE = (cst.Name, cst.Attribute)
_NUMBER_FORMATS = re.compile(r"(?:[^%]|%%|%[-+ 0#]*\d*(?:\.\d+)?[eEfFgG])*")


@dataclass(frozen=True, slots=True)
class Meter:
    """What a class does with the numbers that one of its methods is given.

    number: the parameter of that method that is added up. sums: the attributes that are tensors once a tensor was
    given. numbers: the other attributes. readers: methods and properties that compute from the sums and do no more.
    resets: methods that only set numbers. texts: methods that put the sums into a text, by a format; `__str__` where
    that, or `__repr__`, is one.
    """

    number: str
    sums: frozenset[str]
    numbers: frozenset[str]
    readers: frozenset[str]
    resets: frozenset[str]
    texts: frozenset[str]

    @property
    def shows(self) -> bool:
        """Whether `str()` of an object is such a text."""
        return "__str__" in self.texts


class _Put(NamedTuple):
    """`self.name = value`, or `self.name += value`."""

    name: str
    value: cst.BaseExpression
    is_added: bool


@once_for_each
def _answers(home: Model, asked: tuple[Class, str]) -> Meter | None:
    return _Reading(home, *asked).meter()


def meter_of(home: Model, cls: Class, method: str) -> Meter | None:
    """What a class does with what is given to a method; None where that is more than arithmetic.

    home: the model of the file of the class.
    """
    return _answers(home, (cls, method))


def is_formatted(model: Model, node: cst.CSTNode) -> bool:
    """Whether all that becomes of a value is a text, as of a number of the same value: a tensor of one number formats
    like the number."""
    above = model.parent(node)
    match above:
        case cst.FormattedStringExpression(conversion=None, equal=None):
            return True
        case cst.Arg():
            call = model.parent(above)
            return isinstance(call, cst.Call) and _is_format(call)
        case cst.BinaryOperation(operator=cst.Modulo(), right=right, left=text) if right is node:
            return _takes_numbers(text)
        case cst.Element():
            whole = model.parent(above)
            outer = model.parent(whole) if isinstance(whole, cst.Tuple) else None
            return isinstance(outer, cst.BinaryOperation) and outer.right is whole and _takes_numbers(outer.left)
    return False


def _is_format(call: cst.Call) -> bool:
    """`"...".format(...)`, or of a text that was put together."""
    func = call.func
    return isinstance(func, cst.Attribute) and func.attr.value == "format" and not _converts(func.value)


def _converts(code: cst.CSTNode) -> bool:
    """Whether a text asks for `str` or `repr` of what goes into it: `"{val!r}"`."""
    return any("!" in part.value for part in walk(code) if isinstance(part, cst.SimpleString))


def _takes_numbers(text: cst.BaseExpression) -> bool:
    """`"%d of %.3f"` makes numbers of what it is given, but an integer of a float is another than that of a tensor."""
    is_text = isinstance(text, (cst.SimpleString, cst.ConcatenatedString))
    value = text.evaluated_value if isinstance(text, (cst.SimpleString, cst.ConcatenatedString)) else None
    return is_text and isinstance(value, str) and _NUMBER_FORMATS.fullmatch(value) is not None


def texts_of_list(model: Model, call: cst.Call, argument: cst.Arg, meter: Meter) -> list[cst.BaseExpression] | None:
    """Where a text is made of the meters in a list that a class of the project is given, such as `ProgressMeter`: the
    calls of the methods of the object that the call makes. None where the class does more with them."""
    match model.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]):
            binding, ref = model.binding(target), model.value(target).ref
        case _:
            return None
    behind = model.class_behind(ref) if ref is not None else None
    if binding is None or binding.shared or len(binding.writes) != 1 or behind is None:
        return None
    if not _makes_texts(*behind, _parameter(behind[1], call, argument), meter):
        return None
    found: list[cst.BaseExpression] = []
    for name in binding.reads:
        method = model.parent(name)
        shown = model.parent(method) if isinstance(method, cst.Attribute) else None
        if not isinstance(shown, cst.Call) or shown.func is not method:
            return None
        found.append(shown)
    return found


def _parameter(cls: Class, call: cst.Call, argument: cst.Arg) -> str | None:
    """The name under which the constructor of a class gets an argument of a call."""
    init = cls.methods.get("__init__")
    if argument.keyword is not None:
        return argument.keyword.value
    position = call.args.index(argument) + 1
    return init.params[position] if init is not None and position < len(init.params) else None


def _makes_texts(home: Model, cls: Class, parameter: str | None, meter: Meter) -> bool:
    """Whether a class keeps a list of meters and makes a text of each of them, and no more."""
    init = cls.methods.get("__init__")
    if init is None or parameter is None or any(base != "builtins.object" for base in cls.bases):
        return False
    puts = [put for put in _puts(init) or () if any(is_name(part, parameter) for part in walk(put.value))]
    if len(puts) != 1 or not isinstance(puts[0].value, cst.Name):
        return False
    return all(
        isinstance(home.parent(part), cst.AssignTarget) or _is_walked_for_texts(home, part, meter)
        for method in cls.methods.values()
        for part in walk(method.node)
        if isinstance(part, cst.Attribute) and _own_attribute(part) == puts[0].name
    )


def _is_walked_for_texts(home: Model, parts: cst.CSTNode, meter: Meter) -> bool:
    """`[str(meter) for meter in self.meters]`"""
    match home.parent(parts):
        case cst.For(target=cst.Name() as target, iter=walked) | cst.CompFor(target=cst.Name() as target, iter=walked):
            binding = home.binding(target)
            return (
                walked is parts and binding is not None and all(_is_text(home, read, meter) for read in binding.reads)
            )
    return False


def _is_text(home: Model, name: cst.CSTNode, meter: Meter) -> bool:
    """`str(meter)`, `f"{meter}"`, `meter.summary()`"""
    above = home.parent(name)
    outer = home.parent(above) if above is not None else None
    match above:
        case cst.FormattedStringExpression(equal=None):
            return meter.shows
        case cst.Arg() if isinstance(outer, cst.Call):
            return meter.shows and home.call(outer).callee == "builtins.str"
        case cst.Attribute(attr=method) if isinstance(outer, cst.Call) and outer.func is above:
            return method.value in meter.texts
    return False


class _Reading:
    def __init__(self, home: Model, cls: Class, method: str) -> None:
        self.home, self.cls, self.name = home, cls, method
        self.sums: set[str] = set()

    def meter(self) -> Meter | None:
        cls, update = self.cls, self.cls.methods.get(self.name)
        derives = any(base != "builtins.object" for base in cls.bases)
        if update is None or derives or cls.node.decorators or cls.is_module or update.decorators:
            return None
        if not _INTERCEPTING.isdisjoint(cls.methods):
            return None
        puts = _puts(update)
        if not puts or len(update.params) < 2 or update.is_generator or update.returns:
            return None
        number = update.params[1]
        while grown := {put.name for put in puts if self._is_of(put.value, number)} - self.sums:
            self.sums |= grown
        if not self.sums or not all(self._adds_up(put, puts, update, number) for put in puts):
            return None
        others = [method for method in cls.methods.values() if method is not update]
        resets = frozenset(method.name for method in others if self._only_sets_numbers(method))
        readers = frozenset(method.name for method in others if self._computes(method))
        numbers = frozenset(name for name, binding in cls.attributes.items() if binding.writes) - self.sums
        texts = {method.name for method in others if method.returns and self._only_formats(method)} - readers
        if "__format__" in cls.methods:
            texts.clear()
        elif "__repr__" in texts and "__str__" not in cls.methods:
            texts.add("__str__")
        return Meter(number, frozenset(self.sums), numbers, readers, resets, frozenset(texts))

    def _is_of(self, value: cst.BaseExpression, number: str | None) -> bool:
        """Whether a value is made of what is added up."""
        return any(self._is_sum(part) or is_name(part, number) for part in walk(value))

    def _is_sum(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Attribute) and is_name(node.value, "self") and node.attr.value in self.sums

    def _adds_up(self, put: _Put, puts: list[_Put], update: Function, number: str) -> bool:
        """Whether one assignment does nothing but arithmetic, and changes no tensor that has another name, too."""
        if update.own_name != "self" or not self._is_arithmetic(put.value, number, update.params):
            return False
        if not put.is_added or put.name not in self.sums:
            return True
        taken = (other.value for other in puts if isinstance(other.value, _BARE))
        is_taken = any(isinstance(value, cst.Attribute) and value.attr.value == put.name for value in taken)
        return not is_taken and not any(other.name == put.name and isinstance(other.value, _BARE) for other in puts)

    def _is_arithmetic(self, node: cst.BaseExpression, number: str | None, params: list[str]) -> bool:
        if not self._is_of(node, number):
            return self._is_host(node, params)
        match node:
            case cst.BinaryOperation(left=left, operator=operator, right=right):
                divides = isinstance(operator, cst.Divide)
                if not isinstance(operator, _ARITHMETIC) or (divides and self._is_of(right, number)):
                    return False
                return all(self._is_arithmetic(side, number, params) for side in (left, right))
            case cst.IfExp(test=test, body=body, orelse=orelse):
                sides = all(self._is_arithmetic(side, number, params) for side in (body, orelse))
                return sides and not self._is_of(test, number) and self._is_host(test, params)
            case cst.Name() | cst.Attribute():
                return self._is_sum(node) or is_name(node, number)
        return False

    def _is_host(self, node: cst.BaseExpression, params: list[str]) -> bool:
        """Numbers, attributes of the object, parameters, and what is computed of these."""
        for part in walk(node):
            match part:
                case cst.Call(func=cst.Name(value=name)) if name in _HOST_CALLS:
                    pass
                case cst.Call() | cst.Lambda() | cst.Await() | cst.NamedExpr():
                    return False
                case cst.Name(value="self"):
                    if not isinstance(self.home.parent(part), cst.Attribute):
                        return False
        return True

    def _only_sets_numbers(self, method: Function) -> bool:
        puts = _puts(method)
        if puts is None or method.own_name != "self" or method.decorators:
            return False
        return all(
            put.name not in self.sums or (isinstance(put.value, (cst.Integer, cst.Float)) and not put.is_added)
            for put in puts
        ) and not any(self._is_of(put.value, None) for put in puts)

    def _computes(self, method: Function) -> bool:
        """`return self.sum / self.count`, perhaps not before something was added."""
        if method.own_name != "self" or not isinstance(method.node, cst.FunctionDef) or len(method.params) != 1:
            return False
        if method.decorators and not method.is_property:
            return False
        found = False
        for line in _lines(method):
            match line:
                case cst.Return(value=cst.BaseExpression() as value) if self._is_arithmetic(value, None, []):
                    found = True
                case cst.If(test=test, body=body, orelse=None) if not self._is_of(test, None):
                    inner = [small for part in body.body for small in getattr(part, "body", [part])]
                    if not all(isinstance(each, cst.Return) and _is_constant(each.value) for each in inner):
                        return False
                case cst.Expr(value=cst.SimpleString()):
                    pass
                case _:
                    return False
        return found

    def _only_formats(self, method: Function) -> bool:
        """Whether a method puts the sums into a text, each by a format, and looks at them in no other way."""
        if method.own_name != "self" or len(method.params) != 1 or _converts(method.node):
            return False
        for part in (part for line in _lines(method) for part in walk(line)):
            above = self.home.parent(part)
            if isinstance(part, cst.Name) and part.value == "self" and not isinstance(above, cst.Attribute):
                return False
            if not isinstance(part, cst.Attribute) or not is_name(part.value, "self"):
                continue
            if isinstance(above, cst.Call) and above.func is part:
                return False
            if (self._is_sum(part) or part.attr.value == "__dict__") and not is_formatted(self.home, part):
                return False
        return True


def _is_constant(value: cst.BaseExpression | None) -> bool:
    return isinstance(value, (cst.Integer, cst.Float))


def _lines(method: Function) -> Iterator[cst.CSTNode]:
    """The statements of a function, each small one for itself."""
    body = method.node.body
    for line in body.body if isinstance(body, cst.BaseSuite) else ():
        if isinstance(line, cst.SimpleStatementLine):
            yield from line.body
        else:
            yield line


def _puts(method: Function) -> list[_Put] | None:
    """What a method puts into the attributes of its object, if it does nothing else; it may call one of its methods
    that does the same, `self.reset()`, which is looked at for itself."""
    found: list[_Put] = []
    for line in _lines(method):
        match line:
            case cst.Pass() | cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()):
                pass
            case cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name(value="self"), attr=called), args=[])) if (
                method.name == "__init__" and method.cls is not None and called.value in method.cls.methods
            ):
                pass
            case cst.Assign(targets=targets, value=value):
                for target in targets:
                    name = _own_attribute(target.target)
                    if name is None:
                        return None
                    found.append(_Put(name, value, is_added=False))
            case cst.AnnAssign(target=target, value=cst.BaseExpression() as value):
                if (name := _own_attribute(target)) is None:
                    return None
                found.append(_Put(name, value, is_added=False))
            case cst.AugAssign(target=target, operator=cst.AddAssign(), value=value):
                if (name := _own_attribute(target)) is None:
                    return None
                found.append(_Put(name, value, is_added=True))
            case _:
                return None
    return found


def _own_attribute(node: cst.BaseExpression) -> str | None:
    return node.attr.value if isinstance(node, cst.Attribute) and is_name(node.value, "self") else None
