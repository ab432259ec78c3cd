"""Reads of `tensor.data`: the values of a tensor behind the back of autograd, an idiom from before torch 0.4.

Writes through `.data` (`p.data.copy_(q)`, `p.data -= g`, initialisers) are another idiom and not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import torch_api
from torchlint.semantics import vocabulary as words
from torchlint.semantics.dataflow import reaches, text
from torchlint.semantics.hints import LOSS_NAMES
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding
    from torchlint.semantics.model import Model

# Methods of tensors that neither numpy nor scipy nor a dataset has under these names.
_TENSOR_ONLY = frozenset(
    """
    cpu cuda numpy topk view_as type_as unsqueeze detach clone norm eq ne gt ge lt le numel nelement byte long float
    double half int expand expand_as permute contiguous requires_grad masked_select index_select item exp div mul pow
    add sub bmm mm backward new new_zeros new_ones masked_fill storage_offset
    """.split()
)
_OF_DATA = _TENSOR_ONLY | {"size", "dim"}  # of an array, `size` is a number
# Attributes of nothing else.
_MAY_BE_TENSOR = re.compile(r"Tensor|Variable|Parameter|Loss|\bAny\b|\bobject\b|\bT\b")
_TENSOR_ATTRIBUTES = frozenset({"grad", "grad_fn", "requires_grad"})
_TENSOR_CLASSES = ("torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.autograd.Variable")
# Methods whose result shares memory with what they are called on: in-place work behind them still writes to `.data`.
_VIEWS = frozenset(
    """
    view view_as reshape squeeze unsqueeze narrow select t transpose permute expand expand_as unbind chunk split
    diagonal flatten detach contiguous
    """.split()
)
_SHAPING = _VIEWS - {"detach"}
# What comes back the same from the tensor itself, whether or not it has a graph.
_INDIFFERENT = frozenset(
    """
    item tolist size numel nelement dim detach element_size stride is_contiguous get_device
    new new_zeros new_ones new_empty new_full new_tensor
    """.split()
)
_INDIFFERENT_ATTRIBUTES = frozenset(
    {"shape", "dtype", "device", "ndim", "is_cuda", "is_sparse", "is_quantized", "layout", "itemsize", "nbytes"}
)
_ASKING = frozenset({"torch.numel", "torch.is_floating_point", "torch.is_complex", "torch.is_tensor"})
# Their results are new tensors, numbers or arrays: nothing done to them reaches the tensor or its version counter.
NEW_TENSORS = frozenset(
    """
    max min argmax argmin topk sum mean norm std var median sort eq ne gt ge lt le clone exp log sqrt abs div mul
    add sub pow sigmoid softmax tanh round neg mm matmul nonzero prod cumsum clamp repeat
    """.split()
)
_FRESH = NEW_TENSORS | {"numpy"}
_LEAF_ATTRIBUTES = frozenset({"grad", "weight", "bias"})
# Names of what has an attribute `data` of its own.
_NOT_TENSORS = re.compile(
    r"(?i)(data_?set|loader|buffer|storage|corpus|graph|batch|sample|data|args|opts?|cfg|config)s?$|^mnist"
)
# Names of what is added up to a loss.
_TERM_NAMES = re.compile(r"(?i)(^|_)(kld?|kl_?div\w*|cross_entropy|nll|elbo|bce|mse)(_|$|\d)")
_INITIALISER = re.compile(r"(^|_)init(_|$)")
# Likewise of a function whose result nobody takes.
_FILLING = re.compile(
    r"(?i)(^|_)(trunc\w*|normal|gaussian|uniform|xavier|glorot|kaiming|orthogonal|constant|fill\w*|zero\w*)(_|$)"
)
_DEPTH = 4
_TORCH = re.compile(r"^\s*(import|from)\s+torch|\btorch\.", re.MULTILINE)
_PACKING = re.compile(r"torch\.nn\.utils\.rnn\.(pack_\w+|PackedSequence)")


class Use(Enum):
    ELEMENT = "element"  # `loss.data[0]` or `loss.data.cpu().numpy()[0]`, of a tensor with a single value
    CHOICE = "choice"  # `policy.max(1)[1].data[0]`, the number of an action that an environment is given
    NUMBER = "number"  # `math.log(loss.data)`, which takes a number
    INDIFFERENT = "indifferent"  # `.data` changes nothing
    FRESH = "fresh"  # the values are at once used up
    SHARED = "shared"  # the result lives on, in the memory of the tensor


@dataclass(frozen=True, slots=True)
class DataRead:
    node: cst.Attribute
    use: Use
    certain: bool  # the owner is known to be a tensor; otherwise its use shows one
    element: cst.CSTNode | None  # the whole read of a single value, where there is one

    @property
    def owner(self) -> cst.BaseExpression:
        return self.node.value


def data_reads(model: Model) -> Iterator[DataRead]:
    """Reads of `.data` of a tensor, in source order. In a file that names nothing of torch, what has `data.numpy()` may
    be the constant of a compiler, or of any other library of arrays."""
    may_guess = _TORCH.search(model.source.text) is not None
    for node in model.nodes_of(cst.Attribute):
        assert isinstance(node, cst.Attribute)
        if node.attr.value != "data" or model.qualified(node) is not None:
            continue
        value = model.value(node.value)
        if not value.is_(Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN) or _is_packed(model, node.value):
            continue
        chain = _Chain(model, node)
        if isinstance(model.parent(chain.end), cst.Expr) and chain.end is node and not model.source.is_notebook:
            continue  # a statement that does nothing
        if _is_self(model, node.value) or chain.writes or _serves_a_write(model, node, chain):
            continue
        certain = value.kind is Kind.TENSOR
        if certain or (may_guess and _looks_like_tensor(model, node, value, chain)):
            use = _use(model, node, value, chain)
            if use is Use.FRESH or not _is_exchanged(model, node.value):
                whole = chain.end if use in (Use.NUMBER, Use.CHOICE) else chain.element
                yield DataRead(node, use, certain, whole)


class _Chain:
    """What is done to `.data` where it is read: `x.data.view(-1)[0].fill_(1)` ends at the call of `fill_`."""

    def __init__(self, model: Model, node: cst.Attribute) -> None:
        self.steps: list[str] = []  # methods as `name()`, attributes as `.name`, subscripts as `[]`
        self.nodes: list[cst.CSTNode] = []
        at: cst.CSTNode = node
        while (step := _step(model, at)) is not None:
            name, at = step
            self.steps.append(name)
            self.nodes.append(at)
        self.end = at
        self._is_stored = _is_stored(model, at)

    @property
    def writes(self) -> bool:
        """Whether the tensor is changed through its `.data`."""
        for name in self.steps:
            if name.endswith("_()") and not name.startswith("__"):
                return True
            if not (name.startswith((".", "[")) or name.removesuffix("()") in _VIEWS):
                return False
        return self._is_stored

    @property
    def element(self) -> cst.CSTNode | None:
        """`x.data[0]`, or `x.data.cpu().numpy()[0]`: the first of the values on the host."""
        steps = [(name, node) for name, node in zip(self.steps, self.nodes) if name not in ("cpu()", "numpy()")]
        return steps[0][1] if steps and steps[0][0] == "[]" and _is_first(steps[0][1]) else None

    @property
    def methods(self) -> list[str]:
        """The methods called in a row, until an attribute that is no view leads elsewhere."""
        found: list[str] = []
        for name in self.steps:
            if name.endswith("()"):
                found.append(name[:-2])
            elif name not in ("[]", ".T", ".mT"):
                break
        return found


def _is_stored(model: Model, node: cst.CSTNode) -> bool:
    parent = model.parent(node)
    if isinstance(parent, (cst.AugAssign, cst.AnnAssign)):
        return parent.target is node
    return isinstance(parent, (cst.AssignTarget, cst.Del))


def _step(model: Model, node: cst.CSTNode) -> tuple[str, cst.CSTNode] | None:
    parent = model.parent(node)
    if isinstance(parent, cst.Subscript) and parent.value is node:
        return "[]", parent
    if isinstance(parent, cst.Attribute) and parent.value is node:
        above = model.parent(parent)
        if isinstance(above, cst.Call) and above.func is parent:
            return parent.attr.value + "()", above
        return "." + parent.attr.value, parent
    return None


def _serves_a_write(model: Model, node: cst.Attribute, chain: _Chain) -> bool:
    """Whether the read is part of an in-place update or an initialisation: `p.data = 0.9 * p.data`, `init.x_(w.data)`,
    or of a variable that is changed in place later. That of another tensor, as by an average, is none."""
    statement = model.small_statement(node)
    below: cst.CSTNode = node
    for parent in model.ancestors(node):
        if isinstance(parent, cst.Call) and isinstance(below, cst.Arg) and _is_filled_by(model, parent, below):
            return True
        if parent is statement:
            break
        below = parent
    if isinstance(statement, cst.Assign):
        targets: list[cst.CSTNode] = [target.target for target in statement.targets]
    elif isinstance(statement, (cst.AugAssign, cst.AnnAssign)):
        targets = [statement.target]
    else:
        return False
    return any(
        _is_update(model, target, node.value)
        if _is_data_target(target)
        else (statement.value is chain.end and _is_filled(model, target, chain))
        or _is_put_back(model, target, node.value)
        for target in targets
    )


def _is_update(model: Model, target: cst.CSTNode, owner: cst.BaseExpression) -> bool:
    """Whether what is read is what the assignment to `.data` changes, or its gradient; a result is no such thing."""
    read = owner.value if isinstance(owner, cst.Attribute) and owner.attr.value == "grad" else owner
    written = [part.value for part in _written_parts(target) if isinstance(part, cst.Attribute) and _is_data(part)]
    return any(part.deep_equals(read) for part in written) and not _is_computed(model, read)


def _is_computed(model: Model, owner: cst.BaseExpression) -> bool:
    """Whether a tensor is what a network returns, and so no leaf that is trained."""
    binding = model.binding(owner)
    writes = (
        [write.value for write in binding.writes if reaches(model, binding, write.target, owner)] if binding else []
    )
    return bool(writes) and all(isinstance(value, cst.Call) and model.call(value).is_forward for value in writes)


def _is_filled_by(model: Model, call: cst.Call, given: cst.Arg) -> bool:
    return _fills_arguments(model, call) or _is_called_to_fill(model, call, given)


def _fills_arguments(model: Model, call: cst.Call) -> bool:
    """A call that writes to a tensor it is given, or into the `.data` that it is called on."""
    name = model.call(call).callee or model.qualified(call.func) or ""
    if name.startswith(("torch.nn.init.", "torch.distributed.")):
        return True
    if _INITIALISER.search(_name(call.func)):
        return True
    if isinstance(call.func, cst.Name):
        return call.func.value.endswith("_")
    if not isinstance(call.func, cst.Attribute) or not call.func.attr.value.endswith("_"):
        return False
    return _is_data_target(call.func.value) or model.qualified(call.func) is not None


def _is_called_to_fill(model: Model, call: cst.Call, given: cst.Arg) -> bool:
    """A call for its effect alone, of a function that changes in place what it is given, or is called so."""
    if not isinstance(model.parent(call), cst.Expr):
        return False
    if _FILLING.search(_name(call.func)):
        return True
    function = model.call(call).target or model.call(call).foreign
    if function is None:
        return False
    params = function.params[1:] if function.cls is not None and not function.is_static else function.params
    names = dict(zip(call.args, params)) | {arg: arg.keyword.value for arg in call.args if arg.keyword is not None}
    binding = function.scope.bindings.get(names.get(given, ""))
    return binding is not None and any(method.endswith("_") for method in binding.methods)


def _is_data_target(node: cst.CSTNode) -> bool:
    """`p.data`, or a part of it."""
    return any(_is_data(part) for part in _written_parts(node))


def _is_data(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == "data"


def _written_parts(target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What an assignment reaches into: not what the index says of where, as in `kept[x.data == 0] = 1`."""
    yield target
    match target:
        case cst.Tuple() | cst.List():
            for element in target.elements:
                yield from _written_parts(element.value)
        case cst.Subscript() | cst.Attribute() | cst.StarredElement():
            yield from _written_parts(target.value)
        case cst.Call():
            yield from _written_parts(target.func)


