"""Subclasses of data loaders: whether they pass on what they are given, and yield what the loader draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Class, Function


def constructor(cls: Class) -> Call | None:
    """The call of `super().__init__` in the constructor of the class, if it has one."""
    init = cls.methods.get("__init__")
    return next((call for call in init.calls if _is_super(call, "__init__")), None) if init is not None else None


def hands_arguments_on(call: Call) -> bool:
    """Whether `super().__init__` gets all that the constructor around it is given, each at its place."""
    if not isinstance(call.function.node, cst.FunctionDef):
        return False
    params = call.function.node.params
    taken = [("", param.name.value) for param in (*params.posonly_params, *params.params)][1:]
    if isinstance(params.star_arg, cst.Param):
        taken.append(("*", params.star_arg.name.value))
    if params.star_kwarg is None or params.kwonly_params:
        return False
    taken.append(("**", params.star_kwarg.name.value))
    given = [(arg.star, arg.value) for arg in call.arguments if arg.keyword is None]
    return taken == [(star, value.value if isinstance(value, cst.Name) else None) for star, value in given]


def takes_for_itself(call: Call) -> frozenset[str] | None:
    """The names of what the constructor around `super().__init__` does not hand on, if it hands on all else that it is
    given by keyword, as `**options`, and does nothing else with that."""
    if not isinstance(call.function.node, cst.FunctionDef):
        return None
    params = call.function.node.params
    rest = params.star_kwarg.name.value if params.star_kwarg is not None else None
    handed = [arg.value for arg in call.arguments if arg.star == "**"]
    uses = [node for node in walk(call.function.node.body) if isinstance(node, cst.Name) and node.value == rest]
    if rest is None or isinstance(params.star_arg, cst.Param) or not handed or handed != uses:
        return None
    return frozenset(param.name.value for param in (*params.params, *params.kwonly_params))


def yields_batches(cls: Class) -> bool:
    """Whether iterating over an object of the class yields the batches that its base class draws, as they are."""
    method = cls.methods.get("__iter__")
    if method is None:
        return True
    if not any(_is_super(call, "__iter__") for part in cls.methods.values() for call in part.calls):
        return False
    drawn = {loop.target.value for loop in method.loops if isinstance(loop.target, cst.Name)}
    yielded = all(_is_drawn(node.value, drawn) for node in method.yields)
    return yielded and all(node.value is not None and _passes_batches(node.value, method) for node in method.returns)


def keeps_iterator(cls: Class) -> bool:
    """Whether iterating over an object of the class goes on with an iterator that it has, whose workers live on."""
    method = cls.methods.get("__iter__")
    return method is not None and not any(_is_super(call, "__iter__") for call in method.calls)


def _is_drawn(node: cst.BaseExpression | cst.From | None, drawn: set[str]) -> bool:
    match node:
        case cst.From() | cst.Call(func=cst.Name(value="next")):
            return True
        case cst.Name(value=name):
            return name in drawn
    return False


def _passes_batches(returned: cst.BaseExpression, method: Function) -> bool:
    """`super().__iter__()`, or an iterator around it: `BackgroundGenerator(super().__iter__())`."""
    call = next((call for call in method.calls if call.node is returned), None)
    if call is None:
        return False
    inner = [one.node for one in method.calls if _is_super(one, "__iter__")]
    return call.node in inner or any(arg.value in inner for arg in call.arguments)


def _is_super(call: Call, method: str) -> bool:
    match call.node.func:
        case cst.Attribute(value=cst.Call(func=cst.Name(value="super")), attr=cst.Name(value=name)):
            return name == method
    return False
