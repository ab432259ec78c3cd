"""Scores that a step copies to the host whole, although only the places of the largest of them are wanted there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.loops.steps import Step, step_of
from torchlint.analyses.sync.branching import follows_answer
from torchlint.analyses.sync.readback import reads
from torchlint.analyses.sync.residence import Residence
from torchlint.semantics.dataflow import is_changed, reaches
from torchlint.word_set import word_set

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

_PICKS = word_set("argmax argmin")
_PICKING = frozenset(f"{package}.{pick}" for package in ("torch", "numpy") for pick in _PICKS)
_SAME = word_set("numpy detach clone squeeze data copy transpose permute swapaxes moveaxis movedim")
_SAME_FUNCTIONS = frozenset(
    [
        *(f"numpy.{name}" for name in ("squeeze", "asarray", "array", "transpose", "swapaxes", "moveaxis")),
        *("torch.squeeze", "torch.transpose", "torch.permute"),
    ]
)
_METADATA = word_set("shape dtype ndim device size dim")


class DenseCopy(NamedTuple):
    """A copy at `node`, of which nothing but `pick` is used."""

    node: cst.BaseExpression
    pick: cst.Call
    step: Step


def dense_copies(model: Model) -> Iterator[DenseCopy]:
    """Copies of whole tensors to the host in each step, of which only what is picked along a dimension is used."""
    residence = model.once(Residence)
    for node, tensor, how in reads(model):
        step = step_of(model, node) if how == "cpu" else None
        pick = _Uses(model).only_pick(node) if step is not None else None
        if step is None or pick is None or follows_answer(model, residence, node, step):
            continue
        if residence.may_be_device(tensor, step, is_tensor=True) or residence.is_made_on_device(tensor, step):
            yield DenseCopy(node, pick, step)


class _Uses:
    """Follows a copy to all that is done with it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._work: list[cst.CSTNode] = []
        self._picks: list[cst.Call] = []
        self._copy: cst.CSTNode | None = None

    def only_pick(self, copy: cst.CSTNode) -> cst.Call | None:
        """The first of the picks that are made along a dimension, if the copy is used for nothing else."""
        self._copy = copy
        self._work.append(copy)
        seen: set[cst.CSTNode] = set()
        while self._work:
            node = self._work.pop()
            if node not in seen:
                seen.add(node)
                if not self._serves_picks(node):
                    return None
        return self._picks[0] if self._picks else None

    def _serves_picks(self, node: cst.CSTNode) -> bool:
        parent = self._model.parent(node)
        match parent:
            case cst.Attribute(value=whole) if whole is node:
                return self._attribute(parent)
            case cst.Arg():
                return self._argument(parent)
            case cst.Subscript(value=whole) if whole is node:
                self._work.append(parent)
                return not isinstance(self._model.parent(parent), cst.AssignTarget)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
                binding = self._model.binding(name)
                return binding is not None and self._variable(name, binding)
        return False

    def _attribute(self, node: cst.Attribute) -> bool:
        name, site = node.attr.value, self._model.parent(node)
        if name in _METADATA:
            return True
        if not isinstance(site, cst.Call) or site.func is not node:
            self._work.append(node)
            return name == "data"
        if name in _PICKS:
            return self._pick(site, at_least=1)
        self._work.append(site)
        return name in _SAME

    def _argument(self, arg: cst.Arg) -> bool:
        site = self._model.parent(arg)
        if not isinstance(site, cst.Call) or site.args[0] is not arg:
            return False
        callee = self._model.call(site).callee
        if callee in _PICKING:
            return self._pick(site, at_least=2)
        self._work.append(site)
        return callee in _SAME_FUNCTIONS

    def _pick(self, site: cst.Call, at_least: int) -> bool:
        """Of all elements it is one number, for which the host waits in any case; in a loop, each sample may have
        classes of its own."""
        self._picks.append(site)
        loops = [self._model.loop(node) for node in (site, self._copy) if node is not None]
        return len(site.args) >= at_least and loops[0] is loops[-1]

    def _variable(self, name: cst.Name, binding: Binding) -> bool:
        function = self._model.function(name)
        seeing = [read for read in binding.reads if reaches(self._model, binding, name, read)]
        self._work += seeing
        return (not binding.is_global or function.is_module) and not any(
            self._model.function(read) is not function or is_changed(self._model, read) for read in seeing
        )