def _is_filled(model: Model, target: cst.CSTNode, chain: _Chain) -> bool:
    """A variable that takes `.data` as it is, and on which in-place methods are called."""
    binding = model.binding(target)
    if binding is None or any(method.endswith("()") and method[:-2] not in _VIEWS for method in chain.steps):
        return False
    if any(name.endswith("_") and not name.startswith("__") for name in binding.methods):
        return True
    return any(
        isinstance(item := model.parent(read), cst.Subscript) and item.value is read and _is_stored(model, item)
        for read in binding.reads
    )


def _is_self(model: Model, owner: cst.BaseExpression) -> bool:
    """Whether a class speaks of its own object: in one of tensors, `detach()` makes another object of the class."""
    function = model.function(owner)
    is_method = function.cls is not None and not function.is_static
    return is_method and isinstance(owner, cst.Name) and function.params[:1] == [owner.value]


def _is_put_back(model: Model, target: cst.CSTNode, owner: cst.BaseExpression) -> bool:
    """A variable that becomes the `.data` of the tensor: `new = p.data - step; p.data = new`."""
    binding = model.binding(target)
    above = [model.parent(read) for read in binding.reads] if binding is not None else []
    return any(
        isinstance(node, cst.Assign) and any(_is_update(model, t.target, owner) for t in node.targets) for node in above
    )


