"""Lists that a loop fills with numbers of the device although they are read behind the loop only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.exceptions import catches
from torchlint.analyses.order import is_before
from torchlint.analyses.single_tensor import is_one_tensor, is_what_trains
from torchlint.analyses.sync.accumulators import (
    has_other_purpose,
    is_inside,
    is_seen_elsewhere,
    is_timed,
)
from torchlint.analyses.tensor_writes import is_its_own
from torchlint.rule import NoFixError
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.sync.readback import Readback
    from torchlint.semantics.entities import Binding, Loop, Write
    from torchlint.semantics.model import Model
    from torchlint.source import Source

_GRAPHS = re.compile(r"reduce-overhead|max-autotune|cuda\.graph\b|CUDAGraph|graphed_callables|cudagraph")
_COUNTERS = frozenset({"builtins.range", "itertools.count", "tqdm.trange", "tqdm.auto.trange"})


@dataclass(frozen=True, slots=True)
class Item:
    """`loss.item()` or `float(loss)`, all that one statement puts into a list, and the tensor that it reads.

    `is_shared`: something may write to that tensor later, or it may be a small part of a large one.
    """

    read: cst.Call
    how: str
    tensor: cst.BaseExpression
    is_shared: bool


@dataclass(frozen=True, slots=True)
class NumberList:
    """`name = []`, behind it `loop`, in which only `items` are put into the list, and behind that all of its reads.

    `how` the numbers are read: item or float.
    """

    name: str
    how: str
    loop: cst.For | cst.While
    items: tuple[Item, ...]
    is_one_pass: bool  # it grows by one pass over data, and no more
    is_timed: bool  # the loop reads a clock, which stops waiting for the device once the numbers stay there


def listed_in(model: Model, read: cst.BaseExpression) -> Binding | None:
    """The list that a number is put into, by a statement that does nothing else."""
    match model.small_statement(read):
        case (
            cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name() as name)))
            | cst.AugAssign(target=cst.Name() as name)
        ):
            number = _put_in(model, name)
            is_read_there = any(node is number for node in (read, *model.ancestors(read)))
            return model.binding(name) if is_read_there else None
    return None


def number_list(model: Model, read: Readback) -> NumberList:
    """The list that a readback goes into, if nothing but its reads can tell when the numbers are read.

    Raises NoFixError for any other.
    """
    binding = listed_in(model, read.node)
    if binding is None or read.loop is None:
        raise NoFixError("the number is not simply put into a list of the function")
    name = binding.name
    if is_seen_elsewhere(model, binding):
        raise NoFixError(f"other code sees `{name}`")
    grown = [write.target for write in binding.writes if write.kind == "augmented"]
    starts = [write for write in binding.writes if _is_empty_list(write)]
    if len(starts) != 1:
        raise NoFixError(f"`{name}` does not start as an empty list")
    if binding.is_global and model.source.is_notebook:
        raise NoFixError("a cell that is interrupted by hand would leave tensors in the list")
    loop = _loop_behind(model, starts[0], read)
    others = [write for write in binding.writes if write.kind != "augmented" and write is not starts[0]]
    if not all(_is_of_another_time(model, write, starts[0], loop) for write in others):
        raise NoFixError(f"`{name}` gets other values too")
    mentions = [*binding.reads, *grown]
    items = [_item(model, binding, node, read.loop) for node in mentions if is_inside(model, node, loop)]
    behind = [node for node in mentions if not is_inside(model, node, loop)]
    if not behind:
        raise NoFixError(f"nothing reads `{name}` behind the loop")
    for node in behind:
        if _is_between(model, node, starts[0], loop) or _may_follow_exception(model, node, loop):
            raise NoFixError(f"`{name}` is used before the loop is over, on {model.place(node)}")
    if len({item.how for item in items}) > 1:
        raise NoFixError(f"the numbers in `{name}` are read in two ways")
    if any(has_other_purpose(model, item.read, read.loop, loop) for item in items):
        raise NoFixError("an exception is caught around it, or a copy waits for it")
    is_one_pass = read.loop.node is loop and _is_over_data(model, loop)
    return NumberList(name, items[0].how, loop, tuple(items), is_one_pass, is_timed(read.loop))


def _put_in(model: Model, name: cst.CSTNode) -> cst.BaseExpression | None:
    """What `name.append(x)` or `name += [x]` puts into the list."""
    parent = model.parent(name)
    match model.parent(parent) if isinstance(parent, cst.Attribute) else parent:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="append")), args=[cst.Arg(keyword=None, star="") as arg]):
            return arg.value
        case cst.AugAssign(operator=cst.AddAssign(), value=cst.List(elements=[cst.Element() as element])):
            return element.value
    return None


def _is_empty_list(write: Write) -> bool:
    return (
        write.kind == "assign" and not write.unpacked and isinstance(write.value, cst.List) and not write.value.elements
    )


def _is_of_another_time(model: Model, write: Write, start: Write, loop: cst.For | cst.While) -> bool:
    """`losses = np.mean(losses)` behind the loop, and any other value that the list takes the place of where it starts,
    or that takes its place where the loop is over."""
    target = write.target
    if write.kind != "assign" or is_inside(model, target, loop):
        return False
    return not _is_between(model, target, start, loop) and not _may_follow_exception(model, target, loop)


def _loop_behind(model: Model, start: Write, read: Readback) -> cst.For | cst.While:
    """The loop around the readback that stands in the block in which the list starts."""
    first = model.statement(start.target)
    block = model.parent(first)
    loop = next((above for above in model.ancestors(read.node) if model.parent(above) is block), None)
    if not isinstance(loop, (cst.For, cst.While)) or loop.orelse is not None or not is_before(model, first, loop):
        raise NoFixError("the list does not start right around the loop")
    return loop


def _is_over_data(model: Model, loop: cst.For | cst.While) -> bool:
    """Whether a loop takes what there is, and does not count to a number."""
    if isinstance(loop, cst.While):
        return False
    return not (isinstance(loop.iter, cst.Call) and model.call(loop.iter).callee in _COUNTERS)


def _is_between(model: Model, node: cst.CSTNode, start: Write, loop: cst.For | cst.While) -> bool:
    """Whether a mention of the list stands between its start and the loop. From all others the list is seen as the loop
    has left it, in another iteration of a loop around perhaps."""
    block = model.parent(loop)
    is_beside = any(above is block for above in model.ancestors(node))
    return is_beside and is_before(model, start.target, node) and is_before(model, node, loop)


def _may_follow_exception(model: Model, node: cst.CSTNode, loop: cst.For | cst.While) -> bool:
    """Whether a mention may see the list of a loop that an exception has ended."""
    around = [above for above in model.ancestors(loop) if catches(above, model)]
    return not all(is_inside(model, node, above.body) for above in around)


# -- what is put into the list ----------------------------------------------------------------------------------------


def _item(model: Model, binding: Binding, name: cst.CSTNode, loop: Loop) -> Item:
    """Raises NoFixError where a mention of the list in the loop is something else than such a statement."""
    number = _put_in(model, name)
    match number:
        case cst.Call(func=cst.Attribute(value=tensor, attr=cst.Name(value="item")), args=[]):
            how = "item"
        case cst.Call(args=[cst.Arg(value=tensor, keyword=None, star="")]) if _is_float(model, number):
            how = "float"
        case _:
            raise NoFixError(f"the loop uses `{binding.name}` in another way on {model.place(name)}")
    tensor = bare_tensor(tensor)
    value = model.value(tensor)
    is_tensor = value.kind is Kind.TENSOR and not value.optional and (value.dtype or is_one_tensor(model, tensor))
    if not is_tensor and not is_what_trains(model, tensor):
        raise NoFixError(f"`{model.code(tensor)}` is not known to be a tensor")
    is_shared = model.once(_reuses_results) or not is_its_own(model, tensor, loop)
    return Item(number, how, tensor, is_shared)


def _is_float(model: Model, call: cst.Call) -> bool:
    return model.call(call).callee == "builtins.float"


def bare_tensor(tensor: cst.BaseExpression) -> cst.BaseExpression:
    """The tensor without copies to the host, and without `.data` and `.detach()`."""
    match tensor:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="cpu" | "detach")), args=[]):
            return bare_tensor(inner)
        case cst.Attribute(value=inner, attr=cst.Name(value="data")):
            return bare_tensor(inner)
    return tensor


def _reuses_results(model: Model) -> bool:
    """Whether something around makes CUDA graphs, whose next run writes to the results of the last."""
    return any(model.once_of(source, _makes_graphs) for source in (model.source, *model.neighbours()))


def _makes_graphs(source: Source) -> bool:
    return _GRAPHS.search(source.text) is not None
