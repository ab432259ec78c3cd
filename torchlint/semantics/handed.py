"""What a file hands to a function of another one that it has not made itself: `main.py` gives `train.py` the loaders of
`data.py`, or those that `train.py` made.

The model of a caller is made without a look at the files around it, so that it does not know what these return.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.taken_apart import place_of
from torchlint.semantics.transfer import Arguments
from torchlint.semantics.values import Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Write
    from torchlint.semantics.model import Model

_OBJECTS = (Kind.LOADER, Kind.DATASET, Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.DEVICE)


def made_elsewhere(model: Model, node: cst.BaseExpression, file: str) -> tuple[Model, Value] | None:
    """The object that a function of a third file has returned for an expression, as the model of that file knows it;
    None of numbers and tensors, which what the function is given decides upon, and of what `file` has made."""
    write: Write | None = None
    made: cst.BaseExpression | None = node
    if isinstance(node, (cst.Name, cst.Attribute)):
        binding = model.binding(node)
        write = binding.writes[0] if binding is not None and len(binding.writes) == 1 else None
        made = write.value if write is not None and write.kind == "assign" else None
    name = model.qualified(made.func) if isinstance(made, cst.Call) else None
    found = model.function_behind(Value(Kind.FUNCTION, ref=name)) if name is not None else None
    if found is None:
        return None
    home, function = found
    if os.path.abspath(home.source.path) == file:
        return None
    value: Value | None = home.returned(function, Arguments(open=True), True, bound=False)
    if value is not None and write is not None and write.unpacked:
        place = place_of(model, write)
        items = value.items or ()
        value = items[place] if place is not None and place < len(items) else None
    return (home, value) if value is not None and value.is_(*_OBJECTS) else None


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
