"""What a file hands to a function of another one that it has not made itself: `main.py` gives `train.py` the loaders of
`data.py`, or those that `train.py` made.

The model of a caller is made without a look at the files around it, so that it does not know what these return.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import parameter_of_function
from torchlint.semantics.taken_apart import place_of
from torchlint.semantics.transfer import Arguments
from torchlint.semantics.values import Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Write
    from torchlint.semantics.model import Model

_KEEPING = frozenset(["to", "cuda", "cpu", "train", "eval", "float", "double", "half"])
_DEPTH = 6
_OBJECTS = (Kind.LOADER, Kind.DATASET, Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.DEVICE)


def made_elsewhere(model: Model, node: cst.BaseExpression, file: str) -> tuple[Model, Value] | None:
    """The object that a function of a third file has returned for an expression, as the model of that file knows it;
    None of numbers and tensors, which what the function is given decides upon, and of what `file` has made.

    It may have come to the expression through functions of the file, and have been moved or wrapped on the way: all
    their calls hand in the same one.
    """
    work, asked = [node], set()
    found: tuple[Model, Value] | None = None
    for each in work:  # it grows while the loop runs
        made, write = _source(model, each)
        parameter = model.binding(made) if write is not None and write.kind == "parameter" else None
        if parameter is not None:
            given = _given(model, parameter) if parameter not in asked else []
            if given is None:
                return None
            asked.add(parameter)
            work += given
            continue
        one = _returned(model, made, file, write)
        if one is None or (found is not None and one[1] != found[1]):
            return None
        found = one
    return found


def _source(model: Model, node: cst.BaseExpression) -> tuple[cst.BaseExpression, Write | None]:
    """What a name stands for, and the object behind calls that give it back; with the write of a name that is a
    parameter, or one of several that a call returns."""
    for _ in range(_DEPTH):
        if isinstance(node, (cst.Name, cst.Attribute)):
            binding = model.binding(node)
            writes = [w for w in binding.writes if not _is_itself(model, w, binding)] if binding is not None else []
            write = writes[0] if len(writes) == 1 else None
            if write is None or write.kind == "parameter":
                return node, write
            if write.kind != "assign" or write.value is None:
                return node, None
            if write.unpacked:
                return write.value, write
            node = write.value
        elif (kept := _kept(model, node)) is not None:
            node = kept
        else:
            break
    return node, None


def _returned(model: Model, node: cst.BaseExpression, file: str, write: Write | None) -> tuple[Model, Value] | None:
    """What a function of a third file returns, or what of it is written."""
    name = model.qualified(node.func) if isinstance(node, cst.Call) else None
    found = model.function_behind(Value(Kind.FUNCTION, ref=name)) if name is not None else None
    if found is None:
        return None
    home, function = found
    if os.path.abspath(home.source.path) == file:
        return None
    value: Value | None = home.returned(function, Arguments(open=True), True, bound=False)
    if value is not None and write is not None:
        place = place_of(model, write)
        items = value.items or ()
        value = items[place] if place is not None and place < len(items) else None
    return (home, value) if value is not None and value.is_(*_OBJECTS) else None


def _given(model: Model, parameter: Binding) -> list[cst.BaseExpression] | None:
    """What the calls of a function within its file hand to it; None where not each of them does, or others may."""
    function = parameter.scope_function
    given = [
        arg.value
        for call in function.callers
        for arg in call.arguments
        if parameter_of_function(call, function, arg) is parameter
    ]
    return given if given and len(given) == len(function.callers) and not function.passed_around else None


def _kept(model: Model, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`net` of `net.to(device)`, which is the same object."""
    call = model.call(node) if isinstance(node, cst.Call) else None
    return call.receiver if call is not None and call.method in _KEEPING else None


def _is_itself(model: Model, write: Write, binding: Binding) -> bool:
    """`net = net.to(device)`"""
    kept = _kept(model, write.value) if write.value is not None and write.kind == "assign" else None
    return kept is not None and model.binding(kept) is binding


def handed_back(
    call: Call, model: Model, makers: Mapping[cst.CSTNode, str]
) -> Iterator[tuple[int | str, str, int | None]]:
    """`train, test = get_loaders()` and `evaluate(test)`, both of functions of one other file."""
    for position, arg in enumerate(call.node.args):
        if arg.star:
            return
        binding = model.binding(arg.value)
        write = binding.writes[0] if binding is not None and len(binding.writes) == 1 else None
        maker = makers.get(write.value) if write is not None and write.value is not None else None
        if write is None or maker is None or write.kind != "assign":
            continue
        key = arg.keyword.value if arg.keyword is not None else position
        place = place_of(model, write) if write.unpacked else None
        if place is not None or not write.unpacked:
            yield key, maker, place
