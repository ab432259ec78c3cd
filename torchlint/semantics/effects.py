"""What calls do, and what functions and loops do through the calls they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import libcst as cst

from torchlint.semantics import frameworks
from torchlint.semantics import vocabulary as words
from torchlint.semantics.entities import Call, Effects, Function
from torchlint.semantics.hints import looks_like_optimizer
from torchlint.semantics.tree import last_name, without_subscripts
from torchlint.semantics.values import Kind, Value

# Names what a function of another file does; the flag says whether autograd may be on.
EffectsElsewhere = Callable[[Function, bool], "frozenset[str]"]

_GRADIENT_FUNCTIONS = ("torch.autograd.grad", "torch.autograd.functional.", "torch.func.", "torch.autograd.gradcheck")
_RELEVANT = (Kind.MODULE, Kind.OPTIMIZER, Kind.LOADER, Kind.SAMPLER, Kind.SCALER, Kind.PARAMETERS)


# More arguments than those of a tensor, a trainer or an engine go to somebody's formula.
_MOST_OF_BACKWARD = 5


def classify(call: Call, parent: cst.CSTNode | None) -> None:
    """Set the flags of one call, after evaluation; `parent` is what it stands in."""
    method = call.method or ""
    receiver = call.receiver_value
    is_pass = method in ("backward", "manual_backward") and len(call.node.args) <= _MOST_OF_BACKWARD
    call.is_backward = (
        is_pass and receiver.kind not in (Kind.CLASS, Kind.NAMESPACE)
    ) or call.callee == "torch.autograd.backward"
    if call.is_backward and _is_taken_apart(parent):
        call.is_backward = False  # `x, log_det = flow.backward(z)`: the way back through a flow, not through a graph
    call.is_backward |= _trains_on(call)
    is_engine_step = method == "step" and receiver.ref == frameworks.ENGINE  # which leaves no gradients behind
    call.is_optimizer_step = is_engine_step or (method == "step" and _steps(call, receiver))
    call.is_zero_grad = is_engine_step or "zero_grad" in method or (call.callee or "").endswith("zero_grad")


def _trains_on(call: Call) -> bool:
    """`loss_scaler(loss, optimizer, clip_grad=1.0)` of timm: what gets a loss and an optimizer and is out of sight."""
    if call.method is not None or call.target is not None or call.foreign is not None or call.targets_class is not None:
        return False
    if any(arg.keyword is not None or arg.star for arg in call.node.args[:2]):
        return False
    loss, optimizer = call.argument("", 0).value, call.argument("", 1)
    if not loss.carries or (loss.rank != 0 and "scaler" not in last_name(call.node.func).lower()):
        return False
    is_named = optimizer.value.kind is Kind.UNKNOWN and looks_like_optimizer(last_name(optimizer.node))
    return optimizer.value.kind is Kind.OPTIMIZER or is_named


def _is_taken_apart(parent: cst.CSTNode | None) -> bool:
    return isinstance(parent, cst.Assign) and isinstance(parent.targets[0].target, cst.Tuple)


def _steps(call: Call, receiver: Value) -> bool:
    name = last_name(without_subscripts(call.receiver)) if call.receiver is not None else ""
    if receiver.kind in (Kind.OPTIMIZER, Kind.SCALER):
        return True
    if receiver.kind in (Kind.SCHEDULER, Kind.TENSOR, Kind.ARRAY, Kind.LIST):
        return False
    return looks_like_optimizer(name) or "scaler" in name.lower()


def steps_on_a_loss(call: Call) -> bool:
    """`inner_opt.step(loss)`: what takes the gradients of a loss by itself. An optimizer of torch gets a closure."""
    given = call.arguments[0].value if call.is_optimizer_step and call.arguments else None
    return given is not None and call.argument("", 0).value.is_tensor


# What a call with autograd off does not do, however the function that it enters trains for others.
TRAINING = frozenset({"backward", "optimizer_steps", "zero_grads", "unscales", "clips", "gradients"})
# A rule about something missing stays silent where another file may do it.
_TELLING = frozenset({"backward", "optimizer_steps", "zero_grads", "set_epochs", "unscales", "gradients", "opaque"})


def direct(call: Call, effects_elsewhere: EffectsElsewhere | None = None) -> Effects | None:
    """The effects of the call itself; None where it has none."""
    names = list(_categories(call))
    elsewhere: frozenset[str] = frozenset()
    if call.foreign is not None and effects_elsewhere is not None:
        elsewhere = effects_elsewhere(call.foreign, call.grad_enabled is not False)
        if elsewhere & _TELLING:
            names.append("opaque")
    if not names and not elsewhere:
        return None
    effects = Effects(elsewhere=set(elsewhere))
    for name in names:
        getattr(effects, name).append(call)
    return effects


def _categories(call: Call) -> Iterator[str]:
    method = call.method or ""
    callee = call.callee or ""
    if call.is_backward:
        yield "backward"
    if callee.startswith(_GRADIENT_FUNCTIONS) or steps_on_a_loss(call):
        yield "gradients"
    if call.is_optimizer_step:
        yield "optimizer_steps"
    if call.is_zero_grad:
        yield "zero_grads"
    if method == "set_epoch":
        yield "set_epochs"
    if call.is_forward:
        yield "forwards"
    if method == "unscale_":
        yield "unscales"
    if callee in words.CLIPPERS or method in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"):
        yield "clips"
    if _reads_back(call, method, callee):
        yield "syncs"
    if is_opaque(call):
        yield "opaque"


def _reads_back(call: Call, method: str, callee: str) -> bool:
    if words.reads_back(method):
        return call.receiver_value.kind in (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN)
    return callee == "torch.cuda.synchronize"


def is_opaque(call: Call) -> bool:
    """A call to code out of sight that is given a model, an optimizer, a loss or a loader, and so may do anything."""
    if call.target is not None or call.alternatives or call.targets_class is not None or call.foreign is not None:
        return False
    if call.is_forward:
        return False
    callee = call.callee or ""
    package = callee.partition(".")[0]
    if package in words.HARMLESS_PACKAGES or package == "torch" or callee.startswith("torchvision."):
        return False
    arguments = [call.argument("", index).value for index in range(len(call.arguments))]
    if any(value.kind in _RELEVANT or value.carries for value in arguments):
        return True
    receiver = call.receiver_value
    return call.receiver is not None and receiver.kind in (Kind.UNKNOWN, Kind.INSTANCE) and not callee


class EffectTable:
    """Effects of every function of the file, closed over the calls between them."""

    def __init__(
        self,
        functions: Iterable[Function],
        effects_elsewhere: EffectsElsewhere | None = None,
        *,
        keeps_off: bool = True,
    ) -> None:
        """`keeps_off`: where autograd is off at a call, nothing in the file switches it on again."""
        self._functions = list(functions)
        self._keeps_off = keeps_off
        self._direct: dict[Call, Effects] = {}  # of calls that have any
        self._total: dict[Function, Effects] = {function: Effects() for function in self._functions}
        for function in self._functions:
            for call in function.calls:
                found = direct(call, effects_elsewhere)
                if found is not None:
                    self._direct[call] = found
                    self._total[function].add(found)
        callees = {function: self._callees(function.calls) for function in reversed(self._functions)}
        grown = True
        while grown:
            grown = False
            for function, entered in callees.items():
                for callee, may_train in entered:
                    if callee is not function and self._total[function].add(self._entered(callee, may_train)):
                        grown = True

    def _callees(self, calls: Iterable[Call]) -> dict[tuple[Function, bool], None]:
        """The functions that are entered, in their order, and whether autograd may be on where they are."""
        found: dict[tuple[Function, bool], None] = {}
        for call in calls:
            entered = call.passes if call.target is None else [call.target, *call.passes]
            if entered:
                may_train = call.grad_enabled is not False or not self._keeps_off
                found.update(dict.fromkeys((function, may_train) for function in entered))
        return found

    def _entered(self, function: Function, may_train: bool) -> Effects:
        total = self._total[function]
        return total if may_train else total.without(TRAINING)

    def of_function(self, function: Function) -> Effects:
        return self._total[function]

    def of_calls(self, calls: Iterable[Call]) -> Effects:
        """Effects of some calls and of everything they reach."""
        calls = list(calls)
        total = Effects()
        for call in calls:
            if call in self._direct:
                total.add(self._direct[call])
        for callee, may_train in self._callees(calls):
            total.add(self._entered(callee, may_train))
        return total

    def reached(self, call: Call) -> Effects:
        """Effects of one call, the functions it reaches included."""
        return self.of_calls([call])
