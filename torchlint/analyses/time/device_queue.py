"""What is queued on the device and not waited for yet, as the host runs through statements one after the other.

A wait on any way through the code counts as a wait, and so does code out of sight that is given a tensor or a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.time.array_results import may_hand_back_arrays
from torchlint.analyses.time.waiting_parts import waits_for_part
from torchlint.analyses.xfer.waiting import waits_for_copy
from torchlint.semantics import vocabulary as words
from torchlint.semantics.entities import Call, Function, Loop, Role
from torchlint.semantics.transfer import element_of
from torchlint.semantics.tree import children, last_name
from torchlint.semantics.values import Kind, Place, Value

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_DEVICE_WORDS = re.compile(r"(?i)cuda|gpu|\bmps\b|\bxpu\b")
_DEFAULT_PLACE = re.compile(r"set_default_(device|tensor_type)|with torch\.device\(")
_SYNC_NAME = re.compile(r"(?i)(^|_)sync(hroni[sz]e)?($|_)|^synchroni[sz]e|^barrier$|^wait_for_everyone$")
_NO_SYNC_NAME = re.compile(r"(?i)^no_sync$|batch_?norm|async")
_WAITING_METHODS = ("tobytes", "save")  # of arrays and images
_WAITING_PASSES = ("generate", "predict", "sample")  # they look at each result, or hand it over as an array
_LINALG_WITHOUT_WAIT = re.compile(r"torch\.linalg\.(\w*norm|cross|vecdot|multi_dot|matmul|diagonal|qr|\w+_ex)$")
# Beside those that the table knows to wait: they do in some releases of torch, or for some arguments.
_WAITING_FUNCTIONS = frozenset(
    """
    torch.save torch.symeig torch.eig torch.solve torch.lstsq torch.det torch.logdet torch.slogdet torch.matrix_rank
    torch.tensor torch.as_tensor
    """.split()
)
_TEXT_FUNCTIONS = frozenset(f"builtins.{name}" for name in ("print", "str", "repr", "format", "float", "int", "bool"))
# They look at a tensor or give another view of it: nothing is queued.
_IDLE_METHODS = frozenset(
    """
    view view_as reshape reshape_as squeeze unsqueeze permute transpose t expand expand_as flatten unflatten detach
    requires_grad_ size dim numel nelement element_size stride is_contiguous data_ptr chunk split unbind narrow select
    movedim register_hook retain_grad pin_memory share_memory_ squeeze_ unsqueeze_ get_device diagonal unfold
    """.split()
)
_HEAVY = re.compile(
    r"(mat|bm|m)mul$|\bmm$|bmm$|\bmv$|einsum$|conv\w*$|attention$|fft|linalg|\blinear$|interpolate$|tensordot$|kron$|rsample$"
)
_QUIET_KINDS = (Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.DEVICE, Kind.DTYPE, Kind.ARRAY, Kind.FUNCTION, Kind.CLASS)
_KNOWN_OBJECTS = (Kind.OPTIMIZER, Kind.SCHEDULER, Kind.LIST, Kind.DICT, Kind.SET, Kind.STRING, Kind.ARRAY, Kind.NUMBER)
BLOCKS = (cst.IndentedBlock, cst.Module, cst.SimpleStatementLine, cst.SimpleStatementSuite)
_DEFINITIONS = (cst.FunctionDef, cst.ClassDef, cst.Import, cst.ImportFrom, cst.Global, cst.Nonlocal)


@dataclass(frozen=True, slots=True)
class Work:
    """Something that the device computes after the host has gone on."""

    node: cst.CSTNode
    is_heavy: bool  # a pass through a model, or a product of matrices


@dataclass(frozen=True, slots=True)
class State:
    """What the device has to do when a line is reached, as far as the file shows it."""

    queued: Work | None = None  # the weightiest work that was not waited for
    waits: int = 0

    def with_work(self, work: Work) -> State:
        if self.queued is not None and self.queued.is_heavy and not work.is_heavy:
            return self
        return replace(self, queued=work)

    def waited(self) -> State:
        return State(None, self.waits + 1)


class _ArrivedError(Exception):
    def __init__(self, state: State) -> None:
        self.state = state


class DeviceQueue:
    """Walks the statements of a file as the host runs them: what it gives the device to do, and where it waits."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._summaries: dict[Function, State] = {}
        self._stop: cst.CSTNode | None = None
        self._trusts = False  # what a network calls out of sight are its layers
        moved = any(call.value.place is Place.ACCELERATOR for call in model.calls)
        text = model.source.text
        self.runs_ahead = (
            model.uses_accelerator
            and (moved or _DEVICE_WORDS.search(text) is not None)
            and "CUDA_LAUNCH_BLOCKING" not in text
        )

    def between(self, start: cst.CSTNode, end: cst.CSTNode) -> State | None:
        """What is queued when a node is reached, from another node on; None where no straight way leads there."""
        path, way = self.way_up(start), self.way_up(end)
        above_end = {node: index for index, node in enumerate(way)}
        state = State()
        for child, block in pairwise(path):
            if not isinstance(block, BLOCKS):
                continue
            body: list[cst.CSTNode] = [*block.body]
            after = body[body.index(child) + 1 :]
            if block not in above_end:
                state = self.run(after, state)
                continue
            last = way[above_end[block] - 1]
            if last not in after:
                return None
            return self.until(last, end, self.run(after[: after.index(last)], state))
        return None

    def before(self, node: cst.CSTNode) -> State:
        """What the function has queued when it reaches a node."""
        body = self._model.function(node).node.body
        self._stop = node
        try:
            return self.run([body] if isinstance(body, cst.CSTNode) else body, State())
        except _ArrivedError as arrived:
            return arrived.state
        finally:
            self._stop = None

    def way_up(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        return [node, *self._model.ancestors(node)]

    def of_function(self, function: Function) -> State:
        """What a call of a function leaves behind; of a function that calls itself, nothing."""
        if function not in self._summaries:
            self._summaries[function] = State(None, 1)
            stop, self._stop = self._stop, None
            trusts, self._trusts = self._trusts, function.cls is not None and function.cls.is_module
            body = function.node.body
            self._summaries[function] = self.run([body] if isinstance(body, cst.CSTNode) else body, State())
            self._stop, self._trusts = stop, trusts
        return self._summaries[function]

    def until(self, statement: cst.CSTNode, end: cst.CSTNode, state: State) -> State | None:
        """What is queued when a statement reaches a node in it."""
        self._stop = end
        try:
            self.run([statement], state)
        except _ArrivedError as arrived:
            return arrived.state
        finally:
            self._stop = None
        return None

    # -- statements

    def run(self, nodes: Iterable[cst.CSTNode], state: State) -> State:
        for node in nodes:
            state = self._statement(node, state)
        return state

    def _statement(self, node: cst.CSTNode, state: State) -> State:
        match node:
            case cst.IndentedBlock() | cst.SimpleStatementLine() | cst.SimpleStatementSuite():
                return self.run(node.body, state)
            case cst.Else() | cst.Finally():
                return self._statement(node.body, state)
            case cst.If():
                state = self._decided(node.test, self._expression(node.test, state))
                return self._joined([node.body, *([node.orelse] if node.orelse is not None else [])], state)
            case cst.For() | cst.While():
                return self._loop(node, state)
            case cst.With():
                state = self._expressions((item.item for item in node.items), state)
                state = self._statement(node.body, state)
                return state.waited() if any(_is_profiler(item.item) for item in node.items) else state
            case cst.Try():
                state = self._statement(node.body, state)
                rest = [part for part in (node.orelse, node.finalbody) if part is not None]
                return self.run(rest, state)
            case cst.Assign():
                state = self._expression(node.value, state)
                return self._expressions((target.target for target in node.targets), state)
            case cst.AugAssign():
                state = self._expression(node.target, self._expression(node.value, state))
                return self._computed(node, self._model.value(node.target), state)
            case cst.BaseExpression():  # the body of a lambda
                return self._expression(node, state)
            case _ if isinstance(node, _DEFINITIONS):
                return state
            case _:
                return self._expressions(children(node), state)

    def _joined(self, branches: list[cst.CSTNode], state: State) -> State:
        """After branches of which one runs, or none: what each leaves behind, unless one waits for everything."""
        ends = [self._statement(branch, state) for branch in branches]
        waits = max(end.waits for end in ends)
        if any(end.waits > state.waits and end.queued is None for end in ends):
            return State(None, waits)
        works = [end.queued for end in ends if end.queued is not None]
        return State(max(works, key=lambda work: work.is_heavy) if works else None, waits)

    def _loop(self, node: cst.For | cst.While, state: State) -> State:
        """A loop that waits is never far ahead of the device; so is one over batches, which waits to copy them."""
        model = self._model
        if isinstance(node, cst.For):
            state = self._expression(node.iter, state)
        if self._stop is not None and node in model.ancestors(self._stop):
            return self._statement(node.body, state)
        end = self._statement(node.body, State())
        loop = model.loop_of(node)
        if isinstance(node, cst.While):
            end = self._decided(node.test, self._expression(node.test, end))
        if end.waits or (end.queued is not None and (loop is None or not _counts(loop))):
            return State(None, state.waits + 1)
        return state.with_work(end.queued) if end.queued is not None else state

    def _decided(self, test: cst.BaseExpression, state: State) -> State:
        """`if tensor > 0:` needs the value, as `not tensor` does."""
        while isinstance(test, cst.BooleanOperation):
            test = test.right
        return state.waited() if self._is_queued_value(self._model.value(test)) else state

    # -- expressions

    def _expressions(self, nodes: Iterable[cst.CSTNode], state: State) -> State:
        for node in nodes:
            state = self._expression(node, state)
        return state

    def _expression(self, root: cst.CSTNode, state: State) -> State:
        for node in _evaluated(root):
            if node is self._stop:
                raise _ArrivedError(state)
            match node:
                case cst.Call():
                    state = self._called(self._model.call(node), state)
                case cst.BinaryOperation(left=left, operator=cst.Modulo()) if self._model.value(left).is_(Kind.STRING):
                    state = state.waited() if any(map(self._is_shown, _parts(node.right))) else state
                case cst.UnaryOperation(operator=cst.Not(), expression=asked) | cst.BooleanOperation(left=asked):
                    state = self._decided(asked, state)
                case cst.BinaryOperation() | cst.UnaryOperation() | cst.Comparison():
                    state = self._computed(node, self._model.value(node), state)
                case cst.FormattedStringExpression() if self._is_shown(node.expression):
                    state = state.waited()
                case cst.Subscript() if waits_for_part(self._model, node):
                    state = state.waited()
                case cst.IfExp():
                    state = self._decided(node.test, state)
                case cst.Yield() | cst.Await():
                    state = state.waited()
        return state

    def _computed(self, node: cst.CSTNode, value: Value, state: State) -> State:
        if value.kind is not Kind.TENSOR or value.place is not Place.ACCELERATOR:
            return state
        heavy = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply)
        return state.with_work(Work(node, heavy))

    def _is_shown(self, node: cst.BaseExpression) -> bool:
        """Whether a text that holds a value needs what the device computes for it."""
        value = self._model.value(node)
        return self._is_queued_value(value) or value.kind is Kind.UNKNOWN

    @staticmethod
    def _is_queued_value(value: Value) -> bool:
        return value.kind is Kind.TENSOR and value.place is not Place.HOST and not value.optional

    # -- calls

    def _called(self, call: Call, state: State) -> State:
        if self._waits(call):
            return state.waited()
        if call.is_forward or call.is_backward or call.callee == "torch.autograd.grad":
            return self._ran(call, state)
        if call.is_optimizer_step:
            stepped = state.waited() if call.receiver_value.kind is Kind.SCALER else state
            return stepped.with_work(Work(call.node, is_heavy=False))
        if call.target is not None:
            return state if call.target.is_generator else self._after(self.of_function(call.target), state)
        if handed_in := call.alternatives or self._decorated(call):
            return self._after_any([self.of_function(function) for function in handed_in], state)
        makes = call.targets_class is not None or words.makes_tensor(call.callee or "")
        if makes or call.is_zero_grad or call.method in _IDLE_METHODS:
            return state
        if self._is_torch(call):
            heavy = _HEAVY.search(call.callee or "") is not None
            on_device = any(value.place is Place.ACCELERATOR for value in self._tensors(call))
            return state.with_work(Work(call.node, heavy)) if on_device else state
        return state.waited() if not self._trusts and self._may_wait(call) else state

    def _ran(self, call: Call, state: State) -> State:
        """A pass through a model, forward or back: what its code in this file waits for, and the pass itself."""
        if call.target is not None and self.of_function(call.target).waits:
            return self._after(self.of_function(call.target), state)
        if self._waits_elsewhere(call):
            return state.waited()
        if call.is_forward and may_hand_back_arrays(self._model, call):
            return state
        if all(value.place is Place.HOST for value in self._places(call)) or self._is_left_on_host(call):
            return state
        return state.with_work(Work(call.node, is_heavy=True))

    def _waits_elsewhere(self, call: Call) -> bool:
        """Whether a function of another file goes over data or reads a tensor, one of a network whenever it is called:
        of what it calls, a network's own layers are in sight. Told by a text what to do, it may run any of them."""
        found = self._model.elsewhere(call)
        if found is None:
            return False
        home, function = found
        if function.cls is None or not function.cls.is_module:
            if any(each.loop is not None and each.is_forward and not _counts(each.loop) for each in function.calls):
                return True
            return any(each.receiver_value.is_(Kind.TENSOR, Kind.UNKNOWN) for each in _reads_behind(function))
        is_told = any(self._model.value(arg.value).is_(Kind.STRING) for arg in call.arguments)
        own = [each for each in function.calls if each.target is not None and each.target.cls is function.cls]
        runs = [each.target for each in own if each.target is not None and (is_told or not home.guards(each.node))]
        reads = (each for method in (function, *runs) for each in _reads(method))
        return any(each.receiver_value.kind is Kind.TENSOR and not home.guards(each.node) for each in reads)

    def _is_left_on_host(self, call: Call) -> bool:
        """A model that is made in sight, and that nobody moves or hands on, is where it was made."""
        model, binding = self._model, self._model.binding(call.node.func)
        if binding is None or binding.cls is not None or binding.methods & {"to", "cuda"}:
            return False
        on_device = (model.value(arg.value).place is Place.ACCELERATOR for arg in call.arguments)
        if any(on_device) or _DEFAULT_PLACE.search(model.source.text):
            return False
        keeps_it = all(isinstance(model.parent(read), (cst.Call, cst.Attribute)) for read in binding.reads)
        return keeps_it and all(self._makes_on_host(write.value) for write in binding.writes)

    def _makes_on_host(self, made: cst.BaseExpression | None) -> bool:
        """`Net(...).eval()`, with no device among the arguments but the host."""
        while isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute) and made.func.attr.value == "eval":
            made = made.func.value
        if not isinstance(made, cst.Call) or self._model.value(made.func).kind is not Kind.CLASS:
            return False
        given = [self._model.value(arg.value) for arg in made.args if arg.star == ""]
        return len(given) == len(made.args) and all(
            value.place is Place.HOST or value.is_(Kind.NUMBER, Kind.NONE) or _is_other_text(value) for value in given
        )

    def _places(self, call: Call) -> list[Value]:
        """What says where a pass runs."""
        tensors = [value for arg in call.arguments if (value := self._model.value(arg.value)).is_tensor]
        origin = self._model.value(call.node.func) if call.is_forward else call.receiver_value
        return tensors if tensors and call.is_forward and origin.place is not Place.ACCELERATOR else [origin]

    @staticmethod
    def _after(summary: State, state: State) -> State:
        if summary.waits:
            return State(summary.queued, state.waits + summary.waits)
        return state.with_work(summary.queued) if summary.queued is not None else state

    def _decorated(self, call: Call) -> list[Function]:
        """The functions of this file that a decorator is put on, where a call inside runs what it decorates."""
        binding = self._model.binding(call.node.func)
        if binding is None or not binding.is_parameter:
            return []
        names = {binding.scope_function.ref, binding.scope_function.qualname}
        return [function for function in self._model.functions if names.intersection(function.decorators)]

    def _after_any(self, summaries: list[State], state: State) -> State:
        """After one function of several, as `fn()` in a helper that times what it gets: the one that waits least."""
        behind = [self._after(summary, state) for summary in summaries]
        return min(behind, key=lambda end: (end.waits, end.queued is None, end.queued and not end.queued.is_heavy))

    def _waits(self, call: Call) -> bool:
        callee = call.callee or ""
        if is_wait(call):
            return True
        if call.target is None and call.is_forward and call.method in _WAITING_PASSES:
            return True
        method = call.method or ""
        if call.receiver is not None and (method in _WAITING_METHODS or words.waits(f"torch.Tensor.{method}")):
            return call.receiver_value.is_(Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN)
        formats = call.method == "format" and call.receiver_value.kind is Kind.STRING
        if formats or callee in _TEXT_FUNCTIONS or callee.startswith(("numpy.", "pickle.", "matplotlib.")):
            return any(self._is_shown(arg.value) for arg in call.arguments)
        if callee in _WAITING_FUNCTIONS or words.waits(callee):
            return True
        if callee.startswith("torch.linalg."):
            return _LINALG_WITHOUT_WAIT.match(callee) is None
        return waits_for_copy(call)

    @staticmethod
    def _is_torch(call: Call) -> bool:
        callee = call.callee or ""
        return callee.startswith("torch.Tensor.") or words.returns_tensor(callee)

    def _tensors(self, call: Call) -> Iterator[Value]:
        yield call.value
        yield call.receiver_value
        for arg in call.arguments:
            yield self._model.value(arg.value)

    def _may_wait(self, call: Call) -> bool:
        """Code out of sight that has something to wait for."""
        callee = call.callee or ""
        package = callee.partition(".")[0] if call.receiver_value.kind is not Kind.MODULE else ""
        if package in ("torch", "torchvision", *words.HARMLESS_PACKAGES):
            return callee.startswith(("wandb.", "logging.")) and any(v.is_tensor for v in self._tensors(call))
        if call.receiver_value.kind in _KNOWN_OBJECTS or _is_queued(call.method or ""):
            return False
        given = [self._model.value(arg.value) for arg in call.arguments]
        if not given:
            return call.receiver is None or call.receiver_value.is_(Kind.UNKNOWN, Kind.INSTANCE)
        return any(value.kind not in _QUIET_KINDS for value in given)


