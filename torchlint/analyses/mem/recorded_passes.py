"""Forward passes that record a graph where they stand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.compatibility import has_other_autograd
from torchlint.analyses.fate import Fate, Tracer
from torchlint.analyses.lifetime import root
from torchlint.analyses.mem.array_reads import is_read_as_array
from torchlint.analyses.mem.frozen_modules import is_frozen
from torchlint.analyses.mem.keyword_match import namesakes
from torchlint.analyses.modules.parameter_free import class_of_module, is_parameter_free_pass
from torchlint.analyses.single_tensor import carries
from torchlint.analyses.variable_wrapper import is_volatile_pass
from torchlint.semantics import torch_api
from torchlint.semantics.dataflow import text
from torchlint.semantics.hints import LOSS_NAMES
from torchlint.semantics.tree import last_name
from torchlint.semantics.values import Grad, Kind
from torchlint.semantics.vocabulary import class_kind, encodes_texts, module_method

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function, Guard
    from torchlint.semantics.model import Model
    from torchlint.semantics.values import Value


_MODULE_METHODS = {"eval", "load_state_dict", "state_dict", "parameters", "named_parameters", "modules", "train"}
_OTHER_LIBRARIES = ("tf", "tensorflow", "keras", "jax", "flax", "paddle", "mxnet", "onnx", "numpy")
# Functions of packages, other than torch's own, that are called for what they do; `requires_grad(net, False)` is none.
_DIFFERENTIATING = re.compile(
    r"(?!torch\.|numpy\.)(\w+\.)+(?!(\w+_)?(requires|no|zero|clip|toggle|enable|disable|stop)_grad)"
    r"(\w+_)?(grad|gradients?|jacobian|hessian|laplacian|divergence)"
)
_FILLING = frozenset({"torch.ones", "torch.zeros", "torch.empty", "torch.rand", "torch.randn"})
_SERVING = frozenset({"inference", "infer", "predict", "transcribe"})
_DEPTH = 3
_TRANSFORMERS = re.compile(r"^\s*(from|import)\s+(transformers|peft|unsloth)\b", re.MULTILINE)


class RecordedPasses:
    """Tells which calls run a network with autograd on, and decide nothing about gradients by themselves."""

    def __init__(self, model: Model, tracer: Tracer) -> None:
        self._model = model
        self._tracer = tracer

    def of_function(self, function: Function) -> list[Call]:
        """Forward passes with autograd on; beside networks that the function itself switches it off for, only those of
        networks: a helper or a loss was left out of the block on purpose, or has next to nothing to record."""
        found = [call for call in function.calls if self.records(call) and not self._is_chosen(call)]
        if any(call.is_forward and self._model.grad_enabled(call.node) is False for call in function.calls):
            return [call for call in found if self._is_of_network(call)]
        return found

    def _is_chosen(self, call: Call) -> bool:
        """Whether the function runs the same with autograd off where an option is another: it asks when to record."""
        guards = self._model.guards(call.node)
        options = {guard.node: guard.branch for guard in guards if self._asks_for_option(guard)}
        return bool(options) and any(
            self._model.grad_enabled(other.node) is False
            and text(other.node.func) == text(call.node.func)
            and any(options.get(gate.node, gate.branch) != gate.branch for gate in self._model.guards(other.node))
            for other in call.function.calls
        )

    def _asks_for_option(self, guard: Guard) -> bool:
        """`if record:`, of a parameter."""
        test = guard.test
        while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            test = test.expression
        binding = self._model.binding(test) if isinstance(test, cst.Name) else None
        return binding is not None and binding.is_parameter

    def _is_of_network(self, call: Call) -> bool:
        run = self._model.value(call.node.func)
        return run.kind is not Kind.FUNCTION and not LOSS_NAMES.search(last_name(call.node.func))

    def records(self, call: Call) -> bool:
        if self._model.grad_enabled(call.node) is not True:
            return False
        if not (call.is_forward or self._hands_on(call) or self._is_cut_off(call) or self._is_volatile_run(call)):
            return False
        guards = self._model.guards(call.node)
        if any(_asks_for_other_library(guard) or self._asks_for_other_class(guard, call) for guard in guards):
            return False
        if has_other_autograd(self._model) and self._model.value(call.node.func).ref is None:
            return False
        if self._makes_module(call) or self._decides_inside(call) or is_read_as_array(self._model, call.node):
            return False
        if self._is_given_no_tensor(call) or self._is_warm_up(call):
            return False
        if call.method not in (None, "forward") and isinstance(self._model.parent(call.node), cst.Expr):
            return self._is_volatile_run(call)  # `net.sample(0.5)`, which draws its weights anew
        if LOSS_NAMES.search(last_name(call.node.func)) and self._is_given_no_graph(call):
            return self._runs_own_network(call)
        if self._is_unread(call) and (
            self._trains_beside(call) or (call.function.cls is not None and call.function.cls.is_module)
        ):
            return False
        return not is_frozen(self._model, call) and not is_parameter_free_pass(self._model, call)

    def _asks_for_other_class(self, guard: Guard, call: Call) -> bool:
        """`if isinstance(model, Booster): model.predict(x)`, of a class that is not known to be one of networks."""
        match guard.test:
            case cst.Call(func=cst.Name(value="isinstance"), args=[cst.Arg(value=asked), cst.Arg(value=kind)]):
                pass
            case _:
                return False
        if guard.branch != "body" or call.receiver is None or text(asked) != text(call.receiver):
            return False
        dotted = self._model.qualified(kind) or ""
        if dotted.startswith("torch.") or class_kind(dotted) is Kind.MODULE:
            return False
        behind = self._model.class_behind(dotted)
        return not behind[1].is_module if behind is not None else call.method not in (None, "forward")

    def _is_given_no_tensor(self, call: Call) -> bool:
        """Whether an object out of sight, taken for a network, gets an array, or a method of it texts: it makes tensors
        of them itself, and decides about autograd there."""
        given = [self._model.value(arg.value) for arg in call.arguments if arg.keyword is None]
        is_raw = bool(given) and (given[0].kind is Kind.ARRAY or (call.method is not None and _is_text(given[0])))
        return is_raw and class_of_module(self._model, call) is None

    def _is_warm_up(self, call: Call) -> bool:
        """`net(torch.zeros(1, 3, 8, 8).cuda())`, once, by a statement that leaves nothing: no graph is kept."""
        if call.loops() or not isinstance(self._model.parent(call.node), cst.Expr):
            return False
        made = [value for arg in call.arguments for value in self._assigned(arg.value)]
        return bool(made) and all(map(self._is_filled, made))

    def _is_filled(self, value: cst.BaseExpression) -> bool:
        while (
            isinstance(value, cst.Call)
            and isinstance(value.func, cst.Attribute)
            and isinstance(value.func.value, cst.Call)
        ):
            value = value.func.value
        return isinstance(value, cst.Call) and self._model.call(value).callee in _FILLING

    def _assigned(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        binding = self._model.binding(node)
        if binding is None:
            return [node]
        return [write.value for write in binding.writes if write.value is not None]

    def _is_unread(self, call: Call) -> bool:
        """Whether nobody looks at what a pass returns, so that it runs for what the network keeps of it."""
        statement = self._model.parent(call.node)
        match statement:
            case cst.Expr():
                return True
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)]):
                binding = self._model.binding(name)
                return binding is not None and not binding.reads
        return False

    def _trains_beside(self, call: Call) -> bool:
        """Whether the function that runs a network, or one that calls it, takes gradients: those of a later pass go
        back through what the network has kept of this one."""
        effects = self._model.effects(call.function)
        if effects.backward or effects.gradients:
            return True
        return any(beside.is_backward for caller in call.function.callers for beside in caller.function.calls)

    def _decides_inside(self, call: Call) -> bool:
        """Whether the function that is called runs its models without gradients by itself, takes gradients, or ends the
        graph, so that it is the one to switch off. `generate` of Hugging Face's models switches it off, and so do
        `encode` and `predict` of Sentence Transformers, and what the classes of other packages predict with.
        """
        entered = (self._model, call.target) if call.target is not None else self._model.elsewhere(call)
        entered = entered or _method_behind(self._model, call)
        if encodes_texts(call.receiver_value.ref, call.method):
            return True
        if entered is None:
            if call.method == "generate":
                return _TRANSFORMERS.search(self._model.source.text) is not None
            return call.method in _SERVING and self._is_of_package(call)
        ends_graph = call.foreign is not None and call.loop is None and call.value.is_(Kind.ARRAY, Kind.NUMBER)
        return ends_graph or switches_gradients(*entered) or _hands_on_switched(*entered) or takes_gradients(*entered)

    def _is_of_package(self, call: Call) -> bool:
        """Whether the class of an object, or that which `from_pretrained` made it of, is imported and out of sight."""
        made = self._assigned(call.receiver) if call.receiver is not None else []
        loaded = [_loaded_class(self._model, node) for node in made]
        named = (ref for ref in (call.receiver_value.ref, *loaded) if ref)
        return any("." in ref and self._model.class_behind(ref) is None for ref in named)

    def _runs_own_network(self, call: Call) -> bool:
        """Whether a method of a network makes a loss of what it computes itself: `lm.nll_loss(tokens, targets)`."""
        entered = (self._model, call.target) if call.target is not None else self._model.elsewhere(call)
        if entered is None or call.method in (None, "forward") or not call.receiver_value.is_(Kind.MODULE):
            return False
        return any(inner.is_forward and _is_of_self(inner, entered[1]) for inner in entered[1].calls)

    def _is_given_no_graph(self, call: Call) -> bool:
        """Whether all tensors that a call gets are known to have no graph."""
        given = [self._model.value(arg.value) for arg in call.arguments]
        return bool(given) and all(value.is_tensor and value.grad is Grad.DETACHED for value in given)

    def _hands_on(self, call: Call) -> bool:
        """Whether a helper of the file that training uses too runs the model and returns what it says, or a method of a
        network does, whoever uses it."""
        helpers = [call.target] if call.target is not None else call.alternatives
        if not helpers or any(helper.is_generator or self._uses_graph(helper) for helper in helpers):
            return False
        if all(is_entered(call, helper) for helper in helpers):
            return any(self._model.effects(helper).forwards for helper in helpers)
        forwards = [inner.node for helper in helpers for inner in helper.calls if inner.is_forward]
        return bool(forwards) and Fate.BACKWARD in self._tracer.of_expression(*forwards)

    def _is_volatile_run(self, call: Call) -> bool:
        """Whether a tensor that was to have no graph goes to a helper of the file that runs the model and returns
        nothing, or to a method of a network, whatever it is called and wherever it stands."""
        if call.target is None:
            runs = call.receiver_value.is_(Kind.MODULE) and module_method(call.method or "") is None
        else:
            runs = call.target.is_procedure and bool(self._model.effects(call.target).forwards)
        return runs and is_volatile_pass(self._model, call)

    def _is_cut_off(self, call: Call) -> bool:
        """`model.encoder(x).detach()`, of a network that was handed in: whether a part or method out of sight has a
        graph, so that there is something to detach.
        """
        if not call.receiver_value.is_(Kind.MODULE) or (call.target or call.foreign) is not None or not call.arguments:
            return False
        network, read = root(self._model, call.node.func), self._model.parent(call.node)
        if network is None or not network.is_parameter or module_method(call.method or "") is not None:
            return False
        return isinstance(read, cst.Attribute) and read.attr.value in ("detach", "data")

    def _uses_graph(self, helper: Function) -> bool:
        """Whether a helper sends something backward itself, or keeps what is: log-probabilities of an episode."""
        effects = self._model.effects(helper)
        forwards = (inner.node for inner in helper.calls if inner.is_forward)
        return bool(effects.backward or effects.gradients) or Fate.BACKWARD in self._tracer.within(helper, *forwards)

    def _makes_module(self, call: Call) -> bool:
        """`Net(...)`, also of a class that came in as an argument: what it returns is used as a module."""
        if self._model.value(call.node.func).kind is Kind.CLASS:
            return True
        node: cst.CSTNode | None = call.node
        while isinstance(parent := self._model.parent(node) if node is not None else None, (cst.Attribute, cst.Call)):
            node = parent
        if not isinstance(parent, cst.Assign) or len(parent.targets) != 1:
            return False
        made = self._model.binding(parent.targets[0].target)
        if made is None:
            return False
        return bool(made.methods & _MODULE_METHODS) or made in self._model.once(_moved_in_place)


def _moved_in_place(model: Model) -> set[Binding]:
    """`net.to(device)`, of which nobody takes the result: no tensor would have moved."""
    moves = [call for call in model.calls_to(".to", ".cuda") if isinstance(model.parent(call.node), cst.Expr)]
    moved = (model.binding(call.receiver) for call in moves if call.receiver is not None)
    return {binding for binding in moved if binding is not None}


def _is_of_self(call: Call, method: Function) -> bool:
    """`self(x)`, `self.forward(x)`, `self.encoder(x)`, but no `self.criterion(x, y)`"""
    match call.node.func:
        case cst.Name(value=name) | cst.Attribute(value=cst.Name(value=name)) as run:
            return name in method.params[:1] and not LOSS_NAMES.search(last_name(run))
    return False


def is_entered(call: Call, method: Function) -> bool:
    """Whether code that is no module itself gets a graph from a method of one: it is the one to need it, or not."""
    comes_from_module = call.function.cls is not None and call.function.cls.is_module
    return carries(call.value) and method.cls is not None and method.cls.is_module and not comes_from_module


def _method_behind(model: Model, call: Call) -> tuple[Model, Function] | None:
    """The method of a class of another file that a call names, also where nothing that the file imports is followed."""
    ref = call.receiver_value.ref
    behind = model.class_behind(ref) if ref is not None and call.method is not None else None
    method = behind[1].method(call.method or "") if behind is not None else None
    return (behind[0], method) if behind is not None and method is not None else None


def _loaded_class(model: Model, made: cst.BaseExpression) -> str | None:
    """`pkg.Net` of `pkg.Net.from_pretrained("large").to(device)`."""
    while isinstance(made, cst.Call):
        call = model.call(made)
        if call.method == "from_pretrained":
            return (call.callee or "").removesuffix(".from_pretrained")
        if call.receiver is None:
            return None
        made = call.receiver
    return None


def _is_text(value: Value) -> bool:
    """A text or a list of texts."""
    return value.kind is Kind.STRING or (value.element is not None and value.element.kind is Kind.STRING)


def _asks_for_other_library(guard: Guard) -> bool:
    """`self.framework == "tf"`"""
    match guard.test:
        case cst.Comparison(
            comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.SimpleString() as name)]
        ):
            return guard.branch == "body" and name.evaluated_value in _OTHER_LIBRARIES
    return False


def runs_without_gradients(model: Model, function: Function, depth: int = _DEPTH) -> bool:
    """Whether a function runs its networks with autograd off, for all that is in sight, or those do that it calls."""
    passes = [inner for inner in function.calls if inner.is_forward] or [
        inner for inner in model.effects(function).forwards if not _is_handed_out(inner.function, function)
    ]
    if not passes:
        passes = [inner for inner in function.calls if _may_be_pass(inner)] or model.effects(function).forwards
    if passes and all(model.grad_enabled(inner.node) is not True for inner in passes):
        return True
    entered = [inner for inner in function.calls if model.effects(inner).has("forwards")]
    if not passes and not entered:  # a network that is written out, with its weights in a dict
        entered = [model.call(node.value) for node in function.returns if isinstance(node.value, cst.Call)]
        if len(entered) < len(function.returns):
            return bool(function.returns) and all(model.grad_enabled(node) is False for node in function.returns)
    return bool(entered) and all(
        model.grad_enabled(inner.node) is False
        or (inner.target is not None and depth > 0 and runs_without_gradients(model, inner.target, depth - 1))
        for inner in entered
    )


def switches_gradients(model: Model, function: Function) -> bool:
    """Whether a function runs its networks with autograd off, or one network with gradients to train it, and without
    them otherwise."""
    if runs_without_gradients(model, function):
        return True
    passes = [inner for inner in function.calls if inner.is_forward or model.effects(inner).has("forwards")]
    without = {text(inner.node.func) for inner in passes if model.grad_enabled(inner.node) is False}
    return any(text(inner.node.func) in without for inner in passes if model.grad_enabled(inner.node) is True)


def _hands_on_switched(model: Model, function: Function) -> bool:
    """`return net.generate(images, no_grad=no_grad)`, where every method of that name switches autograd by itself."""
    returned = [model.call(node.value) for node in function.returns if isinstance(node.value, cst.Call)]
    if not returned or len(returned) < len(function.returns):
        return False
    methods = [namesakes(model, call) for call in returned]
    return all(methods) and all(switches_gradients(*method) for named in methods for method in named)


def _is_handed_out(inner: Function, function: Function) -> bool:
    """Whether a function gives one of its own to others, which run it when they are run: a solver of equations."""
    return inner.parent is function and inner.passed_around


def _may_be_pass(call: Call) -> bool:
    """Whether a method of an object out of sight, given something, is none of a tensor or of every module."""
    if call.method is None or not call.arguments or (call.target or call.foreign) is not None:
        return False
    is_known = (torch_api.method(call.method) or module_method(call.method)) is not None
    return not is_known and call.callee is None


def takes_gradients(model: Model, function: Function) -> bool:
    """Whether the result needs gradients on the way: a network that adapts itself to a task before it answers. What
    takes them may be a helper out of sight: `gradient(energy, x)`."""
    effects = model.effects(function)
    if effects.gradients or effects.backward:
        return True
    helpers = (call.callee or "" for call in function.calls if (call.target or call.foreign) is None)
    return any(_DIFFERENTIATING.fullmatch(helper) is not None for helper in helpers)
