"""Elements that a method adds to, in place, at places that a tensor holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize import counting, indexing, stored
from torchlint.analyses.vectorize.shapes import RefusedError
from torchlint.edits import spelling

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.body import Body


def add_at_places(body: Body, call: cst.Call, row: cst.Subscript, statement: cst.CSTNode) -> None:
    """`out[i].index_add_(0, places[i], x[i])`, for all rows: `places[i]` is a vector."""
    lifter = body.lifter
    whole, elements = stored.filled(row, lifter.indices)
    sink = lifter.sink(whole)
    given = [argument.value for argument in call.args if not argument.star and argument.keyword is None]
    arange = spelling.spelled(lifter.model, "torch.arange", lifter.place)
    refused = RefusedError(f"`{lifter.code(call.func)}` may do anything")
    assert isinstance(call.func, cst.Attribute)
    if call.func.attr.value != "index_add_" or sink is None or arange is None or lifter.mask is not None:
        raise refused
    if len(given) != 3 or len(call.args) != 3 or lifter.code(given[0]) != "0" or len(lifter.context) != 1:
        raise refused
    reading = indexing.read(lifter, sink, elements)
    places = lifter.of_rank(lifter.tensor(given[1]), 1)
    values = lifter.tensor(given[2])
    if list(reading.places.values()) != [0] or len(reading.entries) != 1 or reading.picked:
        raise refused
    if places.axes != lifter.context or values.axes != lifter.context:
        raise refused
    name, [axis] = sink.text, lifter.context
    lifter.accesses.append(indexing.Access(name, reading.dims, lifter.context, reads=True))
    lifter.operations.add("reduction")
    lifter.cautions.add("what is added to one element comes in another order")
    filled = reading.text(name)
    if axis.start or reading.dims[axis][1]:
        raise refused
    count = f"len({name})" if filled == name else counting.length(lifter, axis)
    rows = f"{arange}({count}, device={name}.device)[:, None]"
    text = f"{filled}.index_put_(({rows}, {places.text}), {values.text}, accumulate=True)"
    body.emit(statement, text, values.but(exact=False))