def _is_exchanged(model: Model, owner: cst.BaseExpression) -> bool:
    """Whether the function gives the tensor another `.data`, as for a while: what is read is kept or put back."""
    binding = model.binding(owner)
    if binding is None or isinstance(owner, cst.Attribute):
        return False
    return any(
        isinstance(above := model.parent(read), cst.Attribute)
        and above.attr.value == "data"
        and isinstance(model.parent(above), cst.AssignTarget)
        and model.function(read) is model.function(owner)
        and not any(part.deep_equals(above) for part in walk(model.statement(above)) if part is not above)
        for read in binding.reads
    )


def _use(model: Model, node: cst.Attribute, value: Value, chain: _Chain) -> Use:
    if chain.element is not None and _holds_one_value(model, node.value, value):
        return Use.ELEMENT
    if _is_given_to_math(model, chain):
        return Use.NUMBER
    if _is_choice(model, node, chain):
        return Use.CHOICE
    first = chain.steps[0] if chain.steps else ""
    asked = next((name for name in chain.steps if name != "[]" and name.removesuffix("()") not in _SHAPING), "")
    if (
        asked.removesuffix("()") in _INDIFFERENT
        or asked[1:] in _INDIFFERENT_ATTRIBUTES
        or _ends_in_number(chain)
        or _is_only_looked_at(model, chain)
        or (first == "type()" and isinstance(chain.nodes[0], cst.Call) and not chain.nodes[0].args)
        or _is_detached_call(node.value)
    ):
        return Use.INDIFFERENT
    for name in chain.methods:
        if name in _FRESH:
            return Use.FRESH
        if name not in _VIEWS and name != "cpu":
            break
    parent = model.parent(chain.end)
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget)) and model.value(node).kind is Kind.TENSOR:
        return Use.INDIFFERENT
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget, cst.BinaryOperation, cst.FormattedStringExpression)):
        return Use.FRESH
    return Use.SHARED


