"""The fix that the rules about sums share: the term stays on the device, and every read behind the loop is a number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.visible_devices import names_several_gpus
from torchlint.analyses.sync.accumulators import HostSum, blocks_around, is_wrapped, told_from_float
from torchlint.edits.rewriter import Rewriter
from torchlint.edits.spelling import is_free
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Grad, Kind

if TYPE_CHECKING:
    from torchlint.analyses.sync.readback import Readback
    from torchlint.semantics.model import Model
    from torchlint.source import Source

_NO_DOUBLE = re.compile(r"\b(mps|xla\w*|torch_xla|xpu|hpu)\b", re.IGNORECASE)
_DEVICE_NAME = re.compile(r"device|accelerator|backend", re.IGNORECASE)
_LACKS_DOUBLE = re.compile(r"[\"']mps\b|\bbackends\.mps\b|\btorch\.mps\b|\btorch_xla\b")
_ANY_DEVICE = re.compile(r"\btorch\.accelerator\b|\baccelerate\b")
_DOUBT = "On a device without double precision (MPS), which this file does not rule out, `.double()` fails."
TIMED = "The loop reads a clock: without the readback its intervals no longer include the work of the device."
# A comment explains what would be gone, in English or in Chinese: an item, a scalar, a number of Python's.
_TOLD = re.compile(r"(?i)\bitem\b|\bscalars?\b|\bpython\b|标量")
_ACCUMULATION = re.compile(r"(?i)accum|iter_size")
_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.Float)


def kept_in_double(model: Model, read: Readback, total: HostSum, suffix: str) -> Fix:
    """The sum in double precision, which is what a Python float has."""
    told = told_from_float(model, total)
    seen = f"Where nothing has been added, {model.place(told)} sees 0.0 in place of 0." if told is not None else ""
    doubt = " ".join(filter(None, (double_doubt(model), seen)))
    return kept_on_device(model, read, total, suffix, "float", doubt)


def double_doubt(model: Model) -> str:
    """What to say of devices that lack double precision, if the file does not rule them out.

    Raises NoFixError where the program is for such devices.
    """
    text = model.source.text
    if any(_NO_DOUBLE.search(said) for said in (text, *_where_device_is_from(model))):
        raise NoFixError("the program is for devices that lack double precision, too")
    is_there = any(model.once_of(source, _names_one_without_double) for source in model.files_beside())
    is_cuda = re.search(r"\bcuda\b", text) is not None and _ANY_DEVICE.search(text) is None
    if is_there and not is_cuda:
        raise NoFixError("other files of the project are for devices that lack double precision")
    return "" if is_cuda and not is_there else _DOUBT


def _names_one_without_double(source: Source) -> bool:
    return _LACKS_DOUBLE.search(source.text) is not None


def _where_device_is_from(model: Model) -> list[str]:
    """The texts of the files from which this one takes its device, or what tells it."""
    files = {file for name, file in model.imports_of_project() if _DEVICE_NAME.search(name.rpartition(".")[2])}
    return [source.text for source in model.neighbours() if str(source.path) in files] if files else []


def kept_on_device(model: Model, read: Readback, total: HostSum, suffix: str, cast: str, doubt: str = "") -> Fix:
    """`total += loss.item()` as `total += loss` and `suffix`, with `cast` around each read of the total, or behind the
    loop once.

    `doubt`: why the fix is unsafe, if it is.
    """
    if any(_is_read_right_below(model, read, name) for name in total.reads):
        raise NoFixError("the sum is read below in the same breath, which waits just as long")
    if any(_is_read_with_each_update(model, read, name) for name in total.reads):
        raise NoFixError("the sum is read with each step of the optimizer, which waits for the batches before it")
    if _is_over_networks(model, read, total.update) or names_several_gpus(model):
        raise NoFixError("each network may lie on a device of its own, and so may what is added up")
    kept = term(model, read, suffix)
    division = total.settled if isinstance(total.settled, cst.AugAssign) else None
    places = [*total.reads, *([division] if division is not None else [])]
    if not all(is_free(model, cast, place) for place in places):
        raise NoFixError(f"`{cast}` means something else where the sum is read")
    edits = [kept]
    open_reads = [name for name in total.reads if not is_wrapped(model, name, f"builtins.{cast}", "builtins.float")]
    behind = [name for name in open_reads if read.loop not in model.loops_around(name)]
    loop = _read_once_behind(model, read, total, behind)
    if loop is not None:
        name = model.code(behind[0])
        edits.append(Rewriter(model).insert_after(loop, f"{name} = {cast}({name})"))
    wrapped = open_reads if loop is None else [name for name in open_reads if name not in behind]
    edits += [edit for name in wrapped for edit in Rewriter(model).wrap(name, f"{cast}(", ")")]
    if division is not None:
        edits.append(_divided(model, division, cast))
    doubt = " ".join(filter(None, (doubt or (TIMED if total.is_timed else ""), total.taken)))
    why = doubt or "The sum is exact on the device too, and is read where it is used."
    return Fix(tuple(edits), Applicability.UNSAFE if doubt else Applicability.SAFE, why)


def _is_over_networks(model: Model, read: Readback, update: cst.Assign | cst.AugAssign) -> bool:
    """Whether one sum goes through iterations that each have another network, or another device."""
    binding = model.binding(update.target if isinstance(update, cst.AugAssign) else update.targets[0].target)
    starts = [write.target for write in binding.writes if write.kind == "assign"] if binding is not None else []
    for loop in read.loop.around() if read.loop is not None else ():
        if any(loop in model.loops_around(start) for start in starts):
            return False
        names = walk(loop.target) if loop.target is not None else ()
        if any(isinstance(name, cst.Name) and model.value(name).is_(Kind.MODULE, Kind.DEVICE) for name in names):
            return True
    return False


def _is_read_right_below(model: Model, read: Readback, name: cst.BaseExpression) -> bool:
    """Whether the sum is read whenever it has grown: further down in the same block, on the same condition."""
    grown, reading = model.statement(read.node), model.statement(name)
    block = getattr(model.parent(grown), "body", ())
    return reading is not grown and reading in block and grown in block and block.index(grown) < block.index(reading)


def _is_read_with_each_update(model: Model, read: Readback, name: cst.BaseExpression) -> bool:
    """Whether the sum goes over the batches of which gradients are accumulated, and is read with them."""
    loop, around = read.loop, model.loops_around(name)
    tests: list[cst.BaseExpression | None] = []
    if loop is not None and loop in around:
        tests = [guard.test for guard in model.guards(name, loop)]
    elif loop is not None and around and around == model.loops_around(loop.node):
        tests = [loop.iterable]
    return bool(tests) and all(test is not None and _ACCUMULATION.search(model.code(test)) for test in tests)


def _read_once_behind(
    model: Model, read: Readback, total: HostSum, behind: list[cst.BaseExpression]
) -> cst.CSTNode | None:
    """The loop behind which one conversion serves several reads, or one that another loop repeats; None elsewhere."""
    loop = read.loop.node if read.loop is not None else None
    if loop is None or not behind or total.settled is not None:
        return None
    around = model.loops_around(loop)
    if len(behind) == 1 and len(model.loops_around(behind[0])) <= len(around):
        return None
    start, blocks = model.span(loop)[0], blocks_around(loop, model)
    later = [name for name in behind if model.span(name)[0] > start]
    return loop if all(any(above in blocks for above in model.ancestors(name)) for name in later) else None


def detaching(model: Model, read: Readback) -> str:
    """`.detach()`, where the tensor may have a graph."""
    is_free_of_graph = read.value.grad is Grad.DETACHED or model.grad_enabled(read.node) is False
    return "" if is_free_of_graph else ".detach()"


def term(model: Model, read: Readback, suffix: str) -> Edit:
    """`loss.detach().double()` for `loss.item()` and `float(loss)`.

    Raises NoFixError.
    """
    start, end = model.span(read.node)
    first, last = model.span(read.tensor)
    text = model.source.text
    if read.node.lpar or "#" in text[start:first] + text[last:end]:
        raise NoFixError("a comment or parentheses stand inside of the read")
    if read.how not in ("item", "float", "int"):
        raise NoFixError("the number is not read by `.item()`, `float(...)` or `int(...)`")
    if is_told(model, read.node):
        raise NoFixError("a comment beside it explains the read")
    tensor = text[first:last]
    if not suffix and len(read.tensor.lpar) == 1 and isinstance(read.tensor, _ATOMS) and "\n" not in tensor:
        tensor = tensor[1:-1].strip()  # the parentheses were there for the sake of `.item()`
    if read.how != "item" and suffix and not isinstance(read.tensor, _ATOMS) and not read.tensor.lpar:
        tensor = f"({tensor})"
    return Edit(start, end, tensor + suffix)


def is_told(model: Model, read: cst.BaseExpression) -> bool:
    """Whether a comment beside a read explains it, and would be wrong without it."""
    return _TOLD.search(Rewriter(model).comments(read)) is not None


def _divided(model: Model, division: cst.AugAssign, cast: str) -> Edit:
    """`total = float(total) / count` for `total /= count`."""
    name, value = model.code(division.target), model.code(division.value)
    if not isinstance(division.value, _ATOMS) and not division.value.lpar:
        value = f"({value})"
    return Edit(*model.span(division), f"{name} = {cast}({name}) / {value}")
