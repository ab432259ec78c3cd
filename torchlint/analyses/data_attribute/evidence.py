"""Whether what has an attribute `data` is a tensor: shown by how it, or its `.data`, is used."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.data_attribute.chain import Chain, is_first, last_word
from torchlint.semantics import torch_api
from torchlint.semantics import vocabulary as words
from torchlint.semantics.dataflow import text
from torchlint.semantics.hints import LOSS_NAMES
from torchlint.semantics.tree import without_subscripts
from torchlint.semantics.values import Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Function
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
_MAY_BE_TENSOR = re.compile(r"Tensor|Variable|Parameter|Loss|\bAny\b|\bobject\b|\bT\b")
_OTHER_TENSORS = ("other", "mat2", "vec", "tensor")
# Attributes of nothing else.
_TENSOR_ATTRIBUTES = frozenset({"grad", "grad_fn", "requires_grad"})
_TENSOR_CLASSES = ("torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.autograd.Variable")
_LEAF_ATTRIBUTES = frozenset({"grad", "weight", "bias"})
# Names of what has an attribute `data` of its own.
_NOT_TENSORS = re.compile(
    r"(?i)(data_?set|loader|buffer|storage|corpus|graph|batch|sample|data|args|opts?|cfg|config)s?$|^mnist"
)


def is_full_reduction(model: Model, owner: cst.BaseExpression) -> bool:
    """`x.mean()`, of whatever has a `data[0]` behind it: a number of numpy has none."""
    if not isinstance(owner, cst.Call) or owner.args:
        return False
    return model.call(owner).receiver is not None and words.is_reduction(model.call(owner).method or "")


def is_leaf_attribute(owner: cst.BaseExpression) -> bool:
    """`layer.weight`, `x.grad`"""
    return isinstance(owner, cst.Attribute) and owner.attr.value in _LEAF_ATTRIBUTES


def looks_like_tensor(model: Model, node: cst.Attribute, value: Value, chain: Chain) -> bool:
    """Whether the way `.data` is used, or its owner, leaves nothing but a tensor."""
    owner = node.value
    binding = model.binding(owner)
    if binding is not None and binding.cls is None and not binding.is_parameter and not binding.writes:
        return False
    if binding is not None and (_is_declared_otherwise(model, binding) or _holds_other_data(model, binding)):
        return False
    if _has_other_members(model, owner):
        return False
    if not _may_be_of_tensor(chain):
        return False
    if is_leaf_attribute(owner):
        return True
    if _may_be_entry(model, chain):
        whole = model.binding(without_subscripts(owner))
        return whole is not None and _is_used_as_tensor(model, whole)
    if chain.element is not None and is_full_reduction(model, owner):
        return True
    is_part = isinstance(owner, cst.Subscript) and value.kind is Kind.BATCH
    is_computed_with = binding is not None and any(_meets_tensors(model, read) for read in binding.reads)
    if not is_part and not is_computed_with and _NOT_TENSORS.search(last_word(owner)):
        return False
    if is_part or _is_rows(owner) or _shows_tensor(chain) or _takes_index_of_extremum(model, chain):
        return True
    if value.kind is Kind.UNKNOWN and LOSS_NAMES.search(last_word(owner)) and chain.steps[:1] == ["[]"]:
        return is_first(chain.nodes[0])
    whole = model.binding(without_subscripts(owner))
    if whole is not None and _is_used_as_tensor(model, whole):
        return True
    return _meets_tensors(model, chain.end)


def may_look_like_tensor(model: Model, node: cst.Attribute, chain: Chain) -> bool:
    """Whether `.data` has a method that tensors have, and its owner a name that says nothing against one."""
    binding = model.binding(node.value)
    if binding is None or (binding.cls is None and not binding.is_parameter and not binding.writes):
        return False
    is_named_otherwise = _NOT_TENSORS.search(last_word(node.value)) is not None
    is_otherwise = _is_declared_otherwise(model, binding) or _holds_other_data(model, binding)
    return bool(chain.methods) and _may_be_of_tensor(chain) and not (is_named_otherwise or is_otherwise)


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
    return any(not _may_be_of_tensor(Chain(model, node)) for node in data)


def _has_other_members(model: Model, owner: cst.BaseExpression) -> bool:
    """Whether the file asks what has the same name in the same function, or is given to another method of the class,
    for members that no tensor has: `frame.boxes` beside `frame.data`."""
    found, function = model.once(_foreign_members), model.function(owner)
    binding = model.binding(owner)
    methods = function.cls.methods.values() if function.cls is not None else ()
    is_given = binding is not None and binding.is_parameter
    alike = [other for other in methods if is_given and text(owner) in other.params]
    return any(found.get((where, text(owner))) for where in (function, *alike))


def _foreign_members(model: Model) -> dict[tuple[Function, str], set[str]]:
    found: dict[tuple[Function, str], set[str]] = {}
    for node in model.nodes_of(cst.Attribute):
        assert isinstance(node, cst.Attribute)
        name = node.attr.value
        if not name.startswith("_") and torch_api.lookup(f"torch.Tensor.{name}") is None:
            found.setdefault((model.function(node), text(node.value)), set()).add(name)
    return found


def _takes_tensor(method: str) -> bool:
    """Whether a method of tensors takes another one, and of all else a number at most: `x.eq(y)`, `x.copy_(y)`"""
    entry = torch_api.lookup(method)
    return entry is not None and all(names[:1] and names[0] in _OTHER_TENSORS for names in entry.parameter_lists)


def _may_be_of_tensor(chain: Chain) -> bool:
    """Whether tensors have the member that is asked for first."""
    name = chain.steps[0].strip(".()") if chain.steps else "[]"
    return name == "[]" or torch_api.lookup(f"torch.Tensor.{name}") is not None or name.startswith("__")


def _may_be_entry(model: Model, chain: Chain) -> bool:
    """`edges.data[field]`: an entry of a dict for all that is known of the key, and what is done with it says nothing
    of what holds the dict."""
    match chain.nodes[0] if chain.steps[:1] == ["[]"] else None:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
            return model.value(key).is_(Kind.STRING, Kind.UNKNOWN)
    return False


def _shows_tensor(chain: Chain) -> bool:
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
            chain = Chain(model, above)
            if _may_be_entry(model, chain):
                return False
            steps = [name.removesuffix("()") for name in chain.steps]
            shown = any(name in _OF_DATA or (name.endswith("_") and not name.startswith("__")) for name in steps)
            return shown or _meets_tensors(model, chain.end)
        return above.attr.value in _TENSOR_ATTRIBUTES
    call = model.parent(above) if isinstance(above, cst.Arg) else None
    if not isinstance(call, cst.Call) or len(call.args) != 2 or call.args[0] is not above:
        return False
    is_question = model.qualified(call.func) == "builtins.isinstance"
    return is_question and model.qualified(call.args[1].value) in _TENSOR_CLASSES


def _takes_index_of_extremum(model: Model, chain: Chain) -> bool:
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
            if name.startswith("torch.Tensor.") and _takes_tensor(name):
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