def _reads(function: Function) -> Iterator[Call]:
    return (each for each in function.calls if each.method in ("item", "tolist", "cpu"))


def _reads_behind(function: Function) -> Iterator[Call]:
    """Also those of the functions of its file that a function calls, or hands to what may call them."""
    entered = [function]
    for each in entered:  # it grows while the loop runs
        yield from _reads(each)
        for call in each.calls:
            met = [*call.passes, *(() if call.target is None else (call.target,))]
            entered += [inner for inner in met if inner not in entered]


def is_wait(call: Call) -> bool:
    """A call whose purpose is to wait for the device, by its name: `torch.cuda.synchronize()`, `time_sync()`."""
    name = last_name(call.node.func)
    return _SYNC_NAME.search(name) is not None and _NO_SYNC_NAME.search(name) is None


def follows_wait(statement: cst.CSTNode, model: Model) -> bool:
    """Whether the line before a statement, in the same block, waits for the device."""
    line = model.statement(statement)
    block = model.parent(line)
    if not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return False
    body: list[cst.CSTNode] = [*block.body]
    before = body[: body.index(line)][-1:]
    return any(is_wait(call) for node in before for call in model.calls_in(node))


def _is_queued(method: str) -> bool:
    """Whether a method of tensors, or of distributions, leaves its work to the device and goes on."""
    return method == "rsample" or (words.is_tensor_method(method) and not words.waits(f"torch.Tensor.{method}"))


