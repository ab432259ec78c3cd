"""Evaluations that record a graph: a model runs with gradients on, and nothing it returns is ever sent backward."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.callers_by_name import (
    calls_in_other_files,
    is_called_only_with_gradients,
    is_run_by_forward_of_base,
)
from torchlint.analyses.compatibility import is_of_another_library
from torchlint.analyses.conditions import conditions, exclude
from torchlint.analyses.evaluation_names import evaluates_by_name, is_held_out, is_over_data
from torchlint.analyses.fate import Fate, Tracer
from torchlint.analyses.lifetime import root
from torchlint.analyses.loading.feeding import repeats
from torchlint.analyses.mem.called_by_bases import is_called_by_base
from torchlint.analyses.mem.evaluation import Evaluation, Extent
from torchlint.analyses.mem.evaluation_before import Modes
from torchlint.analyses.mem.frozen_modules import is_teacher, switches_parameters_off
from torchlint.analyses.mem.gradients_on_the_way import (
    is_made_to_take_gradients,
    is_trained_across,
    is_trained_by_name,
    may_need_gradients,
    reached,
    sends_back_for_others,
)
from torchlint.analyses.mem.keyword_match import is_of_network, methods_meant, methods_named, namesakes, passes_that_fit
from torchlint.analyses.mem.network_parts import is_in_constructor, is_network_by_hand
from torchlint.analyses.mem.recorded_passes import RecordedPasses, is_entered, switches_gradients, takes_gradients
from torchlint.analyses.mem.state_reads import read_for_state
from torchlint.analyses.mem.switching_callers import (
    is_chosen_with_autograd_off,
    is_off_abroad,
    is_off_at_entries,
    is_off_where_handed_to,
    is_switched_on_one_way,
    is_trained_abroad,
)
from torchlint.analyses.mem.training_calls import is_training_call
from torchlint.analyses.mem.training_phases import training_phase
from torchlint.analyses.mem.trial_runs import is_only_tried, is_trial
from torchlint.analyses.modules.parameter_free import class_of_module, module_of
from torchlint.analyses.single_tensor import carries
from torchlint.analyses.variable_wrapper import is_volatile_pass
from torchlint.semantics.dataflow import text, upstream
from torchlint.semantics.entities import Role
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Class, Function, Loop
    from torchlint.semantics.model import Model


_GRADIENTS_TAKEN = re.compile(r"\.backward\(|\bgrad\(")
# Where all alternatives begin with a letter, or another character, the rest of a text is passed over quickly.
_GRADIENT_WORDS = re.compile(
    r"requires_grad(?!(_\(|\s*=\s*)False)|enable_grad|retain_grad|create_graph"
    r"|register_(full_)?(backward|forward)\w*hook|register_hook|autograd\.(grad|functional|backward)"
    r"|grad(?<=\bgrad)\(|\.grad\b|Grad_?[Cc]am|grad_?[Cc]am|force(?<=\bforce)s?\b|jacobian|hessian|jvp|vjp"
    r"|attack(er|_model|_net|_fn)?\(|perturb(?<=\bperturb)\(|fgsm(?<=\bfgsm)\(|pgd(?<=\bpgd)\w*\("
)
_LEARNED = re.compile(r"backward\(|load_|torch\.load|pretrained|hub\.load|import_module")
_HOOKS = re.compile(r"register_\w*hook|retain_grad\(")
_PROGRAMS = re.compile(r"main(_\w+)?|_main|run|cli|app|start|launch|worker|main_worker|work|process")
_METRICS = re.compile(r"(?i)loss|crit|metric|acc|score|eval|error|measure|transform|preprocess|collate|decod|post")
_FRAMEWORK_BASES = re.compile(
    r"(transformers|fastai|ignite|composer|catalyst|mmengine|skorch|pytorch_lightning|lightning)\."
)


def evaluations(model: Model) -> Iterator[Evaluation]:
    """Every evaluation of the file that records a graph; at most one for each function or loop."""
    if is_of_another_library(model):
        return
    finder = _Finder(model)
    for function in model.functions:
        yield from finder.found(function)


def _has_gradient_words(model: Model) -> bool:
    return _GRADIENT_WORDS.search(model.source.text) is not None


class _Finder:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._tracer = Tracer(model)
        self._passes = RecordedPasses(model, self._tracer)
        self._modes = model.once(Modes)
        self._found: dict[Function, list[Evaluation]] = {}

    def found(self, function: Function) -> list[Evaluation]:
        if function not in self._found:
            self._found[function] = [*self._of_function(function)]
        return self._found[function]

    def _of_function(self, function: Function) -> Iterator[Evaluation]:
        passes = self._passes.of_function(function)
        forwards = [call for call in passes if not self._is_told_to_callers(call)]
        if not forwards or self._is_out_of_scope(function) or self._is_part_of_a_pass(function):
            return
        whole = self._whole(function, forwards) if forwards == passes else None
        found = [whole] if whole is not None else list(self._blocks(function, forwards))
        if found and not self._is_up_to_callers(function, forwards):
            yield from (each for each in found if not self._is_off_inside(each.forward))

    def _is_told_to_callers(self, call: Call) -> bool:
        """Whether a method of a network returns what comes of a pass to one who has to switch autograd off there."""
        if _comes_from_outside(call):
            return False
        methods = [call.function]
        for method in methods:  # it grows while the loop runs
            for caller in method.callers:
                if is_entered(caller, method) and any(each.covers(caller) for each in self.found(caller.function)):
                    return self._tracer.is_returned(call.function, call.node)
                if not _comes_from_outside(caller) and caller.function not in methods:
                    methods.append(caller.function)
        return False

    def _is_up_to_callers(self, function: Function, forwards: Sequence[Call]) -> bool:
        if any(call.is_backward for call in function.calls):  # with autograd off that would fail
            return is_trained_abroad(self._model, function, forwards)
        return (
            is_called_by_base(self._model, function)
            or is_off_at_entries(self._model, function)
            or is_off_abroad(self._model, function)
            or is_chosen_with_autograd_off(self._model, function)
            or is_off_where_handed_to(self._model, function)
            or is_switched_on_one_way(self._model, function)
            or is_trained_abroad(self._model, function, forwards)
        )

    def _is_off_inside(self, call: Call) -> bool:
        """Whether what a call enters, or must mean where its object is out of sight, runs without gradients by itself,
        or decides about them, or every method of that name runs without."""
        entered = self._model.elsewhere(call)
        if entered is not None and switches_gradients(*entered):
            return True
        meant = methods_meant(self._model, call)
        if (
            any(_decides(*method) for method in meant)
            or any(takes_gradients(*method) for method in passes_that_fit(self._model, call, _GRADIENTS_TAKEN))
            or may_need_gradients(self._model, call, _GRADIENTS_TAKEN)
            or is_made_to_take_gradients(self._model, call)
        ):
            return True
        methods = meant if len(meant) == 1 else namesakes(self._model, call)
        is_network = call.receiver_value.kind is Kind.MODULE
        if any(takes_gradients(*method) for method in methods if not is_network or is_of_network(self._model, *method)):
            return True
        return bool(methods) and all(switches_gradients(*method) for method in methods)

    # -- what is left alone

    def _is_out_of_scope(self, function: Function) -> bool:
        cls = function.cls
        if isinstance(function.node, cst.Lambda) or is_in_constructor(function, self._model):
            return True
        if cls is not None:
            if cls.is_lightning or any(base and _FRAMEWORK_BASES.match(base) for base in cls.bases):
                return True
            if cls.is_module and function.name in ("forward", "__init__", "__call__"):
                return True
            if is_network_by_hand(function, self._model):
                return True
            if is_only_tried(self._model, function, self._passes.records):
                return True
        if function.passed_around and "ignite" in self._model.frameworks:
            return True
        return is_trial(self._model, function, self._passes.records)

    # -- a function that only evaluates

    def _whole(self, function: Function, forwards: Sequence[Call]) -> Evaluation | None:
        node = function.node
        if not isinstance(node, cst.FunctionDef) or function.is_generator or node.asynchronous is not None:
            return None
        if self._may_train(function) or self._speaks_of_gradients(node):
            return None
        named = evaluates_by_name(function)
        fate = self._tracer.of_expression(*(call.node for call in forwards))
        if named and Fate.ESCAPES in fate:
            fate = self._fate_abroad(function, forwards) or fate
        if is_trained_across(self._model, self._tracer, function):
            return None
        if Fate.BACKWARD in fate or (not named and self._is_better_in_parts(function, forwards)):
            return None
        if (Fate.ESCAPES in fate and self._calls_back(function)) or is_trained_by_name(self._model, function):
            return None
        loops = [loop for call in forwards for loop in call.loops()]
        in_eval = any(self._modes.evaluates(call) for call in forwards)
        asked = self._is_asked_for(function, forwards, fate, loops)
        if not self._is_evaluation(forwards, fate, in_eval, named and asked, loops):
            return None
        certain = in_eval and Fate.ESCAPES not in fate
        best = next((call for call in forwards if call.loop is not None), forwards[0])
        return Evaluation(best, Extent.FUNCTION, node, certain, bare=self._bare(function))

    def _speaks_of_gradients(self, node: cst.CSTNode) -> bool:
        return self._model.once(_has_gradient_words) and _GRADIENT_WORDS.search(text(node)) is not None

    def _fate_abroad(self, function: Function, forwards: Sequence[Call]) -> Fate:
        """Fate of results that calls in other files get, and nobody else; none where it is not known."""
        fate = self._tracer.within(function, *(call.node for call in forwards))
        if Fate.ESCAPES in fate or function.callers or function.passed_around:
            return Fate.NONE
        for call in function.foreign_callers:
            found = self._model.caller(call)
            fate |= Tracer(found[0]).of_expression(call.node) if found is not None else Fate.ESCAPES
        return fate if function.foreign_callers else Fate.NONE

    def _is_asked_for(self, function: Function, forwards: Sequence[Call], fate: Fate, loops: Sequence[Loop]) -> bool:
        """Whether the name of a function counts. A method of a module may be a part of a pass that others switch."""
        if function.cls is None or not function.cls.is_module:
            return Fate.ESCAPES not in fate or bool(loops or function.callers or function.foreign_callers)
        over_data = any(loop.role is Role.EVALUATION and is_over_data(loop) for loop in loops)
        if over_data or self._is_entered(function) or any(is_volatile_pass(self._model, call) for call in forwards):
            return True
        if not loops or fate is not Fate.CONSUMED:
            return False
        return self._trains_itself(function.cls) or is_called_only_with_gradients(self._model, function)

    def _trains_itself(self, module: Class) -> bool:
        """Whether a module is its own trainer, so that nobody else runs its evaluation as a part of a pass."""
        return any(self._model.effects(method).optimizer_steps for method in module.methods.values())

    def _is_entered(self, method: Function) -> bool:
        """Whether a call of a method of a module is in sight that the module does not make itself."""
        methods = [method]
        for inner in methods:  # it grows while the loop runs
            if calls_in_other_files(self._model, inner) or any(map(_comes_from_outside, inner.callers)):
                return inner.name != "forward"
            methods.extend(call.function for call in inner.callers if call.function not in methods)
        return False

    def _is_part_of_a_pass(self, function: Function) -> bool:
        """Whether the `forward` of a module calls a method of this name, of an object that it is given: a decoder is
        run that way in training, too. Or that of a base in another file calls it."""
        if function.cls is None:
            return False
        if function.cls.is_module:
            return is_run_by_forward_of_base(self._model, function)
        for call in self._model.calls_to(f".{function.name}"):
            cls = call.function.cls
            given = self._model.binding(call.receiver) if call.receiver is not None else None
            if given is None or not given.is_parameter or cls is None or self._model.grad_enabled(call.node) is False:
                continue
            if cls.is_module and call.function.name == "forward":
                return True
        return False

    def _calls_back(self, function: Function) -> bool:
        """Whether the function calls something handed in that is no model and no metric, and may take gradients, or its
        class takes those of what others make of the result."""
        if sends_back_for_others(self._model, function):
            return True
        for call in function.calls:
            binding = self._model.binding(call.node.func)
            if binding is None or not binding.is_parameter or _METRICS.search(binding.name):
                continue
            if call.node.args and self._model.value(call.node.func).is_(Kind.UNKNOWN, Kind.FUNCTION):
                return True
        return False

    def _is_better_in_parts(self, function: Function, forwards: Sequence[Call]) -> bool:
        """A whole program, or a function that lends its model to code out of sight, is not switched off as a whole."""
        if _PROGRAMS.fullmatch(function.name) and all(call.loop is not None for call in forwards):
            return True
        lent = (arg for call in self._model.effects(function).opaque for arg in call.node.args)
        return any(self._model.value(arg.value).is_(Kind.MODULE) for arg in lent)

    def _is_evaluation(
        self, forwards: Sequence[Call], fate: Fate, in_eval: bool, named: bool, loops: Sequence[Loop]
    ) -> bool:
        if Fate.ESCAPES in fate:
            return in_eval and (named or bool(loops))
        if in_eval or named or any(loop.role is Role.EVALUATION and is_over_data(loop) for loop in loops):
            return True
        if _HOOKS.search(self._model.source.text):
            return False
        if fate is Fate.NONE:
            # Nobody takes the results: a warm-up, a measurement of time; of a module's method, a pass in the making.
            return bool(loops) and not any(
                (cls := call.function.cls) is not None and cls.is_module for call in forwards
            )
        return all(map(self._is_run_for_numbers, forwards))

    def _is_run_for_numbers(self, call: Call) -> bool:
        """Whether a forward pass whose result becomes numbers runs again and again, and nothing else comes of it."""
        cls, trained_beside = call.function.cls, self._is_trained_beside(call)
        if cls is not None and cls.is_module and not (trained_beside or self._is_entered(call.function)):
            return False
        if call.function.is_module and not _LEARNED.search(self._model.source.text):
            return False  # a script that shows what comes out of layers that it has just made
        if not self._keeps_nothing(call) and self._state_is_read(call):
            return False
        again = self._runs_again(call) or any(map(is_over_data, call.loops())) or self._repeats_abroad(call.function)
        return again or trained_beside

    def _runs_again(self, call: Call) -> bool:
        """Whether a forward pass is repeated; one after the other of the layers of a network is one pass."""
        if not call.loops() or not all(_picks_module(loop, call) for loop in call.loops()):
            return repeats(call)
        return any(map(repeats, call.function.callers))

    def _repeats_abroad(self, function: Function) -> bool:
        return any(repeats(call) for _, call in calls_in_other_files(self._model, function))

    def _is_trained_beside(self, call: Call) -> bool:
        """Whether another method trains the network that a method runs, as that of an agent which acts and learns."""
        network, cls = root(self._model, call.node.func), call.function.cls
        if cls is None or network is None or network.cls is None:
            return False
        trainers = [method for method in cls.methods.values() if self._model.effects(method).optimizer_steps]
        passes = (other for method in trainers for other in method.calls if other.is_forward)
        trained = call.function not in trainers and any(root(self._model, o.node.func) is network for o in passes)
        return trained and is_called_only_with_gradients(self._model, call.function)

    def _state_is_read(self, call: Call) -> bool:
        """Whether the file asks the called module for something that may be a part of the graph, as `net.kl_loss`."""
        network = text(call.node.func).removesuffix(".forward")
        return network in self._model.once(read_for_state)

    def _may_train(self, where: Function | Loop) -> bool:
        """Whether a backward pass runs in a function or loop, or may run in code that it calls."""
        effects = self._model.effects(where)
        if any(map(effects.has, ("backward", "gradients", "optimizer_steps"))):
            return True
        if any(self._hands_over_optimizer(call) for call in effects.opaque):
            return True
        return any(is_training_call(call) or self._may_adapt(call) for call in reached(where))

    def _may_adapt(self, call: Call) -> bool:
        """Whether a pass of an object out of sight may train a part of it first, as some class of the project does."""
        return any(takes_gradients(*method) for method in methods_named(self._model, call, _GRADIENTS_TAKEN))

    def _hands_over_optimizer(self, call: Call) -> bool:
        return any(self._model.value(arg.value).is_(Kind.OPTIMIZER, Kind.SCALER) for arg in call.node.args)

    # -- a loop in a function that also trains, or in a script

    def _blocks(self, function: Function, forwards: Sequence[Call]) -> Iterator[Evaluation]:
        found: dict[cst.CSTNode, list[Call]] = {}
        for call in forwards:
            region = self._widest(call)
            if region is not None:
                found.setdefault(region, []).append(call)
            else:
                phase = training_phase(self._model, call)
                if phase is not None:
                    yield Evaluation(call, Extent.PHASE, phase[0], False, phase=phase[1])
                    return
                if self._helps_a_step(call) or self._is_only_looked_at(call) or self._was_to_have_none(call):
                    yield self._single(call)
        for region, calls in found.items():
            if self._is_evaluating_block(region, calls):
                fate = self._tracer.of_expression(*(call.node for call in calls))
                certain = self._modes.evaluates(calls[0]) and Fate.ESCAPES not in fate
                yield Evaluation(calls[0], Extent.BLOCK, region, certain, tuple(calls[1:]), bare=self._bare(function))
            else:
                yield from (self._single(call) for call in calls if self._was_to_have_none(call))

    def _was_to_have_none(self, call: Call) -> bool:
        """Whether a pass is of volatile tensors, and its function sends nothing of it backward, as nothing could be."""
        if not is_volatile_pass(self._model, call):
            return False
        whole = Tracer(self._model, graphs_only=False)
        goes_back = any(other.is_backward for other in call.function.calls)
        return not (goes_back and Fate.BACKWARD in whole.of_expression(call.node))

    def _widest(self, call: Call) -> cst.CSTNode | None:
        """The outermost loop around a forward pass in which nothing trains, as a statement."""
        region, inside = None, None
        for loop in call.loops():
            opaque = {*self._model.effects(loop).opaque}
            if self._may_train(loop) or (inside is not None and not opaque <= inside):
                break
            inside = opaque
            region = self._model.statement(loop.node) if loop.is_comprehension else loop.node
        return region

    def _is_evaluating_block(self, region: cst.CSTNode, calls: Sequence[Call]) -> bool:
        if self._speaks_of_gradients(region):
            return False
        fate = self._tracer.of_expression(*(call.node for call in calls))
        if Fate.BACKWARD in fate:
            return False
        loops = [loop for call in calls for loop in call.loops() if loop.node in (region, *walk(region))]
        in_eval = self._modes.evaluates(calls[0])
        held_out = any(is_held_out(loop) and not _picks_module(loop, calls[0]) for loop in loops)
        only_evaluates = in_eval and not self._may_train(calls[0].function)
        if Fate.ESCAPES in fate and (self._calls_back(calls[0].function) or (not held_out and not only_evaluates)):
            return False
        return held_out or self._is_evaluation(calls, fate, in_eval, False, loops)

    # -- evidence

    def _bare(self, function: Function) -> cst.CSTNode | None:
        for call in function.calls:
            dropped = isinstance(self._model.parent(call.node), cst.Expr)
            if dropped and call.callee in ("torch.no_grad", "torch.inference_mode"):
                return call.node
        return None

    # -- a single forward pass in the midst of training

    def _helps_a_step(self, call: Call) -> bool:
        """Whether a teacher runs in a training step that takes no gradients but those of its loss."""
        step = next((loop for loop in call.loops() if self._model.effects(loop).optimizer_steps), None)
        if step is None or not is_teacher(self._model, call) or self._speaks_of_gradients(step.node):
            return False
        others = {*step.calls, *self._model.effects(step).forwards} - {call}
        return any(self._learns_beside(call, other) for other in others)

    def _learns_beside(self, teacher: Call, other: Call) -> bool:
        """Whether a step makes a graph of which nothing comes from a teacher: without that, its loss had none."""
        if not (other.is_forward or carries(self._model.value(other.node))) or is_teacher(self._model, other):
            return False
        if exclude(conditions(self._model, teacher.node), conditions(self._model, other.node)):
            return False
        name = self._model.binding(teacher.node.func)
        return name is None or name not in upstream(self._model, other.node, teacher.loop)

    def _single(self, call: Call) -> Evaluation:
        """The statement of a forward pass, if nothing else in it has a graph to record."""
        statement = self._model.statement(call.node)
        small = self._model.small_statement(call.node)
        value = small.value if isinstance(small, (cst.Assign, cst.Expr, cst.AnnAssign, cst.AugAssign)) else None
        fate = self._tracer.of_expression(value) if value is not None else Fate.ESCAPES
        alone = fate in (Fate.CONSUMED, Fate.NONE) or _is_built_on(value, call.node)
        extent = Extent.BLOCK if alone else Extent.PART
        return Evaluation(call, extent, statement, fate is Fate.CONSUMED and self._modes.evaluates(call))

    def _is_only_looked_at(self, call: Call) -> bool:
        """Whether the result is compared, printed or detached, each time, and nothing else comes of the call."""
        if self._tracer.of_expression(call.node) != Fate.CONSUMED or _HOOKS.search(self._model.source.text):
            return False
        if switches_parameters_off(self._model, call) or _GRADIENT_WORDS.search(f"{text(call.node.func)}("):
            return False
        if self._state_is_read(call) and any(self._model.effects(loop).backward for loop in call.loops()):
            return False  # `self.forward(x)`, and then `self.loss.backward()`
        if not repeats(call) and not self._repeats_abroad(call.function):
            return False
        in_forward = any(caller.function.name == "forward" for caller in call.function.callers)
        return self._modes.evaluates(call) or (not in_forward and self._keeps_nothing(call))

    def _keeps_nothing(self, call: Call) -> bool:
        """Whether the called module is in sight, and writes nothing to its attributes once it is made."""
        ref = self._model.value(module_of(call)).ref or ""
        if ref.startswith(("torch.nn.", "torchvision.models.")):
            return True
        behind = class_of_module(self._model, call)
        if behind is None:
            return False
        bindings = (binding for cls in behind[1].lineage() for binding in cls.attributes.values())
        return all(write.function.name == "__init__" for binding in bindings for write in binding.writes)


def _comes_from_outside(call: Call) -> bool:
    """Whether a call of a method of a module is none of another module, which may be a part of the same pass."""
    return call.function.cls is None or not call.function.cls.is_module


def _decides(model: Model, function: Function) -> bool:
    """Whether some of the models in it run without gradients, or it takes gradients on the way."""
    switches = any(inner.is_forward and model.grad_enabled(inner.node) is False for inner in function.calls)
    return switches or takes_gradients(model, function)


def _picks_module(loop: Loop, call: Call) -> bool:
    """`self._modules[name](x)`: a loop over the layers of a network, whatever they are called."""
    names = {node.value for node in walk(call.node.func) if isinstance(node, cst.Name)}
    return loop.target is not None and any(
        node.value in names for node in walk(loop.target) if isinstance(node, cst.Name)
    )


def _is_built_on(value: cst.CSTNode | None, inner: cst.Call) -> bool:
    """`net(x)[0].softmax(1)` is built on `net(x)` and on nothing else but constants."""
    while value is not inner:
        match value:
            case cst.Call(func=cst.Attribute(value=receiver), args=args) if not any(map(_is_computed, args)):
                value = receiver
            case cst.Subscript(value=receiver) | cst.Attribute(value=receiver):
                value = receiver
            case _:
                return False
    return True


def _is_computed(arg: cst.Arg) -> bool:
    return not isinstance(arg.value, (cst.BaseNumber, cst.BaseString, cst.UnaryOperation))