def _is_given_to_math(model: Model, chain: _Chain) -> bool:
    arg = model.parent(chain.end)
    call = model.parent(arg) if isinstance(arg, cst.Arg) else None
    moves_only = all(step == "cpu()" for step in chain.steps)
    return moves_only and isinstance(call, cst.Call) and (model.call(call).callee or "").startswith("math.")


def _ends_in_number(chain: _Chain) -> bool:
    """`x.data.cpu().item()`: the steps on the way make no difference, but for `numpy()`, which takes no graph."""
    methods = [step.removesuffix("()") for step in chain.steps if step != "[]"]
    return methods == chain.methods and methods[-1:] in (["item"], ["tolist"]) and "numpy" not in methods


def _is_only_looked_at(model: Model, chain: _Chain) -> bool:
    """`torch.zeros_like(x.data)`, `torch.numel(x.data)`, `isinstance(x.data, torch.FloatTensor)`"""
    arg = model.parent(chain.end)
    call = model.parent(arg) if isinstance(arg, cst.Arg) else None
    if chain.steps or not isinstance(call, cst.Call) or call.args[0] is not arg:
        return False
    name = model.call(call).callee or ""
    if name == "builtins.isinstance":
        return re.fullmatch(r"torch\.(cuda\.)?\w*Tensor", model.qualified(call.args[1].value) or "") is not None
    if name in _ASKING:
        return True
    return name.startswith("torch.") and name.endswith("_like") and not any(map(_asks_for_gradients, call.args))


