"""Where a file replicates a model over GPUs from one process: `nn.DataParallel` in all its forms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import conditions
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Argument, Call
    from torchlint.semantics.model import Model

_CLASS = "torch.nn.DataParallel"
_FUNCTION = "torch.nn.parallel.data_parallel"
_ADVICE = re.compile(r"\bDDP\b|DistributedDataParallel|distributed\.(run|launch)|torchrun")
_THROUGH = re.compile(r"\.module\.state_dict\(")
_PREFIXED = re.compile(r"""[fF]?(["'])module\.(?:\1\s*\+|\{)""")  # `"module." + name`, `f"module.{name}"`
_RUNNING = ("forward", "__call__", "apply")
_SAME = frozenset({"cuda", "cpu", "to", "eval", "train", "half", "float", "requires_grad_"})  # give the wrapper back
_LONGEST_NAME = 40
_OF_GRAPHS = "torch_geometric."  # replicates over lists of graphs, which the distributed one does not take
_SAID_BY_NAME = "Parallel"  # only such classes of other files are looked up, which takes time


@dataclass(frozen=True, slots=True)
class Replication:
    """`form` is wrapper, function, subclass, single (a wrapper around one device), reached (such a one, whose file
    saves what is in it, without the names of the wrapper) or named (one that only takes the names of a checkpoint);
    `wrapped` names the model."""

    node: cst.CSTNode
    form: str
    wrapped: str


def replications(model: Model) -> Iterator[Replication]:
    """Every use of `nn.DataParallel` that somebody could replace; a class derived from it counts where it is used."""
    used = {base for call in model.calls if call.targets_class is not None for base in call.targets_class.lineage()}
    for cls in model.classes:
        for base, name in zip(cls.node.bases, cls.bases, strict=False):
            if name == _CLASS and cls in used:
                yield Replication(base.value, "subclass", cls.name)
    for call in model.calls:
        if (name := _derived_elsewhere(call, model)) is not None:
            yield Replication(call.node, "subclass", name)
    for call in model.calls_to(_CLASS, _FUNCTION, "functools.partial"):
        if call.callee == "functools.partial":
            if not call.arguments or model.qualified(call.arguments[0].value) not in (_CLASS, _FUNCTION):
                continue
            form, wrapped = "wrapper", "the model"
        else:
            form, wrapped = _form(call), _wrapped(call.argument("module", 0), model)
        if form == "single" and _THROUGH.search(model.source.text):
            form = "reached"
        if _advised_against(call, model) or _is_without_gpu(call, model):
            continue
        if form == "single" and _is_for_several(call, model):
            continue
        if not _is_never_run(call, model):
            yield Replication(call.node, form, wrapped)
        elif not _PREFIXED.search(model.source.text):  # else the names are made to fit the wrapper, and had no prefix
            yield Replication(call.node, "named", wrapped)


def _is_without_gpu(call: Call, model: Model) -> bool:
    """`if not torch.cuda.is_available():`, as for the names of a checkpoint that a wrapper has saved."""
    tests = conditions(model, call.node).items()
    return any(test.endswith("cuda.is_available()") and not holds for test, holds in tests)


def _is_for_several(call: Call, model: Model) -> bool:
    """`if len(devices) > 1:` around a wrapper for `devices`, of which there is but one as the program stands."""
    devices = call.argument("device_ids", 1).node
    count = f"len({model.code(devices)})" if devices is not None else ""
    return any(
        test in (f"{count} > 1", f"{count} >= 2") and holds for test, holds in conditions(model, call.node).items()
    )


def _derived_elsewhere(call: Call, model: Model) -> str | None:
    """The class of another file, derived from `nn.DataParallel`, that a call makes an object of."""
    name = call.callee or ""
    if call.targets_class is not None or _SAID_BY_NAME not in name or name.startswith(_OF_GRAPHS):
        return None
    if model.value(call.node.func).kind is Kind.MODULE:  # it runs such an object
        return None
    behind = model.class_behind(name)
    if behind is None or not any(_CLASS in cls.bases for cls in behind[1].lineage()):
        return None
    return behind[1].name


def _form(call: Call) -> str:
    if call.callee == _FUNCTION:
        return "function"
    devices = call.argument("device_ids", 1)
    return "single" if devices.given and len(devices.value.items or ()) == 1 else "wrapper"


def _wrapped(module: Argument, model: Model) -> str:
    if module.node is None:
        return "the model"
    code = model.code(module.node)
    return f"`{code}`" if len(code) <= _LONGEST_NAME and "\n" not in code else "the model"


def _is_never_run(call: Call, model: Model) -> bool:
    """`model = DataParallel(model)`, into which a checkpoint is loaded whose names begin with `module.`, and no more:
    nothing calls it, hands it on or keeps it."""
    match model.small_statement(call.node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]) if call.callee != _FUNCTION:
            binding = model.binding(target)
        case _:
            return False
    if binding is None or binding.shared:
        return False
    reads = [read for read in binding.reads if reaches(model, binding, target, read)]
    return bool(reads) and all(_only_asks(read, model) for read in reads)


def _only_asks(read: cst.CSTNode, model: Model) -> bool:
    """`model.module.conv1`, `model.load_state_dict(state)`, but not `model(x)`, `model.cuda()(x)`, `run(model)`."""
    above = model.parent(read)
    if not isinstance(above, cst.Attribute) or above.attr.value in _RUNNING:
        return False
    site = model.parent(above)
    if above.attr.value in _SAME and isinstance(site, cst.Call):
        return isinstance(model.parent(site), cst.Expr)
    return True


def _advised_against(call: Call, model: Model) -> bool:
    """The branch that wraps the model also prints or logs that distributed training is to be preferred."""
    block = model.parent(model.statement(call.node))
    if not isinstance(block, cst.IndentedBlock) or not isinstance(model.parent(block), (cst.If, cst.Else)):
        return False
    spoken = (small for line in block.body if isinstance(line, cst.SimpleStatementLine) for small in line.body)
    return any(
        isinstance(node, (cst.SimpleString, cst.FormattedStringText)) and _ADVICE.search(node.value)
        for small in spoken
        if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call)
        for node in walk(small)
    )
