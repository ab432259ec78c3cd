"""Tensors that a step copies to the host for what the device can do as well, and whose result it copies back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.moves import moves_to_accelerator
from torchlint.analyses.loops.steps import Step, is_gated
from torchlint.analyses.order import is_before
from torchlint.analyses.sync.branching import waiting_step
from torchlint.analyses.sync.readback import reads
from torchlint.analyses.sync.round_trips import Trip, has_not_left
from torchlint.semantics.dataflow import parameter_of_function, reaches, text, upstream
from torchlint.semantics.entities import Call, Role
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Place
from torchlint.word_set import word_set

if TYPE_CHECKING:
    from torchlint.semantics.entities import Function
    from torchlint.semantics.model import Model


_SHAPES = word_set("shape dtype device ndim size dim numel nelement requires_grad")
_SAME = word_set(
    """
    detach clone contiguous view reshape flatten squeeze unsqueeze permute transpose t expand expand_as repeat type
    float double half long int bool data numpy copy astype from_numpy tensor as_tensor array asarray FloatTensor
    LongTensor Tensor Variable ravel
    """
)
_WORK = word_set(
    """
    abs add all amax amin any arange argmax argmin argsort bitwise_and bitwise_not bitwise_or cat ceil chunk clamp clip
    concatenate cos cosh cumsum div dot einsum eq equal exp eye flip floor full full_like gather ge gt index_fill
    index_select isclose isfinite isinf isnan le log log10 log1p log2 log_softmax logical_and logical_not logical_or
    logsumexp lt masked_fill masked_select matmul max maximum mean min minimum mul ne neg norm normalize one_hot
    ones ones_like pow prod relu round rsqrt scatter scatter_ scatter_add sigmoid sign sin softmax split sqrt square
    stack std sub sum take take_along_dim tanh tile topk tril triu var where zeros zeros_like fill_diagonal_ expand_dims
    label_binarize
    """
)
_LIMIT = 60
_DEPTH = 2


def detours(model: Model) -> Iterator[Trip]:
    """Trips to the host and, with what has become of the tensor there, back to the device."""
    for node, tensor, how in reads(model):
        step = _step(model, node) if how == "cpu" else None
        if step is None or not _may_be_device(model, tensor) or has_not_left(model, tensor, step.loop):
            continue
        walk = Walk(model)
        if walk.goes_back(node) and walk.back is not None and walk.works and not _goes_in_parts(model, node, walk.back):
            yield Trip(node, walk.back, step)


def _goes_in_parts(model: Model, node: cst.CSTNode, back: Call) -> bool:
    """Whether a loop takes windows of what the host holds: the device may have no room for the whole."""
    return bool(set(back.loops()) - set(model.loops_around(node)))


def _step(model: Model, node: cst.CSTNode) -> Step | None:
    """Also that of an agent, whose loop waits for its actions anyway: this is one more wait."""
    step = waiting_step(model, node)
    if (
        step is None
        and model.function(node).is_step
        and not model.loops_around(node)
        and not is_gated(model, node, None)
    ):
        return Step(None, Role.STEPS)
    return step


def _may_be_device(model: Model, tensor: cst.BaseExpression) -> bool:
    value = model.value(tensor)
    return value.place is not Place.HOST and value.is_(Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN)


class Walk:
    """One walk from the copy on the host through all that is made of it, until each way leads back or ends."""

    def __init__(self, model: Model, depth: int = _DEPTH) -> None:
        self._model = model
        self._depth = depth
        self._left: list[cst.CSTNode] = []
        self._seen: set[cst.CSTNode] = set()
        self.back: Call | None = None
        self.picked: cst.Subscript | None = None  # a part of what is on the device, at a place found on the host
        self.works = False  # whether anything is computed on the host

    def goes_back(self, *nodes: cst.CSTNode) -> bool:
        self._left += nodes
        while self._left and len(self._seen) < _LIMIT:
            at = self._left.pop()
            if at not in self._seen:
                self._seen.add(at)
                if not self._step(at):
                    return False
        return not self._left

    def _step(self, node: cst.CSTNode) -> bool:
        """Whether what is done with the value is known to need no host."""
        parent = self._model.parent(node)
        match parent:
            case cst.Attribute():
                return self._attribute(parent)
            case cst.Arg():
                return self._argument(parent)
            case cst.Assign():
                return all(self._stored(parent, target.target) for target in parent.targets)
            case cst.AugAssign(target=target) if target is node:
                return isinstance(node, cst.Name)
            case cst.AssignTarget(target=cst.Subscript()) | cst.Expr():
                return True  # a part of the host's tensor is filled in
            case cst.BinaryOperation() | cst.UnaryOperation() | cst.Comparison() | cst.ComparisonTarget():
                self.works = True
            case cst.Index() | cst.SubscriptElement():
                self.works = True
            case cst.Subscript(value=whole) if whole is not node and self._is_moved(whole):
                self.picked = self.picked or parent
                return True
            case cst.Subscript(value=whole) if whole is not node and self._is_kept_on_host(whole):
                return False
            case cst.Subscript() if parent.value is node:
                self.works = True
            case cst.Subscript() | cst.Element() | cst.Tuple() | cst.List() | cst.Slice():
                pass
            case _:
                return False
        self._left.append(parent)
        return True

    def _attribute(self, node: cst.Attribute) -> bool:
        name, call = node.attr.value, self._model.parent(node)
        if not (isinstance(call, cst.Call) and call.func is node):
            if name in ("data", "T"):
                self._left.append(node)
            return name in _SHAPES or name in ("data", "T")
        if name in _SHAPES:
            return True
        return self._result(self._model.call(call), name)

    def _argument(self, arg: cst.Arg) -> bool:
        site = self._model.parent(arg)
        if not isinstance(site, cst.Call):
            return False
        call = self._model.call(site)
        package, _, last = (call.callee or "").rpartition(".")
        is_known = package.partition(".")[0] in ("torch", "numpy", "sklearn")
        of_tensor = call.method is not None and call.receiver_value.is_(Kind.TENSOR, Kind.ARRAY, Kind.BATCH)
        if call.callee == "builtins.len":
            return True
        entered = (self._model, call.target) if call.target is not None else self._model.elsewhere(call)
        if entered is not None:
            return self._helper(call, arg, *entered)
        return (is_known or of_tensor) and self._result(call, last or call.method or "")

    def _helper(self, call: Call, arg: cst.Arg, home: Model, function: Function) -> bool:
        """Whether a function of the project does no more than that with what it is given, and returns it."""
        parameter = parameter_of_function(call, function, arg)
        if parameter is None or not self._depth or function.is_generator:
            return False
        inside = _Inside(home, self._depth - 1)
        reads = (read for read in parameter.reads if reaches(home, parameter, parameter.writes[0].target, read))
        if not inside.goes_back(*reads) or not inside.returns or inside.back is not None:
            return False
        self.works = self.works or inside.works
        self._left.append(call.node)
        return True

    def _result(self, call: Call, name: str) -> bool:
        if call.node in self._seen:  # the copy of the next iteration
            return True
        if moves_to_accelerator(call, self._model):
            self.back = self.back or call
            return True
        if name not in _SAME and name not in _WORK:
            return False
        self.works = self.works or name in _WORK
        self._left.append(call.node)
        return True

    def _stored(self, statement: cst.Assign, target: cst.CSTNode) -> bool:
        """In a variable of the function, which is followed to its reads."""
        if isinstance(target, (cst.Tuple, cst.List)):
            return all(self._stored(statement, element.value) for element in target.elements)
        binding = self._model.binding(target)
        if isinstance(target, cst.Subscript):
            is_array = self._model.value(target.value).is_(Kind.TENSOR, Kind.ARRAY) or self._follows(target.value)
            self._left.append(target.value)
            return is_array
        if not isinstance(target, cst.Name) or binding is None or binding.shared:
            return False
        moved = [above for read in binding.reads if (above := self._conditional_move(read)) is not None]
        for read in binding.reads:
            if reaches(self._model, binding, target, read) and not any(self._is_behind(read, move) for move in moved):
                self._left.append(read)
        return True

    def _follows(self, name: cst.BaseExpression) -> bool:
        """Whether a variable holds what the walk has come by."""
        binding = self._model.binding(name)
        return binding is not None and any(read in self._seen or read in self._left for read in binding.reads)

    def _is_moved(self, whole: cst.BaseExpression) -> bool:
        """Whether a variable is a tensor that was moved to the device: what a host's index picks of it is there."""
        binding = self._model.binding(whole)
        return binding is not None and any(self._moves(write.value) for write in binding.writes)

    def _is_kept_on_host(self, whole: cst.BaseExpression) -> bool:
        """`torch.cat(features)` after `features.append(feature.cpu())`: the device may have no room for all of it."""
        behind = upstream(self._model, whole)
        return any(
            call.receiver is not None
            and ".cpu()" in text(call.node)
            and (binding := self._model.binding(call.receiver)) is not None
            and binding in behind
            for call in self._model.calls_to(".append")
        )

    def _moves(self, node: cst.CSTNode | None) -> bool:
        return isinstance(node, cst.Call) and moves_to_accelerator(self._model.call(node), self._model)

    def _conditional_move(self, read: cst.CSTNode) -> cst.If | None:
        """`if x.device != y.device: x = x.to(y.device)`: behind it, x is on the device."""
        statement = self._model.small_statement(read)
        if not isinstance(statement, cst.Assign) or not self._moves(statement.value):
            return None
        branch = next((above for above in self._model.ancestors(statement) if isinstance(above, cst.If)), None)
        is_condition = branch is not None and branch.orelse is None and _asks_for_device(branch.test)
        return branch if is_condition else None

    def _is_behind(self, read: cst.CSTNode, move: cst.If) -> bool:
        return move not in self._model.ancestors(read) and is_before(self._model, move, read)


class _Inside(Walk):
    """The same walk in a function that is given the copy: its ways end where it returns."""

    returns = False

    def _step(self, node: cst.CSTNode) -> bool:
        if isinstance(self._model.parent(node), cst.Return):
            self.returns = True
            return True
        return super()._step(node)


def _asks_for_device(test: cst.BaseExpression) -> bool:
    return any(isinstance(node, cst.Attribute) and node.attr.value in ("device", "is_cuda") for node in walk(test))
