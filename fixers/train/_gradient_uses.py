"""What is asked of tensors that only leaves of a graph have, and what uses of a tensor need no gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import is_boolean

if TYPE_CHECKING:
    from torchlint.semantics.model import Model
    from torchlint.source import Source

OF_LEAVES = frozenset({"requires_grad", "requires_grad_", "grad", "retain_grad", "register_hook"})
_LIKE_ANOTHER = frozenset({"type_as", "view_as", "expand_as", "reshape_as"})
_NEW_LIKE = frozenset(f"torch.{name}_like" for name in ("zeros", "ones", "empty", "full", "rand", "randn", "randint"))
_COMPARISONS = frozenset({"torch.equal", "torch.allclose", "torch.isclose", "torch.testing.assert_close"})
_RESHAPING = _LIKE_ANOTHER | {"view", "reshape", "unsqueeze", "squeeze", "flatten", "long", "cpu", "cuda"}
_POSITIONS = frozenset({"torch.nonzero", "torch.argwhere", "torch.argmax", "torch.argmin", "torch.argsort"})
_COMPARING = (cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_BY_INDEX = frozenset(
    """
    gather index_select index_add index_add_ index_copy index_copy_ index_fill index_fill_ scatter scatter_ scatter_add
    scatter_add_
    """.split()
)


def takes_no_gradient(node: cst.CSTNode, model: Model) -> bool:
    """Whether a tensor is only the index of elements, is only compared, or only tells a type or a shape:
    `x.gather(1, node.view(-1))`, `x.eq(node)`, `x == node`."""
    above = model.parent(node)
    comparison = model.parent(above) if isinstance(above, cst.ComparisonTarget) else above
    if isinstance(comparison, cst.Comparison):
        return _compares_with_tensors(comparison, node, model)
    if isinstance(above, cst.Subscript) and above.value is node:
        return takes_no_gradient(above, model)
    if isinstance(above, cst.Index):  # `x[node]`
        return True
    call = model.parent(above) if isinstance(above, (cst.Attribute, cst.Arg)) else None
    if not isinstance(call, cst.Call):
        return False
    if (model.call(call).callee or "") in _POSITIONS and call.args[0] is above:
        return True
    if isinstance(above, cst.Attribute):
        return above.attr.value in _RESHAPING and takes_no_gradient(call, model)
    callee = model.call(call).callee or ""
    if (callee in _NEW_LIKE and call.args[0] is above) or callee in _COMPARISONS:
        return True
    method = model.call(call).method or ""
    if method in _LIKE_ANOTHER or method == "to" or is_boolean(method):
        return len(call.args) == 1
    return method in _BY_INDEX and len(call.args) > 1 and call.args[1] is above


def _compares_with_tensors(comparison: cst.Comparison, node: cst.CSTNode, model: Model) -> bool:
    """Whether what a tensor is compared with is no array, which would ask a tensor with a graph for its own."""
    others = [comparison.left, *(target.comparator for target in comparison.comparisons)]
    return all(isinstance(target.operator, _COMPARING) for target in comparison.comparisons) and all(
        model.value(other).is_(Kind.TENSOR, Kind.BATCH, Kind.NUMBER) for other in others if other is not node
    )


def is_plain_gradient(node: cst.BaseExpression, model: Model) -> bool:
    """Whether an expression is the gradient of a tensor where this file or one around it runs the backward pass, and
    none of them asks for gradients that have a graph of their own."""
    if not isinstance(node, cst.Attribute) or node.attr.value != "grad":
        return False
    around = [model.source, *model.neighbours()]
    runs = model.calls_to(".backward") or any(model.once_of(source, _runs_backward) for source in around)
    return bool(runs) and not any(model.once_of(source, _creates_graphs) for source in around)


def _runs_backward(source: Source) -> bool:
    return ".backward(" in source.text


def _creates_graphs(source: Source) -> bool:
    return "create_graph" in source.text


def sees_leaves(model: Model) -> bool:
    """Whether gradients of some tensor other than a parameter are asked for or switched, anywhere in the file."""
    return any(
        isinstance(node, cst.Attribute) and node.attr.value in OF_LEAVES and not _is_parameter(node.value, model)
        for node in model.nodes_of(cst.Attribute)
    )


def _is_parameter(node: cst.BaseExpression, model: Model) -> bool:
    """`p` of `for p in net.parameters()` and of `filter(lambda p: ..., net.parameters())`, or `net.weight`."""
    if isinstance(node, cst.Attribute):
        return node.attr.value in ("weight", "bias")
    binding = model.binding(node)
    if binding is not None and binding.is_parameter and isinstance(binding.scope_function.node, cst.Lambda):
        user = model.parent(model.parent(binding.scope_function.node) or node)
        return isinstance(user, cst.Call) and any(_yields_parameters(arg.value) for arg in user.args[1:])
    loops = [write.value for write in binding.writes if write.kind == "for"] if binding is not None else []
    return binding is not None and len(loops) == len(binding.writes) > 0 and all(map(_yields_parameters, loops))


def _yields_parameters(node: cst.BaseExpression | None) -> bool:
    return any(
        isinstance(part, cst.Attribute) and part.attr.value in ("parameters", "named_parameters")
        for part in (walk(node) if node is not None else ())
    )
