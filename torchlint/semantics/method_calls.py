"""Methods of tensors, modules, containers and of what nothing is known of."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics import frameworks, numpy_results, tensor_methods, torch_api, transfer
from torchlint.semantics import vocabulary as words
from torchlint.semantics.entities import Call
from torchlint.semantics.hints import LOSS_NAMES
from torchlint.semantics.library_calls import LibraryCalls
from torchlint.semantics.string_methods import string_method
from torchlint.semantics.transfer import Arguments, element_of
from torchlint.semantics.tree import last_name
from torchlint.semantics.values import NONE, NUMBER, STRING, UNKNOWN, Grad, Kind, Place, Value, join
from torchlint.word_set import word_set

ADDING_METHODS = frozenset({"append", "add", "appendleft", "insert"})
_TENSOR_ONLY_METHODS = frozenset(
    """
    detach view permute unsqueeze contiguous softmax log_softmax sigmoid float long half double expand
    masked_fill gather scatter_ zero_ requires_grad_ bmm mm unbind chunk argmax topk sub_ add_ mul_ div_
    clamp clamp_ relu log exp pow norm new_zeros new_ones index_select flatten
    """.split()
)
_SWITCHING_METHODS = ("requires_grad_", "detach_")
# Of all parameters of a module of Lightning.
_LIGHTNING_SWITCHES = ("freeze", "unfreeze")
_PARTS_OF_MODULES = word_set(
    "parameters named_parameters trainable_parameters buffers named_buffers children named_children modules"
    " named_modules"
)
_FED = (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN)
# Of what is imported or handed in, nothing is known but the name.
_VAGUE = (Kind.UNKNOWN, Kind.FUNCTION, Kind.NAMESPACE)

_OF_STRINGS_ALONE = word_set("strip lstrip rstrip lower upper casefold capitalize title startswith endswith splitlines")


class MethodCalls(LibraryCalls):
    """Adds methods of objects whose classes are not of the project."""

    def _method(self, call: Call, receiver: Value, method: str, given: Arguments) -> Value:
        match receiver.kind:
            case Kind.TENSOR | Kind.BATCH | Kind.UNKNOWN if method in _OF_STRINGS_ALONE:  # an entry of a batch, perhaps
                return string_method(method)
            case Kind.TENSOR | Kind.BATCH:
                call.callee = f"torch.Tensor.{method}"
                value = tensor_methods.tensor_method(receiver, method, given, self.grad)
                self._change_in_place(call, receiver, method, value.grad)
                target = given.get("device", 0)
                if method == "to" and target is not None and target.is_(*_VAGUE) and self._device_like(call):
                    return value.but(place=Place.ACCELERATOR)
                return value
            case Kind.MODULE:
                return self._module_method(call, receiver, method, given)
            case Kind.OPTIMIZER:
                call.callee = f"torch.optim.Optimizer.{method}"
                if method == "step" and given.all():  # what the closure returns
                    return transfer.join_all([self.known.returns.get(closure, UNKNOWN) for closure in call.passes])
                return NONE if method in ("step", "zero_grad") else UNKNOWN
            case Kind.SCALER:
                call.callee = f"torch.amp.GradScaler.{method}"
                return given.positional[0] if method == "scale" and given.positional else UNKNOWN
            case Kind.DICT:
                return self._dict_method(call, receiver, method, given)
            case Kind.LIST | Kind.SET:
                return self._list_method(call, receiver, method, given)
            case Kind.STRING:
                return string_method(method)
            case Kind.ARRAY:
                return numpy_results.method(method)
            case Kind.INSTANCE if (receiver.ref or "").startswith("torch.distributions."):
                call.callee = f"{receiver.ref}.{method}"
                return tensor_methods.distribution_method(receiver, method, given, self.grad)
            case Kind.INSTANCE if (known := frameworks.method(receiver.ref or "", method, given)) is not None:
                return known
            case Kind.INSTANCE if method in ("cuda", "to", "cpu"):
                return self._unknown_method(call, receiver, method, given)
            case Kind.ITERATOR | Kind.LOADER:
                return self.elements(receiver) if method in ("next", "__next__") else receiver
            case Kind.UNKNOWN:
                return self._unknown_method(call, receiver, method, given)
            case _:
                return UNKNOWN

    def _change_in_place(self, call: Call, receiver: Value, method: str, grad: Grad) -> None:
        """`out.copy_(x)` gives `out` the graph of `x`. A graph that is there stays, but for `detach_`."""
        entry = torch_api.method(method)
        if receiver.kind is not Kind.TENSOR or entry is None or not entry.may("inplace") or grad is receiver.grad:
            return
        if method in _SWITCHING_METHODS or (not receiver.carries and self.grad is not False):
            self._rewrite_receiver(call, receiver.but(grad=grad))

    def _module_method(self, call: Call, receiver: Value, method: str, given: Arguments) -> Value:
        entry = words.module_method(method)
        if entry is not None or method == "forward":
            call.callee = f"torch.nn.Module.{method}"
        if method == "requires_grad_":
            return self._switched(call, receiver, off=_is_false(given.get("requires_grad", 0)))
        if method in _LIGHTNING_SWITCHES and self._may_be_lightning(receiver):
            self._switched(call, receiver, off=method == "freeze")
            return NONE
        if entry is not None and entry.results == (("self",),):
            place = receiver.place
            if method in ("cuda", "cpu"):
                place = Place.ACCELERATOR if method == "cuda" else Place.HOST
            elif method == "to" and given.positional:
                place = transfer.place_of_target(given.positional[0]) or place
            return receiver.but(place=place)
        if receiver.ref == "torch.nn.ModuleDict" and method in ("items", "values"):
            part = receiver if receiver.element is None else receiver.element.but(place=receiver.place)
            parts = Value(Kind.ITERATOR, element=part)
            return _named(parts) if method == "items" else parts
        if method in _PARTS_OF_MODULES:
            parts = _parts_of_module(method.removeprefix("named_"), receiver.place)
            return _named(parts) if method.startswith("named_") else parts
        if method == "state_dict":
            return Value(Kind.DICT, element=Value(Kind.TENSOR, Grad.DETACHED))
        if method == "register_buffer":
            self._register_buffer(call, given)
            return NONE
        if method == "clone":  # of learn2learn, to adapt it to one task
            return receiver
        if method == "forward":
            return self._forwarded(call, receiver, UNKNOWN, given)
        if entry is not None and entry.results == (("none",),):
            return NONE
        if receiver.ref == "torch.nn.ModuleList" and method in ADDING_METHODS and given.positional:
            self._rewrite_receiver(call, self._longer(receiver, given.positional[-1]))
            return receiver
        if entry is not None or method in ("backward", "step", "save_checkpoint", "extend"):
            return UNKNOWN
        is_getter = method.startswith("get_") and not call.node.args  # of a layer: `model.get_input_embeddings()`
        runs = words.runs_network(method) and not is_getter and not words.makes_pipeline(receiver.ref or "")
        call.is_forward = runs or self._is_asked(call, receiver, method, given)
        return Value(Kind.UNKNOWN, place=transfer.place_behind(given.all()))

    def _may_be_lightning(self, module: Value) -> bool:
        """Whether a module is one of Lightning, for all that is in sight of its class."""
        cls = self.local_class(module) or self.foreign_class(module)
        return cls is None or cls.is_lightning

    def _switched(self, call: Call, module: Value, *, off: bool) -> Value:
        """`net.eval().requires_grad_(False)` switches the parameters of `net` off; who switches those of a part on
        leaves it open what the whole has."""
        grad = Grad.DETACHED if off else Grad.UNKNOWN
        node = call.receiver
        while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            node = node.func.value
        binding = self.scopes.bindings.get(node) if node is not None else None
        if binding is not None:
            self.write(binding, module.but(grad=grad))
        elif grad is not Grad.DETACHED and isinstance(node, cst.Attribute):
            self._loosen(node.value)
        return module.but(grad=grad)

    def _is_asked(self, call: Call, network: Value, method: str, given: Arguments) -> bool:
        """Whether a method of a network out of sight, which somebody has told to evaluate, is given something on the
        device, for what it returns: `net.eval(); features = net.visual(x.cuda())`."""
        if network.ref is not None or words.acts(method) or isinstance(self.scopes.parents[call.node], cst.Expr):
            return False
        if not any(value.place is Place.ACCELERATOR and value.kind in _FED for value in given.positional):
            return False
        binding = self.scopes.bindings.get(call.receiver) if call.receiver is not None else None
        return binding is not None and "eval" in binding.methods

    def _register_buffer(self, call: Call, given: Arguments) -> None:
        """A buffer is a tensor that takes no gradients, unless it is made to take them, and goes wherever the module
        goes; one that is None at first says nothing."""
        binding = self.scopes.bindings.get(call.node.args[0].value) if call.node.args else None
        tensor = given.get("tensor", 1)
        if binding is not None and tensor is not None and tensor.kind is not Kind.NONE:
            known = tensor if tensor.kind is Kind.TENSOR else Value(Kind.TENSOR, origins=tensor.origins)
            grad = tensor.grad if any(_asks_for_gradients(arg.value) for arg in call.node.args) else Grad.DETACHED
            self.write(binding, known.but(grad=grad, place=Place.UNKNOWN, pinned=False))

    def _dict_method(self, call: Call, receiver: Value, method: str, given: Arguments) -> Value:
        element = receiver.element if receiver.element is not None else UNKNOWN
        match method:
            case "items":
                return Value(Kind.ITERATOR, element=Value(Kind.TUPLE, items=(element_of(receiver), element)))
            case "values":
                return Value(Kind.ITERATOR, element=element)
            case "keys":
                return Value(Kind.ITERATOR, element=element_of(receiver))
            case "get" | "pop" | "setdefault":
                key = given.positional[0].constant if given.positional else None
                return (receiver.field(key) if isinstance(key, str) else None) or element
            case "copy":
                return receiver
            case "update":
                self._rewrite_receiver(call, self._updated(receiver, given))
                return NONE
            case _:
                return UNKNOWN

    @staticmethod
    def _updated(receiver: Value, given: Arguments) -> Value:
        added = [*given.keywords.items()]
        first = given.positional[0] if given.positional else None
        if first is not None and first.fields is not None:
            added.extend(first.fields)
        elif first is not None:
            return receiver.but(
                fields=None, entries=None, element=join(receiver.element or UNKNOWN, first.element or UNKNOWN)
            )
        names = {name for name, _ in added}
        filled = (*((k, v) for k, v in receiver.known_fields if k not in names), *added)
        is_whole = receiver.fields is not None
        element = transfer.join_all([*([receiver.element] if receiver.element else []), *(v for _, v in added)])
        return receiver.but(fields=filled if is_whole else None, entries=None if is_whole else filled, element=element)

    def _list_method(self, call: Call, receiver: Value, method: str, given: Arguments) -> Value:
        if method in ADDING_METHODS and given.positional:
            self._rewrite_receiver(call, self.extended(receiver, given.positional[-1]))
            return NONE
        if method == "extend" and given.positional:
            self._rewrite_receiver(call, self.extended(receiver, element_of(given.positional[0])))
            return NONE
        if method in ("pop", "popleft"):
            return element_of(receiver)
        if method == "copy":
            return receiver
        return Value(Kind.NUMBER, dtype="int") if method in ("index", "count") else UNKNOWN

    @staticmethod
    def _longer(modules: Value, added: Value) -> Value:
        """A ModuleList with one more."""
        return modules.but(element=added if modules.element is None else join(modules.element, added))

    def _rewrite_receiver(self, call: Call, value: Value) -> None:
        assert call.receiver is not None
        binding = self.scopes.bindings.get(call.receiver)
        if binding is not None:
            self.write(binding, value)
            return
        if isinstance(call.receiver, cst.Subscript):
            owner = self.scopes.bindings.get(call.receiver.value)
            held = self.values[call.receiver.value]
            if owner is not None and held.kind in (Kind.DICT, Kind.LIST):
                self.write(owner, self.with_item(held, call.receiver, value))
            elif owner is not None and held.kind is Kind.TENSOR and not held.carries:
                self.write(owner, held.but(grad=value.grad))

    def _unknown_method(self, call: Call, receiver: Value, method: str, given: Arguments) -> Value:
        name = last_name(call.receiver)
        match method:
            case "item":
                return NUMBER
            case "tolist":
                return Value(Kind.LIST)
            case "numpy":
                return Value(Kind.ARRAY, place=Place.HOST)
            case "cpu":
                return receiver.but(place=Place.HOST)
            case "cuda":
                return receiver.but(place=Place.ACCELERATOR)
            case "to":
                place = transfer.place_of_target(given.positional[0]) if given.positional else None
                if place is None and given.positional and self._device_like(call):
                    place = Place.ACCELERATOR
                return receiver if place is None else receiver.but(place=place)
            case "size":
                return transfer.INTEGER if given.positional else transfer.SHAPE
            case "dim" | "numel" | "nelement" | "ndimension":
                return transfer.INTEGER
            case "items":
                return Value(Kind.ITERATOR, element=Value(Kind.TUPLE, items=(UNKNOWN, Value(place=receiver.place))))
            case "values":
                return Value(Kind.ITERATOR, element=Value(place=receiver.place))
            case "backward":
                return NONE
            case "scale" if "scaler" in name.lower() and given.positional:
                return given.positional[0]
            case "requires_grad_" if _tells_mode(call.receiver):
                off = _is_false(given.get("requires_grad", 0))
                return self._switched(call, Value(Kind.MODULE, place=receiver.place), off=off)
            case "forward" if any(value.is_tensor for value in given.all()):
                return self._forwarded(call, Value(Kind.MODULE, place=receiver.place), UNKNOWN, given)
        is_on_device = receiver.place is Place.ACCELERATOR  # so are networks, which have no sum
        if method in _TENSOR_ONLY_METHODS or (is_on_device and words.is_reduction(method)):
            return tensor_methods.tensor_method(receiver.but(kind=Kind.TENSOR), method, given, self.grad)
        if LOSS_NAMES.search(method):
            return self._loss_like(given)
        return UNKNOWN

    def _device_like(self, call: Call) -> bool:
        if not call.node.args:
            return False
        named = (arg for arg in call.node.args if arg.keyword is not None and arg.keyword.value == "device")
        name = last_name(next(named, call.node.args[0]).value).lower()
        return "dev" in name or "gpu" in name or "rank" in name


def _tells_mode(node: cst.CSTNode | None) -> bool:
    """`make(name).train()`, which no tensor has."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value in ("train", "eval") and not node.args:
            return True
        node = node.func.value
    return False


def _parts_of_module(method: str, place: Place) -> Value:
    if method in ("children", "modules"):
        return Value(Kind.ITERATOR, element=Value(Kind.MODULE))
    if method == "buffers":
        return Value(Kind.ITERATOR, element=Value(Kind.TENSOR, Grad.DETACHED, place))
    return Value(Kind.PARAMETERS, place=place)


def _named(parts: Value) -> Value:
    return Value(Kind.ITERATOR, element=Value(Kind.TUPLE, items=(STRING, element_of(parts))))


def _asks_for_gradients(node: cst.BaseExpression) -> bool:
    """`torch.zeros(3, requires_grad=True)`."""
    given = node.args if isinstance(node, cst.Call) else ()
    return any(arg.keyword.value == "requires_grad" and last_name(arg.value) != "False" for arg in given if arg.keyword)


def _is_false(value: Value | None) -> bool:
    return value is not None and value.constant is False
