"""Calls that stop or empty the whole device, and whether a program makes them in every step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.moves import moves_to_accelerator
from torchlint.analyses.loops.step_cycle import changes
from torchlint.semantics.dataflow import parameter_of_function, text
from torchlint.semantics.entities import Binding, Call, Function, Guard, Loop, Role, Write
from torchlint.semantics.guards import conjuncts
from torchlint.semantics.tree import last_name, walk
from torchlint.semantics.values import Kind, Place
from torchlint.semantics.vocabulary import is_loss_module, is_parameter_free

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_MODULES = ("torch.cuda", "torch.cuda.memory", "torch.mps", "torch.xpu", "torch.npu", "torch.accelerator")
_EMPTYING = tuple(f"{module}.empty_cache" for module in _MODULES)
_SYNCHRONIZING = tuple(f"{module}.synchronize" for module in _MODULES)
CLOCKS = frozenset(
    """
    time.time time.perf_counter time.monotonic time.process_time time.time_ns time.perf_counter_ns time.monotonic_ns
    time.process_time_ns timeit.default_timer datetime.datetime.now datetime.datetime.utcnow
    """.split()
)
_STEP_METHODS = frozenset(
    """
    training_step validation_step test_step predict_step on_train_batch_start on_train_batch_end
    on_validation_batch_start on_validation_batch_end on_test_batch_end on_before_zero_grad on_before_optimizer_step
    on_step_begin on_step_end on_substep_end optimizer_step
    """.split()
)
_DEVICE_TEST = re.compile(r"(?i)cuda|gpu|device|\bmps\b|\bxpu\b|\bnpu\b")
_MEASURE = re.compile(r"(?i)memory|alloc|reserved|usage|sync|empty|cache|clear|time|bench|profil|debug|%")
_SHARED_DEVICE = re.compile(r"^\s*(?:import|from)\s+(?:tensorrt|vllm|cupy|pycuda|jax|onnxruntime)\b", re.M)
_MEMORY = re.compile(
    r"torch\.\w+\.(memory\.)?(memory_\w+|max_memory_\w+|reset_peak_\w+|reset_max_\w+|mem_get_info|current_allocated_memory"
    r"|driver_allocated_memory)$|pynvml\.|nvidia_smi\.|tracemalloc\."
)
_OTHER_QUEUES = re.compile(
    r"cuda\.(Stream|stream|Event|graph)\b|torch\.(Stream|Event)\b|CUDAGraph|make_graphed_callables|elapsed_time|ipc_collect"
    r"|record_stream|CUDA_LAUNCH_BLOCKING|share_memory|import .*\b(Stream|Event)\b"
    r"|\bctypes\b|data_ptr|dlpack|__cuda_array_interface__"
)
_WAITED_FOR = re.compile(
    r"(?i)(^|_)tim(e|er|ers|ing)$|^tic$|^toc$|profil|bench|latenc|elapsed|barrier|nvtx|sleep|kill|^prof$|^put(_nowait)?$"
)
# Of a class that is not known, they show that it is one of modules.
_OF_MODULES = frozenset({"eval", "parameters", "named_parameters", "state_dict", "load_state_dict"})
_COPYING = frozenset({"to", "copy_", "cpu", "cuda"})
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Chore:
    """A call that concerns the whole device, made in every step.

    `site` is the call to take out: the call itself, or where the step calls a helper that does nothing else.
    `loop` is None in a method that a framework or a forward pass runs once per batch.
    """

    call: Call
    site: Call
    loop: Loop | None
    function: Function  # in which the step is
    read: cst.BaseExpression | None = None  # right behind it, and waits for the device by itself

    @property
    def rhythm(self) -> str:
        if self.loop is None or self.loop.role is Role.EVALUATION:
            return "for every batch"
        return "in every training step" if self.loop.role is Role.STEPS else "in every iteration"


def emptied_caches(model: Model) -> Iterator[Chore]:
    """`empty_cache()` in every step, where nothing shows a reason for it."""
    if _SHARED_DEVICE.search(model.source.text):
        return
    for chore in _chores(model, _EMPTYING, _is_pass_or_inference):
        calls = _reached(chore.loop.calls if chore.loop is not None else chore.function.calls)
        if not any(_MEMORY.match(call.callee or "") or _offloads(call) for call in calls):
            yield chore


def needless_waits(model: Model) -> Iterator[Chore]:
    """`synchronize()` in every step, with no clock, event, stream, copy or barrier that it could be there for; or with
    a readback right behind it, which waits anyway."""
    if _SHARED_DEVICE.search(model.source.text) or _OTHER_QUEUES.search(model.source.text):
        return
    for chore in _chores(model, _SYNCHRONIZING, _is_pass):
        function = chore.function
        read = _read_behind(model, chore.site)
        if read is not None:
            yield replace(chore, read=read)
            continue
        timed = any(call.callee in CLOCKS for call in function.calls)
        is_training = chore.loop is not None and chore.loop.role is Role.STEPS
        if (timed and not is_training) or _WAITED_FOR.search(function.name):
            continue
        calls = _reached(chore.loop.calls if chore.loop is not None else function.calls)
        if not any(_is_waited_for(call) for call in calls) and not _comes_before_clock(model, chore.loop):
            yield chore


def _comes_before_clock(model: Model, loop: Loop | None) -> bool:
    """Whether a clock is started right behind the loop: it warms up, and the device is to be idle then."""
    block = model.parent(loop.node) if loop is not None else None
    if loop is None or not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return False
    body: list[cst.CSTNode] = [*block.body]
    match body[body.index(loop.node) + 1 :][:1]:
        case [cst.SimpleStatementLine(body=[cst.Assign(value=cst.Call() as call)])]:
            return model.call(call).callee in CLOCKS
    return False


def _read_behind(model: Model, site: Call) -> cst.BaseExpression | None:
    """The readback up to which a block does nothing that a wait for the device may serve."""
    line = model.statement(site.node)
    block = model.parent(line)
    lines: list[cst.CSTNode] = [*block.body] if isinstance(block, cst.IndentedBlock) else [line]
    for behind in lines[lines.index(line) + 1 :]:
        calls = model.calls_in(behind) if isinstance(behind, cst.SimpleStatementLine) else ()
        if not calls or any(map(_is_waited_for, _reached([*calls]))):
            return None
        read = next((call.node for call in calls if _reads_device(model, call, behind)), None)
        if read is not None:
            return read
    return None


def _reads_device(model: Model, call: Call, line: cst.CSTNode) -> bool:
    """`loss.item()`, whenever the line runs."""
    tensor = call.receiver_value
    is_read = call.method == "item" and tensor.kind is Kind.TENSOR and tensor.place is Place.ACCELERATOR
    return is_read and len(model.guards(call.node)) == len(model.guards(line))


def reads_clock(model: Model) -> bool:
    """Whether the file reads a clock anywhere."""
    return any(call.callee in CLOCKS for call in model.calls)


def _is_waited_for(call: Call) -> bool:
    """A call that a wait for the device may serve: it looks at a clock, at the memory in use, at another process, or at
    a copy on its way."""
    callee = call.callee or ""
    if callee in CLOCKS or callee.startswith(("torch.profiler", "torch.autograd.profiler")) or _MEMORY.match(callee):
        return True
    names = [callee.rpartition(".")[2], call.method or "", last_name(call.receiver)]
    if any(_WAITED_FOR.search(name) for name in names):
        return True
    return _may_be_on_its_way(call)


def _may_be_on_its_way(call: Call) -> bool:
    """A copy that does not wait for its end, to the host perhaps."""
    flags = [call.argument("non_blocking", position) for position in (1, 2)] if call.method in _COPYING else []
    if all(flag.absent or flag.value.constant is False or flag.value.kind is Kind.DTYPE for flag in flags):
        return False
    where = call.receiver_value if call.method == "copy_" else call.value
    return where.place is not Place.ACCELERATOR and where.kind is not Kind.UNKNOWN


# -- in every step

_Counts = Callable[["Model", Loop], bool]


def _chores(model: Model, names: tuple[str, ...], counts: _Counts) -> Iterator[Chore]:
    """`counts`: whether the iterations of a loop are steps."""
    seen: set[Call] = set()
    for call in model.calls_to(*names):
        chore = _in_every_step(model, call, call, counts, 0)
        if chore is not None and chore.site not in seen:
            seen.add(chore.site)
            yield chore


def _in_every_step(model: Model, call: Call, site: Call, counts: _Counts, depth: int) -> Chore | None:
    """The step that makes a call; `site` is the call that stands there for it, through helpers."""
    loops = [loop for loop in site.loops() if not loop.is_comprehension]
    for loop in loops:
        if counts(model, loop):
            steady = _is_unconditional(model, site, loop) and not _is_sweep(model, loop)
            return Chore(call, _removable(model, call, site), loop, site.function) if steady else None
        if loop.role is Role.EPOCHS:
            return None
    function = site.function
    if function.is_module or not _is_unconditional(model, site, None):
        return None
    if _runs_per_batch(function) or _is_one_step(function):
        return Chore(call, _removable(model, call, site), None, function)
    if depth < _DEPTH:
        for caller in function.callers:
            found = _in_every_step(model, call, caller, counts, depth + 1)
            if found is not None:
                return found
    return None


def _is_pass(model: Model, loop: Loop) -> bool:
    return loop.role in (Role.STEPS, Role.EVALUATION)


def _is_pass_or_inference(model: Model, loop: Loop) -> bool:
    """Also a loop that runs the same model without gradients in each iteration: sampling, decoding, a warm-up; and one
    that copies a part of its data to the device each time, and computes with it there."""
    if _is_pass(model, loop):
        return True
    if not isinstance(loop.node, cst.For) or model.effects(loop).backward:
        return False
    if _computes_by_parts(model, loop):
        return True
    passes = [call for call in loop.calls if call.is_forward and call.loop is loop and call.grad_enabled is False]
    return any(
        not changes([call.node.func], loop, model) and not model.guards(call.node, inside=loop) for call in passes
    )


def _computes_by_parts(model: Model, loop: Loop) -> bool:
    own = [call for call in loop.calls if call.loop is loop and not model.guards(call.node, inside=loop)]
    copied = [call for call in own if call.method in ("to", "cuda") and moves_to_accelerator(call, model)]
    if not copied or not all(call.receiver_value.is_(Kind.TENSOR, Kind.BATCH) for call in copied):
        return False  # modules, or what may be some, take turns on the device
    return any(_computes_there(call) for call in own if call not in copied)


def _computes_there(call: Call) -> bool:
    is_there = call.value.kind is Kind.TENSOR and call.value.place is Place.ACCELERATOR
    return is_there and (call.callee or "").startswith("torch.")


def _removable(model: Model, call: Call, site: Call) -> Call:
    """The call itself, where it is part of the step in a function of its own; else the call of the helper."""
    if site is call:
        return call
    does = model.effects(call.function)
    return call if does.backward or does.forwards or does.optimizer_steps else site


def _runs_per_batch(function: Function) -> bool:
    cls = function.cls
    if cls is None:
        return False
    is_callback = any("Callback" in (base or "") or "Trainer" in (base or "") for base in cls.bases)
    if function.name in _STEP_METHODS:
        return cls.is_lightning or is_callback
    return cls.is_module and function.name == "forward"


def _is_one_step(function: Function) -> bool:
    """A function that runs backward and steps once, and that other files call."""
    once = [call for call in function.calls if call.loop is None]
    trains = any(call.is_backward for call in once) and any(call.is_optimizer_step for call in once)
    return trains and not function.callers


def _is_unconditional(model: Model, call: Call, loop: Loop | None) -> bool:
    """Whether a call is made in every iteration, on a machine that has the device at all."""
    made = loop.calls if loop is not None else call.function.calls
    guards = model.guards(call.node, inside=loop)
    return all(_is_about_device(guard) or _holds_step(model, guard, made) for guard in guards)


def _holds_step(model: Model, guard: Guard, made: Sequence[Call]) -> bool:
    """A branch that trains is a way to make a step, as with and without mixed precision; not where another of the calls
    that an iteration makes has made one, which the branch repeats after an error, perhaps."""
    if not isinstance(guard.node, cst.If) or guard.kind == "handler":
        return False
    if any(model.effects(call).backward and guard.node not in model.ancestors(call.node) for call in made):
        return False
    branch = guard.node.body if guard.branch == "body" else guard.node.orelse
    if branch is None:
        return False
    effects = model.effects(branch)
    return bool(effects.backward) or (guard.kind != "log" and bool(effects.optimizer_steps))


def _is_about_device(guard: Guard) -> bool:
    if guard.kind in ("log", "handler"):
        return False
    if isinstance(guard.node, cst.If) and guard.branch == "else" and guard.node.orelse is None:
        return True  # `if ...: continue` above
    if guard.kind in ("phase", "rank"):
        return guard.test is None or not any(map(_measures, conjuncts(guard.test)))
    test = text(guard.test) if guard.test is not None else ""
    return _DEVICE_TEST.search(test) is not None and _MEASURE.search(test) is None


def _measures(test: cst.BaseExpression) -> bool:
    """`z.shape[-2] > 2000`, which is for large inputs."""
    return isinstance(test, cst.Comparison) and isinstance(
        test.comparisons[0].operator, (cst.GreaterThan, cst.GreaterThanEqual, cst.LessThan, cst.LessThanEqual)
    )


def _is_sweep(model: Model, loop: Loop) -> bool:
    """A loop over models, folds or trials: each iteration has a model, or an optimizer, of its own."""
    for call in loop.calls:
        value = call.value
        made = call.node in value.origins and value.is_(Kind.MODULE, Kind.OPTIMIZER)
        if made and not _is_function_like(value.ref or ""):
            return True
        if call.is_forward and _changes(model, call.receiver if call.method == "forward" else call.node.func, loop):
            return True
        if call.method in _OF_MODULES and call.receiver is not None and _is_made_in(loop, call.receiver, model):
            return True
    return _drops_network(model, loop)


def _drops_network(model: Model, loop: Loop) -> bool:
    """Whether an iteration deletes what it has made and let a function run as a network: `del net`."""
    deleted = (node for line in loop.body for node in walk(line) if isinstance(node, cst.Del))
    dropped = {model.binding(name) for node in deleted for name in walk(node.target) if isinstance(name, cst.Name)}
    handed = (
        (call.target, parameter_of_function(call, call.target, arg))
        for call in loop.calls
        for arg in call.arguments
        if call.target is not None and model.binding(arg.value) in dropped - {None}
    )
    return any(
        parameter is not None and any(parameter in _run_by(model, inner) for inner in function.calls)
        for function, parameter in handed
    )


def _run_by(model: Model, call: Call) -> tuple[Binding | None, ...]:
    """`net` of `net(x)` and of `net.forward_features(x)`."""
    is_method = call.receiver is not None and (call.method or "").startswith("forward")
    return model.binding(call.node.func), model.binding(call.receiver) if is_method and call.receiver else None


def _is_made_in(loop: Loop, module: cst.BaseExpression, model: Model) -> bool:
    """Whether a variable gets what a call makes, in each iteration of a loop."""
    binding = model.binding(module)
    return binding is not None and any(
        isinstance(write.value, cst.Call) and loop.holds(write.loop) for write in binding.writes
    )


def _is_function_like(ref: str) -> bool:
    return is_loss_module(ref) or is_parameter_free(ref)


def _changes(model: Model, module: cst.BaseExpression | None, loop: Loop) -> bool:
    binding = model.binding(module) if module is not None else None
    return binding is not None and any(loop.holds(write.loop) for write in _own_writes(binding))


def _own_writes(binding: Binding) -> list[Write]:
    return [write for write in binding.writes if write.kind != "parameter"]


def _offloads(call: Call) -> bool:
    """A model that goes back to the host, so that the memory it leaves is given back on purpose."""
    if call.receiver_value.kind is not Kind.MODULE:
        return False
    return call.method == "cpu" or (call.method == "to" and call.value.place is Place.HOST)


def _reached(calls: list[Call]) -> list[Call]:
    """The calls and those of the functions of this file that they reach."""
    found: dict[Call, None] = {}
    work = list(calls)
    while work:
        call = work.pop()
        if call not in found:
            found[call] = None
            for function in [call.target, *call.passes]:
                work.extend(function.calls if function is not None else ())
    return list(found)
