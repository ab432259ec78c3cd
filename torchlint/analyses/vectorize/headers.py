"""What a loop runs over: an index range, the rows of tensors, or both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize import counting
from torchlint.analyses.vectorize.purity import impurity
from torchlint.analyses.vectorize.shapes import ATOM, Axis, Dimension, Lifted, RefusedError, Size
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter

_PROGRESS = re.compile(r"tqdm(\.\w+)*|rich\.progress\.track")


@contextmanager
def entered(lifter: Lifter, target: cst.BaseExpression, iterable: cst.BaseExpression) -> Iterator[Axis]:
    """Inside a loop: its targets have values, and statements run once per iteration of it too."""
    outer = lifter.context
    axis = enter(lifter, target, iterable)
    lifter.context = (*outer, axis)
    lifter.loops.append(axis)
    yield axis
    lifter.context = outer


def enter(lifter: Lifter, target: cst.BaseExpression, iterable: cst.BaseExpression) -> Axis:
    """Binds the targets of a loop: an index to its axis, an element to its row."""
    iterable = _without_progress(lifter, iterable)
    call = iterable if isinstance(iterable, cst.Call) else None
    name = lifter.model.qualified(call.func) if call is not None else None
    is_unbound = call is not None and _unbound(lifter, call) is not None
    if call is not None and not is_unbound and any(argument.star or argument.keyword for argument in call.args):
        raise RefusedError("what the loop runs over is not in sight")
    if call is not None and name in ("builtins.range", "tqdm.trange", "tqdm.auto.trange"):
        lifter.progress |= name != "builtins.range"
        axis = _range(lifter, call)
        _bind_index(lifter, target, axis)
        return axis
    if call is not None and name == "builtins.enumerate":
        if len(call.args) != 1 or not isinstance(target, cst.Tuple) or len(target.elements) != 2:
            raise RefusedError("the loop counts from another number")
        row, walked = target.elements[1].value, call.args[0].value
        if _is_unread(lifter, row) and lifter.model.value(walked).kind in (Kind.LIST, Kind.TUPLE):
            size = lifter.tensors.of(walked, lifter.place).dimension(0)
            axis = Axis(len(lifter.context), 0, Size(size[1], size[0], f"len({lifter.code(walked)})"))
        else:
            axis = enter(lifter, row, walked)
        _bind_index(lifter, target.elements[0].value, axis)
        return axis
    if call is not None and name == "builtins.zip":
        return _zip(lifter, target, [argument.value for argument in call.args])
    return _zip(lifter, None, [iterable], [target])


def _is_unread(lifter: Lifter, target: cst.BaseExpression) -> bool:
    """Whether a loop only counts what it runs over."""
    binding = lifter.model.binding(target) if isinstance(target, cst.Name) else None
    return binding is not None and not binding.reads


def _without_progress(lifter: Lifter, node: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(node, cst.Call) and node.args and node.args[0].keyword is None and not node.args[0].star:
        name = lifter.model.qualified(node.func)
        if name is not None and _PROGRESS.fullmatch(name) and not name.endswith("trange"):
            lifter.progress = True
            return node.args[0].value
    return node


def _bind_index(lifter: Lifter, target: cst.BaseExpression, axis: Axis) -> None:
    if not isinstance(target, cst.Name):
        raise RefusedError("the loop's index is taken apart")
    axis.index = target.value
    lifter.axes[target.value] = axis


def _range(lifter: Lifter, call: cst.Call) -> Axis:
    bounds = [argument.value for argument in call.args]
    if len(bounds) == 3 and isinstance(bounds[2], cst.Integer) and bounds[2].value == "1":
        del bounds[2]
    if len(bounds) not in (1, 2):
        raise RefusedError("the loop takes steps")
    start = 0
    if len(bounds) == 2:
        if not isinstance(bounds[0], cst.Integer):
            raise RefusedError("the loop begins at an index that is not in sight")
        start = int(bounds[0].value, 0)
    return Axis(len(lifter.context), start, _size(lifter, bounds[-1]))


def _size(lifter: Lifter, node: cst.BaseExpression) -> Size:
    if lifter.varies(node):
        return _size_of_row(lifter, node)
    lifter.tensors.measured(node, lifter.place)
    size = lifter.tensors.sizes.of(node, lifter.place)
    if size is None and impurity(lifter.model, node) is None:
        text = lifter.code(node)
        return Size(0, f"{text}@{id(lifter.place)}", text, natural=False)
    if size is None:
        raise RefusedError(f"`{lifter.code(node)}` is not known to be an integer")
    return size


def _size_of_row(lifter: Lifter, node: cst.BaseExpression) -> Size:
    """`len(row)` for a row of a tensor, in terms of that tensor."""
    measured = lifter.tensors.sizes.measured(node)
    if measured is None:
        raise RefusedError(f"`{lifter.code(node)}` differs from iteration to iteration")
    owner = lifter.tensor(measured[0])
    index = measured[1]
    dimension = owner.dimension(index) if index >= 0 else None
    if dimension is None:
        raise RefusedError(f"`{lifter.code(node)}` is not known before the loop")
    return Size(dimension[1], dimension[0], f"{owner.atom}.shape[{owner.count + index}]")


def _zip(
    lifter: Lifter,
    target: cst.BaseExpression | None,
    sources: list[cst.BaseExpression],
    targets: Sequence[cst.BaseExpression] = (),
) -> Axis:
    if target is not None:
        if not isinstance(target, cst.Tuple) or len(target.elements) != len(sources):
            raise RefusedError("the loop's targets are not in sight")
        targets = [element.value for element in target.elements]
    bases = [_rows_of(lifter, source) for source in sources]
    sizes = [_length(base) for base in bases]
    counts = [_one_less(lifter, source) or size.dimension for source, size in zip(sources, sizes)]
    stop = sizes[0]
    if any(count != counts[0] for count in counts):
        shortest = f"min({', '.join(dict.fromkeys(size.text for size in sizes))})"
        stop = Size(0, shortest, shortest)
    axis = Axis(len(lifter.context), 0, stop)
    for base, count, name in zip(bases, counts, targets):
        if not isinstance(name, cst.Name):
            raise RefusedError("rows are taken apart")
        others = list(dict.fromkeys(other.text for other, rows in zip(sizes, counts) if rows != count))
        if name.value in lifter.rows and lifter.depths[name.value] <= len(lifter.context):
            raise RefusedError(f"`{name.value}` is used for two things")
        lifter.rows[name.value] = _row(lifter, base, axis, others)
        lifter.depths[name.value] = len(lifter.context) + 1
        if not base.counts:
            lifter.bases[base.text] += 1
    axis.whole = axis.counted = True
    return axis


def _one_less(lifter: Lifter, node: cst.BaseExpression) -> Dimension | None:
    """The number of rows of `x[1:]` and of `x[:-1]`, which is the same."""
    match node:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Slice(lower=lower, upper=upper, step=None))]):
            ends = tuple("" if end is None else lifter.code(end) for end in (lower, upper))
            return (f"{lifter.code(node.value)}#less", 0) if ends in (("1", ""), ("", "-1")) else None
    return None


def _rows_of(lifter: Lifter, node: cst.BaseExpression) -> Lifted:
    """The tensor whose rows an iterable yields."""
    taken = _unbound(lifter, node) if isinstance(node, cst.Call) else None
    if taken is not None and taken[1] not in ("0", "-0"):
        return _turned(lifter, *taken)
    node = taken[0] if taken is not None else node
    base = lifter.base(node)
    if counting.lists_places(lifter, node) and not base.axes:
        return counting.of_list(lifter, node, base)
    if not (base.tensor or base.claim is not None) or base.pair:
        raise RefusedError(f"`{lifter.code(node)}` is not known to be a tensor")
    lifter.tensors.learn_least(base.rank, 1)
    return base


def _unbound(lifter: Lifter, call: cst.Call) -> tuple[cst.BaseExpression, str] | None:
    """What `x.unbind(1)` takes apart, and along which dimension."""
    given = [argument.value for argument in call.args]
    if lifter.model.qualified(call.func) == "torch.unbind" and given:
        whole, *given = given
    elif isinstance(call.func, cst.Attribute) and call.func.attr.value == "unbind":
        whole = call.func.value
    else:
        return None
    return (whole, lifter.code(given[0]) if given else "0") if len(given) < 2 else None


def _turned(lifter: Lifter, node: cst.BaseExpression, dimension: str) -> Lifted:
    """A tensor with the dimension in front that a loop runs along."""
    base = lifter.base(node)
    if not base.tensor or base.pair or base.axes or not dimension.removeprefix("-").isdigit():
        raise RefusedError(f"`{lifter.code(node)}` is not known to be a tensor")
    place = int(dimension)
    lifter.tensors.learn_least(base.rank, place + 1 if place >= 0 else -place)
    return base.but(text=f"{base.atom}.movedim({dimension}, 0)", level=ATOM, shape=None)


def rows(lifter: Lifter, base: Lifted) -> Axis:
    """The axis of iteration over the rows of a tensor."""
    axis = Axis(0, 0, _length(base), whole=True)
    lifter.loops.append(axis)
    lifter.bases[base.text] += 1
    return axis


def _length(base: Lifted) -> Size:
    dimension = base.dimension(0)
    key, offset = dimension if dimension is not None else (f"rows of {base.text}", 0)
    return Size(offset, key, f"len({base.text})" if not base.axes else f"{base.atom}.shape[{base.count}]")


def _row(lifter: Lifter, base: Lifted, axis: Axis, others: list[str]) -> Lifted:
    """One row of the base for each iteration; cut to the shortest of the others that it is zipped with."""
    text, level = base.text, base.level
    if others and base.counts:
        raise RefusedError(f"`{text}` may be longer than the rows")
    if others:
        shortest = others[0] if len(others) == 1 else f"min({', '.join(others)})"
        text, level = f"{base.atom}[{':, ' * base.count}: {shortest}]", ATOM
    return base.but(
        text=counting.of_elements(lifter, text) if base.counts else text,
        level=level,
        axes=(*base.axes, axis),
        rank=lifter.tensors.settled(base.rank.plus(-1)),
        skipped=base.skipped + 1,
    )


def covers_few(axes: Sequence[Axis], fewer_than: int) -> bool:
    """Whether the loops together run only a few times, and the code says so."""
    count = 1
    for axis in axes:
        if axis.stop.key is not None:
            return False
        count *= max(axis.stop.offset - axis.start, 0)
    return count < fewer_than