def _is_other_text(value: Value) -> bool:
    """Text that names no device: `pretrained="imagenet"`."""
    return value.kind is Kind.STRING and value.constant is not None and not _DEVICE_WORDS.search(str(value.constant))


def _parts(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The elements of a tuple that is written out, or else the expression."""
    return [element.value for element in node.elements] if isinstance(node, cst.Tuple) else [node]


def _is_profiler(item: cst.BaseExpression) -> bool:
    name = last_name(item.func) if isinstance(item, cst.Call) else last_name(item)
    return re.search(r"(?i)profil|timer|sync|record", name) is not None


def _counts(loop: Loop) -> bool:
    """A loop over numbers, modules, lists or rows: not over batches that something out of sight brings."""
    if loop.role in (Role.MODULES, Role.ELEMENTS) or loop.iterates.is_(Kind.LIST, Kind.TUPLE):
        return True
    element = element_of(loop.iterates)
    if loop.iterates.ref == "builtins.range" or element.is_(Kind.NUMBER, Kind.MODULE, Kind.TENSOR):
        return True
    parts = element.items or ()
    return bool(parts) and all(part.is_(Kind.NUMBER, Kind.MODULE, Kind.TENSOR, Kind.STRING) for part in parts)


def _evaluated(root: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes of an expression in the order in which they are evaluated, operands first."""
    stack: list[tuple[cst.CSTNode, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done or isinstance(node, cst.Lambda):
            yield node
            continue
        stack.append((node, True))
        stack.extend((child, False) for child in reversed(children(node)))
