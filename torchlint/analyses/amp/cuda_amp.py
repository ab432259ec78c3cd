"""Uses of the mixed precision API of one device, which `torch.amp` has replaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.compatibility import is_for_other_releases
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Guard
    from torchlint.semantics.model import Model

_MODULES = (
    "torch.cuda.amp",
    "torch.cuda.amp.autocast_mode",
    "torch.cuda.amp.grad_scaler",
    "torch.cpu.amp",
    "torch.cpu.amp.autocast_mode",
    "torch.cpu.amp.grad_scaler",
)
_DECORATORS = ("custom_fwd", "custom_bwd")
_NAMES = frozenset(f"{module}.{name}" for module in _MODULES for name in ("autocast", "GradScaler", *_DECORATORS))


@dataclass(frozen=True, slots=True)
class Use:
    """A call of the old API, or one of its decorators without a call."""

    node: cst.BaseExpression
    name: str  # autocast, GradScaler, custom_fwd, custom_bwd
    device: str
    call: Call | None

    @property
    def callee(self) -> cst.BaseExpression:
        return self.node.func if isinstance(self.node, cst.Call) else self.node


def uses(model: Model) -> Iterator[Use]:
    """Every use that is not there for releases of torch that have nothing newer."""
    found = [_use(call.node, call.callee or "", call) for call in model.calls_to(*_NAMES)]
    for function in model.functions:
        if isinstance(function.node, cst.FunctionDef):
            found += [use for item in function.node.decorators if (use := _bare_decorator(item.decorator, model))]
    return (use for use in found if not _is_fallback(use, model))


def mentions(model: Model) -> Iterator[cst.BaseExpression]:
    """The old classes and functions where they are neither called nor decorate: `context = torch.cuda.amp.autocast`."""
    called = {use.callee for use in uses(model)} | {call.node.func for call in model.calls_to(*_NAMES)}
    for kind in (cst.Name, cst.Attribute):
        for node in model.nodes_of(kind):
            assert isinstance(node, (cst.Name, cst.Attribute))
            above = model.parent(node)
            if isinstance(above, (cst.Attribute, cst.ImportAlias, cst.AsName)) or node in called:
                continue
            if model.qualified(node) in _NAMES:
                yield node


def _use(node: cst.BaseExpression, qualified: str, call: Call | None) -> Use:
    return Use(node, qualified.rpartition(".")[2], qualified.split(".")[1], call)


def _bare_decorator(node: cst.BaseExpression, model: Model) -> Use | None:
    name = None if isinstance(node, cst.Call) else model.qualified(node)
    return _use(node, name, None) if name in _NAMES and name.endswith(_DECORATORS) else None


def _is_fallback(use: Use, model: Model) -> bool:
    guards = model.guards(use.node)
    if is_for_other_releases(model, use.node) or any(guard.kind == "handler" for guard in guards):
        return True
    if any(_has_new_name_beside(guard, use, model) for guard in guards):
        return True
    binding = root(use, model)
    return binding is not None and any(
        is_for_other_releases(model, write.target) or _may_be_missing(write.target, model) for write in binding.writes
    )


def _has_new_name_beside(guard: Guard, use: Use, model: Model) -> bool:
    """`torch.amp.GradScaler("cuda") if IS_NEW else torch.cuda.amp.GradScaler()`"""
    if not isinstance(guard.node, (cst.If, cst.IfExp)):
        return False
    other = guard.node.orelse if guard.branch == "body" else guard.node.body
    new = f"torch.amp.{use.name}"
    return other is not None and any(model.qualified(part) == new for part in walk(other))


def root(use: Use, model: Model) -> Binding | None:
    """The variable that a spelling begins with: `amp` of `amp.autocast`."""
    node = use.callee
    while isinstance(node, cst.Attribute):
        node = node.value
    return model.binding(node)


def _may_be_missing(node: cst.CSTNode, model: Model) -> bool:
    """Whether an import is tried: the program also runs with releases that do not have it."""
    child = node
    for above in model.ancestors(node):
        if isinstance(above, cst.Try) and child is above.body and above.handlers:
            return True
        child = above
    return False
