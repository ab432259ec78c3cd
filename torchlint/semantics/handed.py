"""What a file hands to a function of another one that it has not made itself: `main.py` gives `train.py` the loaders of
`data.py`, or those that `train.py` made.

The model of a caller is made without a look at the files around it, so that it does not know what these return.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

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
        value = _part(model, value, write)
    return (home, value) if value is not None and value.is_(*_OBJECTS) else None


def _part(model: Model, value: Value, write: Write) -> Value | None:
    """Of what `train, test = load()` takes apart, what a target gets."""
    statement = model.small_statement(write.target)
    for target in statement.targets if isinstance(statement, cst.Assign) else ():
        parts = target.target.elements if isinstance(target.target, (cst.Tuple, cst.List)) else ()
        if value.items is not None and len(value.items) == len(parts):
            for part, item in zip(parts, value.items):
                if part.value is write.target and not isinstance(part, cst.StarredElement):
                    return item
    return None


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
        assign, key = model.small_statement(write.target), arg.keyword.value if arg.keyword is not None else position
        if not write.unpacked:
            yield key, maker, None
        elif isinstance(assign, cst.Assign) and isinstance(whole := assign.targets[0].target, cst.Tuple):
            plain = takewhile(lambda part: isinstance(part, cst.Element), whole.elements)  # `first, *rest`
            yield from ((key, maker, place) for place, part in enumerate(plain) if part.value is write.target)
