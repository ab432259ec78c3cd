"""What each loop is for, by what its body does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import libcst as cst

from torchlint.semantics.effects import EffectTable
from torchlint.semantics.entities import Call, Effects, Function, Loop, Role
from torchlint.semantics.transfer import element_of
from torchlint.semantics.tree import dotted, is_name, walk
from torchlint.semantics.values import Kind, Value

_LOADER = re.compile(r"(?i)(^|_)(data_?)?loader$")
_LOADING = frozenset({"load_state_dict", "load_from_checkpoint", "from_pretrained"})
_BESIDE_NETWORK = re.compile(r"(?i)tokenizer|processor|config|extractor|scheduler|optim")
_DEPTH = 4


class RoleFinder:
    """Says what each loop is for, and which functions are steps or passes over data."""

    def __init__(self, functions: list[Function], loops: list[Loop], effects: EffectTable) -> None:
        self._effects = effects
        self._find_steps(functions)
        for loop in reversed(loops):  # inner loops come after outer ones
            loop.role = self._of_content(loop)
        self._find_passes(functions, loops)

    def _find_steps(self, functions: list[Function]) -> None:
        outside = {
            function: [call for call in function.calls if _may_train(call) and all(map(_is_of_one_step, call.loops()))]
            for function in functions
        }
        for function in _spread(outside, lambda call: call.is_backward, _reached, lambda function: function.is_step):
            function.is_step = True

    def _runs_backward(self, call: Call) -> bool:
        if call.is_backward:
            return True
        return _may_train(call) and any(function is not None and function.is_step for function in _reached(call))

    def _of_content(self, loop: Loop) -> Role:
        element = element_of(loop.iterates)
        if _over_optimizers(loop):
            return Role.MODULES
        if any(call.loop is loop and self._runs_backward(call) for call in loop.calls):
            return Role.STEPS
        if _over_modules(loop.iterates, element) or self._runs_its_targets(loop):
            return Role.MODULES
        effects = self._effects.of_calls(loop.calls)
        if effects.has("backward") and not self._only_attacks(loop, element, effects):
            return Role.STEPS if yields_batches(loop.iterates) or _unpacks_loader(loop) else Role.EPOCHS
        if effects.has("forwards") and self._evaluates(loop, element):
            return Role.EVALUATION
        is_range = loop.iterates.ref == "builtins.range"
        if is_range or loop.iterates.kind is Kind.TENSOR or _tensor_rows(element):
            return Role.ELEMENTS
        return Role.PLAIN

    def _only_attacks(self, loop: Loop, element: Value, effects: Effects) -> bool:
        """Whether an evaluation takes gradients of its inputs: it runs the model itself, and nothing trains that."""
        own = any(call.loop is loop and call.is_forward for call in loop.calls)
        return own and not effects.has("optimizer_steps") and self._evaluates(loop, element)

    @staticmethod
    def _runs_its_targets(loop: Loop) -> bool:
        """`for k, model in enumerate(models): out = model(x)`: all that it runs is what it iterates over."""
        run = [call.receiver or call.node.func for call in loop.calls if call.loop is loop and call.is_forward]
        targets = {node.value for node in walk(loop.target) if isinstance(node, cst.Name)} if loop.target else set()
        return bool(run) and all(isinstance(model, cst.Name) and model.value in targets for model in run)

    def _evaluates(self, loop: Loop, element: Value) -> bool:
        if _is_part_of_forward_pass(loop.function):
            return yields_batches(loop.iterates)
        if loop.iterable is None or loop.is_comprehension:
            return yields_batches(loop.iterates)
        own = any(_iterates(loop, call) and self._effects.reached(call).has("forwards") for call in loop.calls)
        plain = element.kind in (Kind.UNKNOWN, Kind.BATCH, Kind.TUPLE, Kind.TENSOR) and not _is_counter(loop.iterates)
        return own and (plain or yields_batches(loop.iterates) or _strides(loop) or _draws(loop))

    def _only_runs_passes(self, loop: Loop) -> bool:
        """`for task in tasks: evaluate(task)`, where each iteration is a pass over data of its own."""
        own = [call for call in loop.calls if _iterates(loop, call) and self._effects.reached(call).has("forwards")]
        return not yields_batches(loop.iterates) and all(map(_runs_pass, own))

    def _find_passes(self, functions: list[Function], loops: list[Loop]) -> None:
        working = (Role.STEPS, Role.EVALUATION, Role.EPOCHS)
        for loop in loops:
            loop.function.is_pass |= loop.role in working
        calls = {function: function.calls for function in functions}
        for function in _spread(calls, lambda call: False, _entered, lambda function: function.is_pass):
            function.is_pass = True
        pairs = [(loop, outer) for loop in loops if loop.role in working for outer in list(loop.around())[1:]]
        around = {outer for _, outer in pairs}
        parted = {outer for loop, outer in pairs if _goes_over_parts(loop, outer)}
        for loop in loops:
            if (loop.role in (Role.PLAIN, Role.ELEMENTS) and (loop in around or any(map(_runs_pass, loop.calls)))) or (
                loop.role is Role.EVALUATION and (_is_over_checkpoints(loop) or self._only_runs_passes(loop))
            ):
                loop.role = Role.EVALUATION if loop in parted and _is_over_batches(loop) else Role.EPOCHS


def _spread(
    calls: Mapping[Function, list[Call]],
    begins: Callable[[Call], bool],
    reached: Callable[[Call], tuple[Function | None, ...]],
    has: Callable[[Function], bool],
) -> set[Function]:
    """The functions that have a property, or get it from a call in which it begins or that reaches one of them."""
    users: dict[Function, list[Function]] = {}
    work: list[Function] = []
    for function, made in calls.items():
        entered = [target for call in made for target in reached(call) if target is not None]
        for target in entered:
            users.setdefault(target, []).append(function)
        if has(function) or any(map(begins, made)):
            work.append(function)
        work += [target for target in entered if target not in calls and has(target)]
    found: set[Function] = set()
    while work:
        function = work.pop()
        if function not in found:
            found.add(function)
            work += users.get(function, ())
    return found & calls.keys()


def _reached(call: Call) -> tuple[Function | None, ...]:
    """What a call runs for sure; what it hands to a function in sight, that function calls or does not."""
    if call.target is not None or call.foreign is not None:
        return (call.target, call.foreign)
    return tuple(call.alternatives or call.passes)


def _may_train(call: Call) -> bool:
    """A function that trains for some evaluates for those who call it with autograd off."""
    return call.is_backward or call.grad_enabled is not False


def _entered(call: Call) -> tuple[Function | None, ...]:
    return (call.target, call.foreign, *call.alternatives)


def _runs_pass(call: Call) -> bool:
    return any(function is not None and function.is_pass for function in _entered(call))


def _is_over_checkpoints(loop: Loop) -> bool:
    """Each iteration loads what a pass over the data evaluates, or a network, whatever that is run on."""
    if yields_batches(loop.iterates):
        return False
    own = [call for call in loop.calls if call.loop is loop]
    if _loads_network(own):
        return True
    if not any(call.callee == "torch.load" for call in own):
        return False
    if any(_is_state(node) for line in loop.body for node in walk(line)):
        return True
    is_apart = not any(call.is_forward for call in own)
    return is_apart and any(_runs_pass(call) or _runs_again_and_again(call) for call in own)


def _is_state(node: cst.CSTNode) -> bool:
    """`checkpoint["state_dict"]`"""
    match node:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]):
            return str(key.evaluated_value).endswith("state_dict")
    return False


def _loads_network(calls: list[Call]) -> bool:
    """`load_state_dict`, `from_pretrained` and the like, here or in a function that is called, but for one that keeps
    what it has loaded."""
    entered: set[Function] = set()
    for _ in range(_DEPTH):
        if any(_loads(call) for call in calls):
            return True
        called = {function for call in calls for function in _entered(call) if function is not None} - entered
        entered |= called
        calls = [call for function in called if not _keeps_what_it_makes(function) for call in function.calls]
    return False


def _loads(call: Call) -> bool:
    return call.method in _LOADING and not _BESIDE_NETWORK.search(dotted(call.node.func) or "")


def _keeps_what_it_makes(function: Function) -> bool:
    """`@cache`, `global net`, `if self.net is None:`"""
    if any("cache" in (name or "") for name in function.decorators):
        return True
    for node in walk(function.node):
        match node:
            case cst.Global():
                return True
            case cst.Comparison(
                left=cst.Attribute(value=cst.Name(value=owner)),
                comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot(), comparator=cst.Name(value="None"))],
            ) if owner == function.own_name:
                return True
    return False


def _runs_again_and_again(call: Call) -> bool:
    """Whether a function of this file runs a model in a loop."""
    return call.target is not None and any(inner.is_forward and inner.loop is not None for inner in call.target.calls)


def _is_of_one_step(loop: Loop) -> bool:
    return _over_chunks(loop) or _over_optimizers(loop)


def _over_optimizers(loop: Loop) -> bool:
    """`for optimizer, loss in zip(optimizers, losses): loss.backward(); optimizer.step()`: all that it steps with is
    what it iterates over, and it runs no model: one step, of several networks."""
    own = [call for call in loop.calls if call.loop is loop]
    steps = [call.receiver for call in own if call.is_optimizer_step]
    targets = {node.value for node in walk(loop.target) if isinstance(node, cst.Name)} if loop.target else set()
    return (
        bool(steps)
        and not any(call.is_forward for call in own)
        and all(isinstance(step, cst.Name) and step.value in targets for step in steps)
    )


def _over_chunks(loop: Loop) -> bool:
    """A loop over the parts of one batch: `batch.chunk(n)`, also with `zip` and `enumerate`."""
    work = [loop.iterable]
    while work:
        match work.pop():
            case cst.Call(func=cst.Name(value="enumerate" | "zip"), args=args) if args:
                work += [arg.value for arg in args if arg.keyword is None]
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="chunk"))):
                pass
            case _:
                return False
    return True


_EVALUATING = ("eval", "test", "valid")


def _is_part_of_forward_pass(function: Function) -> bool:
    """A method of a network, but not one that switches its mode, or evaluates by its name and switches that of a part:
    these run whole passes over data."""
    if function.cls is None or not function.cls.is_module or function.cls.is_lightning:
        return False
    evaluates = function.name.startswith(_EVALUATING)
    switched = (call.receiver for call in function.calls if call.method in ("eval", "train"))
    return not evaluates and not any(is_name(node, function.own_name) for node in switched)


def _iterates(loop: Loop, call: Call) -> bool:
    """Whether a call is made once per iteration of a loop, or once for each of several models."""
    inner = call.loop
    while inner is not None and inner is not loop and inner.role is Role.MODULES:
        inner = inner.parent
    return inner is loop


def _is_counter(iterates: Value) -> bool:
    return iterates.ref == "builtins.range" or element_of(iterates).kind is Kind.NUMBER


def _draws(loop: Loop) -> bool:
    """`for _ in range(steps): x, y = next(batches)`."""
    return any(call.callee == "builtins.next" and call.loop is loop for call in loop.calls)


def _strides(loop: Loop) -> bool:
    """`for i in range(0, len(data), size)`: what begins at each index is a batch."""
    match loop.iterable:
        case cst.Call(args=[_, _, cst.Arg(value=cst.Name() | cst.Attribute() | cst.Subscript())]):
            return loop.iterates.ref == "builtins.range"
        case cst.Call(args=[_, _, cst.Arg(value=cst.Integer() as stride)]):
            return loop.iterates.ref == "builtins.range" and stride.evaluated_value > 1
    return False


def _over_modules(iterates: Value, element: Value) -> bool:
    kinds = (Kind.MODULE, Kind.OPTIMIZER, Kind.PARAMETERS)
    if iterates.kind in (Kind.PARAMETERS, Kind.MODULE) or element.kind in kinds or element.ref == "torch.nn.Parameter":
        return True
    return element.items is not None and any(
        item.kind in kinds or item.ref == "torch.nn.Parameter" for item in element.items
    )


def _tensor_rows(element: Value) -> bool:
    if element.kind is Kind.TENSOR:
        return True
    return element.items is not None and any(item.kind is Kind.TENSOR for item in element.items)


def yields_batches(iterates: Value) -> bool:
    """Not where each iteration has a loader, and with it a pass over data of its own."""
    return iterates.kind is Kind.LOADER or _has_batch(element_of(iterates))


def _goes_over_parts(inner: Loop, outer: Loop) -> bool:
    """Whether a loop goes over what is made of the target of the one around it, or in strides."""
    if _strides(inner):
        return True
    targets = {node.value for node in walk(outer.target) if isinstance(node, cst.Name)} if outer.target else set()
    work = [inner.iterable] if inner.iterable is not None else []
    seen: set[str] = set()
    while work:
        names = {node.value for node in walk(work.pop()) if isinstance(node, cst.Name)}
        if names & targets:
            return True
        for name in names - seen:
            binding = outer.function.scope.bindings.get(name)
            writes = binding.writes if binding is not None else []
            inside = (write for write in writes if write.loop is not None and outer in write.loop.around())
            work += [write.value for write in inside if write.value is not None]
        seen |= names
    return False


def _is_over_batches(loop: Loop) -> bool:
    """Whether each iteration has one batch; where it has a loader, it is a pass over the data."""
    element = element_of(loop.iterates)
    is_batch = element.kind is Kind.BATCH or any(item.kind is Kind.BATCH for item in element.items or ())
    return loop.iterates.kind is Kind.LOADER or is_batch or _unpacks_loader(loop)


def _unpacks_loader(loop: Loop) -> bool:
    """`for real, _ in train_loader:`, also with `enumerate` and `tqdm`, of a loader that nobody in sight makes."""
    iterable, target = loop.iterable, loop.target
    while isinstance(iterable, cst.Call) and iterable.args:
        if is_name(iterable.func, "enumerate") and isinstance(target, cst.Tuple) and target.elements:
            target = target.elements[-1].value
        iterable = iterable.args[0].value
    name = iterable.attr if isinstance(iterable, cst.Attribute) else iterable
    return isinstance(target, cst.Tuple) and isinstance(name, cst.Name) and _LOADER.search(name.value) is not None


def _has_batch(value: Value) -> bool:
    return value.kind is Kind.BATCH or (value.items is not None and any(map(_has_batch, value.items)))
