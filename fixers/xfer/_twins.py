"""The copies beside one that goes, of what `torch.tensor` makes of data: they are written in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers._together import places_of
from torchlint.fixers.xfer._casts import call_on
from torchlint.fixers.xfer._target import Target, known, target_of

from torchlint.analyses.xfer.agreement import SHAPING
from torchlint.analyses.xfer.creations import creations
from torchlint.analyses.xfer.sizes import SIZED_CLASSES
from torchlint.finding import Edit
from torchlint.rule import NoFixError
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.xfer.creations import Creation
    from torchlint.edits.rewriter import Rewriter
    from torchlint.finding import Places
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model

_AS_IT_IS = ("torch.float", "torch.float32")  # a type in which data is what it is after a cast, and no number overflows
_OF_THE_HOST = ("device", "requires_grad", "pin_memory")
_OF_DATA = ("torch.tensor", "torch.as_tensor", "torch.scalar_tensor")
_OF_DEFAULT_TYPE = "torch.Tensor"  # whatever the numbers are that it is given
_OF_LISTS = ("torch.LongTensor", "torch.FloatTensor", "torch.DoubleTensor")


def twins(creation: Creation, target: Target, rewriter: Rewriter, model: Model) -> tuple[list[Edit], Places]:
    """`torch.tensor(rows).to(device)` of the function, or its class, as `torch.tensor(rows, device=device)`: it is no
    finding, for the rows have to be copied in any case, but two ways to say one thing help nobody. And the places of
    all of these, some of which may have to stay."""
    if target.tensor is not None:
        return [], ()
    reported = model.once(_reported)
    edits: list[Edit] = []
    places: list[cst.CSTNode] = []
    for made in model.calls:
        if not _is_of_data(made, model) or not _is_beside(made, creation) or made.node in reported:
            continue
        copy = copied(made, model)
        found = _alike(copy, target, rewriter, model) if copy is not None else None
        if copy is None or found is None:
            continue
        places.append(copy.node)
        if not _can_be_told(made, copy, model):
            continue
        is_typed = found.dtype in _AS_IT_IS and made.argument("dtype").absent
        keeps = f".to({found.dtype})" if found.dtype is not None and not is_typed else ""
        gone = cut(copy.node, keeps, model)
        typed = [f"dtype={found.dtype}"] if is_typed else []
        if made.callee in _OF_LISTS:
            typed = [f"dtype={known(SIZED_CLASSES[made.callee] or '', made.node, rewriter)}"]
            edits.append(rewriter.replace(made.node.func, known("torch.tensor", made.node, rewriter)))
        edits += [rewriter.add_argument(made.node, ", ".join([*typed, f"device={found.device}"]), [gone]), gone]
    return edits, places_of(places, model)


def _is_of_data(made: Call, model: Model) -> bool:
    """`torch.tensor(rows)`, or `torch.LongTensor(rows)` of what is certainly a list, of which `torch.tensor` makes the
    same."""
    if made.callee not in (*_OF_LISTS, _OF_DEFAULT_TYPE):
        return made.callee in _OF_DATA
    given = model.value(made.arguments[0].value) if len(made.arguments) == 1 else None
    return given is not None and given.kind is Kind.LIST and not (given.optional or made.arguments[0].keyword)


def _is_beside(made: Call, creation: Creation) -> bool:
    """Whether a tensor is made in the same function, or for the object whose methods they both are."""
    function, other = made.function, creation.move.function
    return function is other or (function.cls is not None and function.cls is other.cls)


def copied(made: Call, model: Model) -> Call | None:
    """`torch.tensor(rows).to(device)` around the call that makes the tensor, which may get another shape first."""
    copy = call_on(made.node, model)
    while copy is not None and model.call(copy).method in SHAPING:
        copy = call_on(copy, model)
    return model.call(copy) if copy is not None and model.call(copy).method in ("to", "cuda") else None


def _alike(copy: Call, target: Target, rewriter: Rewriter, model: Model) -> Target | None:
    """Where a copy goes to, if that is the same place."""
    try:
        found = target_of(copy, rewriter, model)
    except NoFixError:
        return None
    return found if found.tensor is None and found.is_certain and found.device == target.device else None


def _can_be_told(made: Call, copy: Call, model: Model) -> bool:
    """Whether a new tensor can be told in plain sight where it is made. One that wants gradients would be a leaf there,
    only the memory of the host is pinned, and what is copied in any case would share memory that it does not now."""
    plain = all(not arg.star for arg in made.arguments) and all(made.argument(name).absent for name in _OF_THE_HOST)
    is_new = made.callee != "torch.as_tensor" or copy.argument("copy", 3).absent
    is_typed = made.callee != _OF_DEFAULT_TYPE
    return plain and is_new and is_typed and is_said_by_name(made) and "#" not in model.code(copy.node)


def is_said_by_name(made: Call) -> bool:
    """Whether nothing but the data has no name: `torch.as_tensor(data, dtype, device)` would say a type twice."""
    return bool(made.arguments) and all(arg.keyword is not None for arg in made.arguments[1:])


def cut(call: cst.Call, instead: str, model: Model) -> Edit:
    """Takes the last method call off an expression."""
    assert isinstance(call.func, cst.Attribute)
    text, end = model.source.text, model.span(call)[1]
    for _ in call.rpar:
        end = text.rindex(")", 0, end)
    start = model.span(call.func.value)[1]
    return Edit(start, start + len(text[start:end].rstrip()), instead)


def _reported(model: Model) -> frozenset[cst.CSTNode]:
    """What makes the tensors of findings."""
    return frozenset(creation.factory.node for creation in creations(model))