def _asks_for_gradients(arg: cst.Arg) -> bool:
    return arg.keyword is not None and arg.keyword.value == "requires_grad"


def _is_choice(model: Model, node: cst.Attribute, chain: _Chain) -> bool:
    """Whether an element of a tensor of indices goes to `env.step(...)`, which takes a number."""
    numbered = chain.steps and all(step == "[]" for step in chain.steps) and all(map(_is_element, chain.nodes))
    if not numbered or not _holds_indices(model, node.value):
        return False
    statement = model.parent(chain.end)
    users = [chain.end]
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target = statement.targets[0].target
        binding = model.binding(target)
        users = [read for read in binding.reads if reaches(model, binding, target, read)] if binding else []
    return any(_steps_environment(model, user) for user in users)


def _is_element(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Subscript) and all(
        isinstance(element.slice, cst.Index) and isinstance(element.slice.value, cst.Integer) for element in node.slice
    )


def _holds_indices(model: Model, node: cst.BaseExpression) -> bool:
    """Whether a tensor holds classes or positions: `x.max(1)[1]`, `x.multinomial(1)`, or a variable of these."""
    if model.value(node).dtype == "int":
        return True
    match node:
        case cst.Subscript(value=cst.Call(func=cst.Attribute(attr=cst.Name(value=name)))) if _is_element(node):
            return name in ("max", "min", "sort", "topk") and model.code(node).endswith("[1]")
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))):
            return name in ("argmax", "argmin", "multinomial")
    binding = model.binding(node)
    if binding is None or not isinstance(node, cst.Name):
        return False
    values = [write.value for write in binding.writes if reaches(model, binding, write.target, node)]
    return bool(values) and all(value is not None and _holds_indices(model, value) for value in values)


def _steps_environment(model: Model, node: cst.CSTNode) -> bool:
    """`env.step(node)`, of what is no optimizer and no schedule."""
    arg = model.parent(node)
    call = model.parent(arg) if isinstance(arg, cst.Arg) else None
    if not isinstance(call, cst.Call) or len(call.args) != 1 or model.call(call).method != "step":
        return False
    return not model.call(call).receiver_value.is_(Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER)


def _is_first(node: cst.CSTNode) -> bool:
    match node:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0")))]):
            return True
    return False


