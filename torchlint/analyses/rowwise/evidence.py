"""What the uses of a name say about what it holds."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Flag, auto
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.rowwise.nature import is_comparing
from torchlint.semantics.branches import no_tensors
from torchlint.semantics.dataflow import parameter_of_function
from torchlint.semantics.tree import walk, without_subscripts
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import is_tensor_method

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Loop
    from torchlint.semantics.model import Model

_TENSOR_ONLY = frozenset(
    """
    size dim unsqueeze detach cuda cpu permute requires_grad_ numel expand type_as new_zeros new_ones float double half
    long t mm mv bmm matmul norm exp log sqrt softmax log_softmax sigmoid relu unbind contiguous clamp topk masked_fill
    index_select view_as expand_as gather scatter scatter_ scatter_add_ index_fill_ index_add_ masked_fill_ logsumexp
    narrow
    """.split()
)
_ARRAY_ATTRIBUTES = ("shape", "ndim")
_DERIVED_ATTRIBUTES = ("T", "mT", "H", "mH", "data", "real", "imag")
# Of torch's functions those that take lists, numbers or arrays of numpy too.
_TAKES_ANYTHING = frozenset(
    """
    from_numpy tensor Tensor as_tensor asarray FloatTensor LongTensor DoubleTensor stack cat concat hstack vstack
    is_tensor save zeros ones empty full arange linspace eye manual_seed device Size
    """.split()
)
_LISTS = frozenset(("list", "tuple", "dict", "Sequence", "List", "Tuple"))
_DEPTH = 2
_Step = tuple["Evidence", cst.CSTNode | None]


class Evidence(Flag):
    """What the uses of a variable say it is."""

    NONE = 0
    ARRAY = auto()  # it has a shape: a tensor, or an array of numpy
    TORCH = auto()  # torch takes it, or a part of it, as a tensor: a tensor, or a list of them
    TENSOR = ARRAY | TORCH


def is_tensor_by_use(model: Model, binding: Binding) -> bool:
    """Whether torch takes what a variable holds as a tensor: not one entry of a dict, as in `batch["image"]`."""
    parts = (above for read in binding.reads if isinstance(above := model.parent(read), cst.Subscript))
    keys = (part.slice.value for above in parts for part in above.slice if isinstance(part.slice, cst.Index))
    if any(isinstance(key, cst.SimpleString) for key in keys):
        return False
    return Evidence.TORCH in evidence(model, binding.reads)


def evidence(model: Model, reads: Iterable[cst.CSTNode], depth: int = _DEPTH) -> Evidence:
    """What these reads of a variable together say. What may be a list is none that a loop over it is about."""
    found, reads = Evidence.NONE, list(reads)
    if any(_asks_for_list(model, read) or _is_asserted_no_tensor(model, read) for read in reads):
        return found
    for read in reads:
        found |= _Use(model, read, depth).says()
        if found is Evidence.TENSOR:
            break
    return found


def _asks_for_list(model: Model, read: cst.CSTNode) -> bool:
    """`isinstance(x, list)`, `type(x) == list`, `type(x) is list`"""
    argument = model.parent(read)
    call = model.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call):
        return False
    asked = model.qualified(call.func), len(call.args)
    if asked == ("builtins.isinstance", 2):
        classes: cst.CSTNode | None = call.args[1].value
    else:
        classes = model.parent(call) if asked == ("builtins.type", 1) else None
    if not isinstance(classes, cst.BaseExpression):
        return False
    return not _LISTS.isdisjoint(node.value for node in walk(classes) if isinstance(node, cst.Name))


def _is_asserted_no_tensor(model: Model, read: cst.CSTNode) -> bool:
    """`assert not isinstance(x, torch.Tensor)`"""
    statement = model.small_statement(read)
    return isinstance(statement, cst.Assert) and any(asked is read for asked in no_tensors(statement.test, True, model))


def is_found_to_be_list(model: Model, loop: Loop) -> bool:
    """Whether a test has asked for a list, and a tensor goes another way: the parts differ in shape, then."""
    return loop.iterable is not None and is_list_where(model, loop.iterable, loop.node)


def is_list_where(model: Model, name: cst.CSTNode, place: cst.CSTNode) -> bool:
    """Whether a test around a place has found that what is called so is a list."""
    binding = model.binding(name)
    tests = [guard.test for guard in model.guards(place) if guard.test is not None and guard.branch == "body"]
    asked = (node for test in tests for node in walk(test) if binding is not None and node in binding.reads)
    return any(_asks_for_list(model, node) for node in asked)


class _Use:
    """Follows an expression up to what is done with it. `whole`: still the value of the name, and no part of it."""

    def __init__(self, model: Model, read: cst.CSTNode, depth: int) -> None:
        self._model = model
        self._node = read
        self._whole = True
        self._depth = depth

    def says(self) -> Evidence:
        found = Evidence.NONE
        while True:
            more, above = self._step()
            found |= more
            if above is None:
                return found
            self._node = above

    def _step(self) -> _Step:
        """What the expression around says, and the expression that is to be followed further."""
        node, parent = self._node, self._model.parent(self._node)
        match parent:
            case cst.ComparisonTarget(operator=cst.In() | cst.NotIn()):
                return Evidence.NONE, None  # a tensor may be looked for in a list
            case cst.Subscript(value=value) if value is node:
                is_array = self._whole and len(parent.slice) > 1
                self._whole = False
                return Evidence.ARRAY if is_array else Evidence.NONE, parent
            case cst.Attribute(value=value) if value is node:
                return self._attribute(parent)
            case cst.BinaryOperation(left=left, right=right):
                return self._beside(right if left is node else left, parent)
            case cst.UnaryOperation():
                return Evidence.NONE, parent
            case cst.ComparisonTarget():
                return self._beside(self._compared(parent), None)
            case cst.Comparison(left=left) if left is node:
                return self._beside(parent.comparisons[0].comparator, None)
            case cst.Arg():
                return self._argument(parent), None
            case cst.Assign(value=value, targets=[cst.AssignTarget(target=target)]) if value is node:
                return self._assigned(target), None
            case cst.For(iter=value) | cst.CompFor(iter=value) if value is node:
                return self._named(parent.target) & Evidence.TORCH, None
        return Evidence.NONE, None

    def _compared(self, target: cst.ComparisonTarget) -> cst.BaseExpression | None:
        comparison = self._model.parent(target)
        return comparison.left if isinstance(comparison, cst.Comparison) else None

    def _attribute(self, node: cst.Attribute) -> _Step:
        name, call = node.attr.value, self._model.parent(node)
        if not isinstance(call, cst.Call) or call.func is not node:
            shaped = name in _ARRAY_ATTRIBUTES and self._whole
            return Evidence.ARRAY if shaped else Evidence.NONE, node if name in _DERIVED_ATTRIBUTES else None
        if name in _TENSOR_ONLY or (name.endswith("_") and is_tensor_method(name)):
            return Evidence.TENSOR if self._whole else Evidence.TORCH, None
        return Evidence.NONE, call if is_tensor_method(name) else None

    def _beside(self, other: cst.BaseExpression | None, above: cst.CSTNode | None) -> _Step:
        """An operand of an operator: what is subscripted or walked over is no number, so beside a tensor it is one."""
        if other is not None and self._model.value(other).kind is Kind.TENSOR:
            return Evidence.TENSOR if self._whole else Evidence.NONE, None
        return Evidence.NONE, above

    def _argument(self, argument: cst.Arg) -> Evidence:
        call = self._model.parent(argument)
        if not isinstance(call, cst.Call) or argument.star:
            return Evidence.NONE
        name = self._model.qualified(call.func) or ""
        module = self._model.value(call.func)
        if module.kind is Kind.MODULE:
            return Evidence.TORCH if (module.ref or "").startswith("torch.nn.") else Evidence.NONE
        if is_comparing(name) and argument in call.args[:2]:
            return Evidence.TENSOR if self._whole else Evidence.TORCH
        takes_tensors = name.startswith("torch.") and name.rpartition(".")[2] not in _TAKES_ANYTHING
        if takes_tensors:
            return Evidence.TORCH if call.args[0] is argument else Evidence.NONE
        return self._handed_on(self._model.call(call), argument)

    def _handed_on(self, call: Call, argument: cst.Arg) -> Evidence:
        """What a function of the project does with it."""
        entered = (self._model, call.target) if call.target is not None else self._model.elsewhere(call)
        parameter = parameter_of_function(call, entered[1], argument) if entered is not None and self._depth else None
        if entered is None or parameter is None or len(parameter.writes) != 1:
            return Evidence.NONE
        found = evidence(entered[0], parameter.reads, self._depth - 1)
        return found if self._whole else found & Evidence.TORCH

    def _assigned(self, target: cst.BaseExpression) -> Evidence:
        if isinstance(target, cst.Subscript):
            whole = self._model.value(without_subscripts(target))
            return Evidence.TORCH if whole.kind is Kind.TENSOR else Evidence.NONE
        found = self._named(target)
        return found if self._whole else found & Evidence.TORCH

    def _named(self, target: cst.BaseExpression) -> Evidence:
        """Of a name that holds it now."""
        binding = self._model.binding(target) if isinstance(target, cst.Name) and self._depth else None
        if binding is None or len(binding.writes) != 1:
            return Evidence.NONE
        found = Evidence.NONE
        for read in binding.reads:
            found |= _Use(self._model, read, self._depth - 1).says()
        return found