def _is_packed(model: Model, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether an expression is a PackedSequence, whose `data` is a field like any other."""
    if isinstance(node, cst.Call):
        call = model.call(node)
        if _PACKING.fullmatch(call.callee or ""):
            return True
        return depth < _DEPTH and call.is_forward and any(_is_packed(model, arg.value, depth + 1) for arg in node.args)
    binding = model.binding(node)
    if binding is None or depth == _DEPTH:
        return False
    return any(write.value is not None and _is_packed(model, write.value, depth + 1) for write in binding.writes)


def _root(node: cst.BaseExpression) -> cst.BaseExpression:
    """x of `x[:, 0]`."""
    while isinstance(node, cst.Subscript):
        node = node.value
    return node


def _name(node: cst.CSTNode) -> str:
    """The last word of a variable, an attribute or what is called or indexed."""
    while isinstance(node, (cst.Call, cst.Subscript)):
        node = node.func if isinstance(node, cst.Call) else node.value
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def _is_detached_call(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "detach"


def _holds_one_value(model: Model, owner: cst.BaseExpression, value: Value) -> bool:
    """Whether the tensor is known to hold a single value, as one does on which `backward()` runs."""
    if value.kind is Kind.TENSOR and value.rank is not None:
        return value.rank == 0
    binding = model.binding(owner)
    if (binding is not None and "backward" in binding.methods) or _is_full_reduction(model, owner):
        return True
    name = _name(owner)
    return any(names.search(name) for names in (LOSS_NAMES, _TERM_NAMES)) and "losses" not in name.lower()


def _is_full_reduction(model: Model, owner: cst.BaseExpression) -> bool:
    """`x.mean()`, of whatever has a `data[0]` behind it: a number of numpy has none."""
    if not isinstance(owner, cst.Call) or owner.args:
        return False
    return model.call(owner).receiver is not None and words.is_reduction(model.call(owner).method or "")


def _looks_like_tensor(model: Model, node: cst.Attribute, value: Value, chain: _Chain) -> bool:
    """Whether the way `.data` is used, or its owner, leaves nothing but a tensor."""
    owner = node.value
    binding = model.binding(owner)
    if binding is not None and binding.cls is None and not binding.is_parameter and not binding.writes:
        return False
    if binding is not None and (_is_declared_otherwise(model, binding) or _holds_other_data(model, binding)):
        return False
    if not _may_be_of_tensor(chain):
        return False
    if isinstance(owner, cst.Attribute) and owner.attr.value in _LEAF_ATTRIBUTES:
        return True
    if chain.element is not None and _is_full_reduction(model, owner):
        return True
    is_part = isinstance(owner, cst.Subscript) and value.kind is Kind.BATCH
    is_computed_with = binding is not None and any(_meets_tensors(model, read) for read in binding.reads)
    if not is_part and not is_computed_with and _NOT_TENSORS.search(_name(owner)):
        return False
    if is_part or _is_rows(owner) or _shows_tensor(chain) or _takes_index_of_extremum(model, chain):
        return True
    if value.kind is Kind.UNKNOWN and LOSS_NAMES.search(_name(owner)) and chain.steps[:1] == ["[]"]:
        return _is_first(chain.nodes[0])
    whole = model.binding(_root(owner))
    if whole is not None and _is_used_as_tensor(model, whole):
        return True
    return _meets_tensors(model, chain.end)


def _is_rows(owner: cst.BaseExpression) -> bool:
    """`x[:, 0]`, of nothing but a tensor or an array."""
    parts = [part.slice for part in owner.slice] if isinstance(owner, cst.Subscript) else []
    return len(parts) > 1 and any(isinstance(part, cst.Slice) for part in parts)


def _is_declared_otherwise(model: Model, binding: Binding) -> bool:
    """Whether a parameter is annotated with something that no tensor is."""
    declared = (model.parent(write.target) for write in binding.writes if write.kind == "parameter")
    annotations = [param.annotation for param in declared if isinstance(param, cst.Param)]
    return any(
        annotation is not None and not _MAY_BE_TENSOR.search(text(annotation.annotation)) for annotation in annotations
    )


def _holds_other_data(model: Model, binding: Binding) -> bool:
    """Whether `.data` of a variable has members somewhere that no tensor has: `hps.data.hop_length`."""
    above = (model.parent(read) for read in binding.reads)
    data = (node for node in above if isinstance(node, cst.Attribute) and node.attr.value == "data")
    return any(not _may_be_of_tensor(_Chain(model, node)) for node in data)


def _may_be_of_tensor(chain: _Chain) -> bool:
    """Whether tensors have the member that is asked for first."""
    name = chain.steps[0].strip(".()") if chain.steps else "[]"
    return name == "[]" or torch_api.lookup(f"torch.Tensor.{name}") is not None or name.startswith("__")


def _shows_tensor(chain: _Chain) -> bool:
    """Whether a method is called that only tensors have, or with an argument that only they take."""
    if any(method in _OF_DATA for method in chain.methods):
        return True
    calls = [node for node in chain.nodes if isinstance(node, cst.Call)]
    names = [arg.keyword.value for call in calls for arg in call.args if arg.keyword is not None]
    return not {"dim", "keepdim"}.isdisjoint(names)


def _is_used_as_tensor(model: Model, binding: Binding) -> bool:
    """Whether other uses of a variable leave nothing but a tensor."""
    if not binding.called and binding.methods & (_TENSOR_ONLY | {"size"}):  # of an array, `size` is a number
        return True
    if _is_input(binding) and not _is_packed_sequence(model, binding):
        return True
    return any(_proves_tensor(model, read) for read in binding.reads)


def _is_input(binding: Binding) -> bool:
    """Whether a module takes it as an argument of its `forward`."""
    function = binding.scope_function
    if function.name != "forward" or function.cls is None or not binding.is_parameter:
        return False
    return function.cls.is_module and binding.name in function.params[1:]


def _is_packed_sequence(model: Model, binding: Binding) -> bool:
    above = [model.parent(read) for read in binding.reads]
    return any(isinstance(node, cst.Attribute) and node.attr.value == "batch_sizes" for node in above)


def _proves_tensor(model: Model, read: cst.CSTNode) -> bool:
    """`x.grad`, `x.data.normal_()`, `isinstance(x, nn.Parameter)`"""
    above = model.parent(read)
    if isinstance(above, cst.Attribute) and above.value is read:
        if above.attr.value == "data":
            chain = _Chain(model, above)
            steps = [name.removesuffix("()") for name in chain.steps]
            shown = any(name in _OF_DATA or (name.endswith("_") and not name.startswith("__")) for name in steps)
            return shown or _meets_tensors(model, chain.end)
        return above.attr.value in _TENSOR_ATTRIBUTES
    call = model.parent(above) if isinstance(above, cst.Arg) else None
    if not isinstance(call, cst.Call) or len(call.args) != 2 or call.args[0] is not above:
        return False
    is_question = model.qualified(call.func) == "builtins.isinstance"
    return is_question and model.qualified(call.args[1].value) in _TENSOR_CLASSES


def _takes_index_of_extremum(model: Model, chain: _Chain) -> bool:
    """`x.data.max(1)[1]`, `_, best = x.data.max(1)`: of an array, `max` gives no indices."""
    for position, name in enumerate(chain.steps):
        if name not in ("max()", "min()", "sort()"):
            continue
        call = chain.nodes[position]
        assert isinstance(call, cst.Call)
        if any(arg.keyword is not None and arg.keyword.value in ("keepdim", "descending") for arg in call.args):
            return True
        if not call.args:
            return False
        if chain.steps[position + 1 : position + 2] == ["[]"]:
            return True
        assign = model.parent(call)
        return isinstance(assign, cst.Assign) and any(
            isinstance(target.target, cst.Tuple) and len(target.target.elements) == 2 for target in assign.targets
        )
    return False


def _meets_tensors(model: Model, node: cst.CSTNode) -> bool:
    """Whether the value goes into an operation with a tensor, or into a function that takes nothing else."""
    parent = model.parent(node)
    above = model.parent(parent) if parent is not None else None
    match parent:
        case cst.Arg() if isinstance(above, cst.Call):
            name = model.call(above).callee or ""
            if name in _TENSOR_CLASSES or name.endswith("_like"):
                return name.startswith("torch.")
            if name == "torch.Tensor.copy_":
                return True
            if name.startswith("torchvision.utils."):
                return True
            return words.returns_tensor(name) and not words.makes_tensor(name)
        case cst.BinaryOperation():
            sides = [parent.left, parent.right]
            return any(model.value(side).kind is Kind.TENSOR for side in sides) or _meets_tensors(model, parent)
        case cst.Comparison() | cst.ComparisonTarget():
            comparison = parent if isinstance(parent, cst.Comparison) else above
            assert isinstance(comparison, cst.Comparison)
            sides = [comparison.left, *(target.comparator for target in comparison.comparisons)]
            return any(model.value(side).kind is Kind.TENSOR for side in sides) or _meets_tensors(model, comparison)
    return False
