"""What `torch.vmap` can run although no batched form of it is known: functions of torch that compute and do nothing
else, and functions of the file that are made of such."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.vectorize.mapped_ranks import Ranks, entry_of, statements
from torchlint.analyses.vectorize.operation import Operation, called_module
from torchlint.analyses.vectorize.shapes import UNKNOWN_DTYPE, DType, Rank, RefusedError
from torchlint.analyses.vectorize.vocabulary import MAPPED, NEVER_EMPTY, SORTING
from torchlint.semantics import torch_api
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter
    from torchlint.semantics.entities import Function

_DEPTH = 4
_TURNED = ("T", "mT", "H", "mH", "real", "imag")
_SIZES = ("dim", "ndimension", "numel", "nelement")
_NUMERIC = tuple(f"builtins.{name}" for name in ("int", "float", "abs", "min", "max", "round"))
_COMPARED = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual, cst.Equal, cst.NotEqual)


class Made(Enum):
    """What an expression gives in one iteration."""

    TENSOR = auto()
    TENSORS = auto()  # a named tuple of them
    SORTED = auto()  # values and indices, which are not defined where values are equal
    NUMBER = auto()  # the same in every iteration
    SIZES = auto()
    CONSTANT = auto()  # a dtype, a device, a string


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads what one iteration computes; raises RefusedError where vmap could not. `names` are those of a function of
    the file, None in the loop itself."""

    lifter: Lifter
    names: Mapping[str, Made] | None = None
    depth: int = 0

    def of(self, node: cst.BaseExpression) -> Made:
        if self.names is None and not self.lifter.varies(node):
            return self._invariant(node)
        match node:
            case cst.Name():
                return self._name(node)
            case cst.BaseNumber():
                return Made.NUMBER
            case cst.SimpleString():
                return Made.CONSTANT
            case cst.Subscript():
                return self._subscript(node)
            case cst.Attribute():
                return self._attribute(node)
            case cst.Call():
                return self._call(node)
            case cst.BinaryOperation(left=left, right=right):
                return self._together(node, left, right)
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator, right)]):
                if isinstance(operator, _COMPARED):
                    return self._together(node, left, right)
            case cst.UnaryOperation(operator=cst.Minus() | cst.Plus() | cst.BitInvert(), expression=inner):
                return self._together(node, inner)
        raise self._refused(node)

    def tensor(self, node: cst.BaseExpression) -> None:
        if self.of(node) is not Made.TENSOR:
            raise RefusedError(f"`{self.lifter.code(node)}` is not known to be a tensor")

    def computed(self, node: cst.Call) -> None:
        """Refuses a call that is not known to compute a tensor, whether it varies or not."""
        if self._call(node) is not Made.TENSOR:
            raise self._refused(node)

    def _refused(self, node: cst.CSTNode) -> RefusedError:
        return RefusedError(f"`{self.lifter.code(node)}` has no batched form")

    # names and their parts

    def _invariant(self, node: cst.BaseExpression) -> Made:
        if isinstance(node, cst.SimpleString) or self.lifter.code(node) in ("None", "True", "False"):
            return Made.CONSTANT
        if isinstance(node, (cst.Tuple, cst.List)):
            return self._all_of(node)
        lifted = self.lifter.invariant(node)
        if lifted.number:
            return Made.NUMBER
        return Made.TENSOR if lifted.tensor else Made.CONSTANT

    def _name(self, node: cst.Name) -> Made:
        if self.names is not None:
            return self._name_of_function(node, self.names)
        row = self.lifter.lift(node)
        if row.counts:
            raise RefusedError(f"the value of the index in `{node.value}` is used")
        if row.number:
            return Made.NUMBER
        return Made.TENSORS if row.pair else self._row(node)

    def _name_of_function(self, node: cst.Name, names: Mapping[str, Made]) -> Made:
        if node.value in names:
            return names[node.value]
        if node.value in ("None", "True", "False"):
            return Made.CONSTANT
        binding = self.lifter.model.binding(node)
        if binding is not None and len(binding.writes) == 1 and self.lifter.model.value(node).kind is Kind.NUMBER:
            return Made.NUMBER
        raise RefusedError(f"`{node.value}` may change between two calls")

    def _row(self, node: cst.BaseExpression) -> Made:
        self.lifter.certain(self.lifter.lift(node), node)
        return Made.TENSOR

    def _subscript(self, node: cst.Subscript) -> Made:
        if self.names is None and any(self.lifter.varies(element) for element in node.slice):
            return self._row(node)
        of = self.of(node.value)
        for element in node.slice:
            for bound in _bounds(element.slice):
                if self.of(bound) not in (Made.NUMBER, Made.CONSTANT):
                    raise self._refused(node)
        if of is Made.TENSOR:
            return of
        first = self.lifter.code(node.slice[0])
        if of is Made.SIZES and isinstance(node.slice[0].slice, cst.Index):
            return Made.NUMBER
        if (of is Made.TENSORS and first in ("0", "1")) or (of is Made.SORTED and first == "0"):
            return Made.TENSOR
        raise self._refused(node)

    def _attribute(self, node: cst.Attribute) -> Made:
        if (self.lifter.model.qualified(node) or "").startswith("torch."):
            return Made.CONSTANT
        of, name = self.of(node.value), node.attr.value
        if of is Made.TENSORS or (of is Made.SORTED and name == "values") or (of is Made.TENSOR and name in _TURNED):
            return Made.TENSOR
        known = {"shape": Made.SIZES, "ndim": Made.NUMBER, "dtype": Made.CONSTANT, "device": Made.CONSTANT}
        if of is Made.TENSOR and name in known:
            return known[name]
        raise self._refused(node)

    # operations

    def _together(self, node: cst.BaseExpression, *operands: cst.BaseExpression) -> Made:
        kinds = {self.of(operand) for operand in operands}
        if not kinds <= {Made.TENSOR, Made.NUMBER}:
            raise self._refused(node)
        return Made.TENSOR if Made.TENSOR in kinds else Made.NUMBER

    def _all_of(self, node: cst.Tuple | cst.List) -> Made:
        for element in node.elements:
            if isinstance(element, cst.StarredElement):
                raise self._refused(node)
            self.of(element.value)
        return Made.CONSTANT

    def _call(self, node: cst.Call) -> Made:
        model = self.lifter.model
        if any(argument.star for argument in node.args):
            raise RefusedError(f"the arguments of `{self.lifter.code(node.func)}` are not in sight")
        name = model.qualified(node.func) or ""
        if name == "builtins.len" and self.of(node.args[0].value) is Made.TENSOR:
            return Made.NUMBER
        if name.startswith("math.") or name in _NUMERIC:
            if all(self.of(argument.value) is Made.NUMBER for argument in node.args):
                return Made.NUMBER
            raise self._refused(node)
        own = model.call(node).target
        if own is not None:
            return self._function(node, own)
        return self._operation(node)

    def _operation(self, node: cst.Call) -> Made:
        operation = Operation.read(self.lifter, node)
        if operation.function is None and operation.name in (*_SIZES, "size"):
            self.tensor(operation.operands[0])
            return Made.NUMBER if operation.name in _SIZES or len(operation.operands) > 1 else Made.SIZES
        if (
            operation.name not in MAPPED
            or {"out", "return_indices"} & set(operation.keywords)
            or not operation.operands
        ):
            raise RefusedError(f"`{operation.code}` may do anything")
        if called_module(self.lifter, node.func) is not None:
            raise self._refused(node)
        if self.names is not None and operation.name == "where":
            raise RefusedError(f"the dtype of `{self.lifter.code(node)}` is not known")
        of = [self._argument(operand) for operand in operation.operands]
        given = {name: self._argument(value) for name, value in operation.keywords.items()}
        if operation.name == "repeat_interleave" and Made.TENSOR in (*of[1:], *given.values()):
            raise RefusedError(f"how many elements `{operation.code}` makes is not in sight")
        self._learn(operation)
        if operation.function is None and of[0] is not Made.TENSOR:
            raise RefusedError(f"`{self.lifter.code(operation.operands[0])}` is not known to be a tensor")
        return _result(operation, of)

    def _argument(self, node: cst.BaseExpression) -> Made:
        if isinstance(node, (cst.Tuple, cst.List)):
            return self._all_of(node)
        return self.of(node)

    def _learn(self, operation: Operation) -> None:
        """Functions of torch take no array of numpy."""
        if self.names is None and operation.function is not None:
            claim = self.lifter.claim(operation.operands[0])
            if claim is not None:
                self.lifter.tensors.learn_tensor(claim)

    # functions of the file

    def _function(self, node: cst.Call, function: Function) -> Made:
        code = self.lifter.code(node.func)
        definition = function.node
        if self.depth >= _DEPTH or function.cls is not None or function.decorators or function.is_generator:
            raise RefusedError(f"`{code}` may do anything")
        if not isinstance(definition, cst.FunctionDef) or definition.asynchronous is not None:
            raise RefusedError(f"`{code}` may do anything")
        names = self._parameters(node, definition.params, code)
        inside = Reader(self.lifter, names, self.depth + 1)
        *before, last = list(statements(definition.body)) or [cst.Pass()]
        for statement in before:
            inside.assign(statement, names, code)
        if not isinstance(last, cst.Return) or last.value is None:
            raise RefusedError(f"`{code}` may do anything")
        return inside.of(last.value)

    def assign(self, statement: cst.CSTNode, names: dict[str, Made], code: str) -> None:
        match statement:
            case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()):
                return
            case cst.Assign(targets=[cst.AssignTarget(cst.Name(name))], value=value):
                names[name] = self.of(value)
            case _:
                raise RefusedError(f"`{code}` does more than compute")

    def _parameters(self, node: cst.Call, params: cst.Parameters, code: str) -> dict[str, Made]:
        listed = [*params.posonly_params, *params.params]
        starred = isinstance(params.star_arg, cst.Param) or params.star_kwarg is not None
        if starred or params.kwonly_params or len(node.args) > len(listed):
            raise RefusedError(f"the arguments of `{code}` are not in sight")
        names = {
            param.name.value: Made.NUMBER if isinstance(param.default, cst.BaseNumber) else Made.CONSTANT
            for param in listed
        }
        for param, argument in zip(listed, node.args):
            name = argument.keyword.value if argument.keyword is not None else param.name.value
            names[name] = self.of(argument.value)
        return names


class Mappable(NamedTuple):
    """A call that vmap can run. `views`: its result may be a part of an input. `never_empty`: it may fail for no rows.
    The rank is that of one iteration, None where nobody knows."""

    rank: Rank | None
    dtype: DType
    views: bool
    never_empty: bool


def check(lifter: Lifter, node: cst.Call) -> Mappable:
    """Refuses a call that is more than a computation of one tensor."""
    Reader(lifter).tensor(node)
    rank = Ranks(lifter).of(node)
    own = lifter.model.call(node).target
    if own is not None:
        return Mappable(rank, UNKNOWN_DTYPE, _views(lifter, own), never_empty=True)
    operation = Operation.read(lifter, node)
    entry = entry_of(lifter, node, operation)
    never_empty = any(_is_never_empty(lifter, part) for part in walk(node) if isinstance(part, cst.Call))
    if entry is None:
        return Mappable(rank, UNKNOWN_DTYPE, views=True, never_empty=never_empty)
    return Mappable(rank, _dtype(entry.dtype, lifter, operation.operands[0]), entry.may("view"), never_empty)


def _is_never_empty(lifter: Lifter, call: cst.Call) -> bool:
    name = lifter.model.qualified(call.func) or ""
    if lifter.model.call(call).target is not None or name.startswith("torch.fft."):
        return True
    short = call.func.attr.value if isinstance(call.func, cst.Attribute) else name.rpartition(".")[2]
    return short in NEVER_EMPTY


def _views(lifter: Lifter, function: Function) -> bool:
    """Whether what a function of the file returns may be a part of an input."""
    match function.returns[-1].value:
        case cst.BinaryOperation() | cst.UnaryOperation() | cst.Comparison():
            return False
        case cst.Call() as call if lifter.model.call(call).target is None:
            name = lifter.model.qualified(call.func)
            if name is None and isinstance(call.func, cst.Attribute):
                name = f"torch.Tensor.{call.func.attr.value}"
            entry = torch_api.lookup(name or "")
            return entry is None or entry.may("view")
    return True


def _dtype(made: str, lifter: Lifter, operand: cst.BaseExpression) -> DType:
    """The dtype of a result, from that of the first operand."""
    try:
        first = lifter.lift(operand)
    except RefusedError:
        return UNKNOWN_DTYPE
    if made == "same" and first.dtype.inexact:
        return first.dtype
    if made == "inexact" and not first.number:
        return first.dtype.inexact_result()
    return DType(None, "complex") if made == "complex" else UNKNOWN_DTYPE


def _result(operation: Operation, of: list[Made]) -> Made:
    if operation.name == "linalg.slogdet" or operation.name == "slogdet":
        return Made.TENSORS
    if operation.name not in SORTING:
        return Made.TENSOR
    along = len(of) > 1 and of[1] is not Made.TENSOR
    is_whole = operation.name in ("max", "min", "median") and not along and "dim" not in operation.keywords
    return Made.TENSOR if is_whole else Made.SORTED


def _bounds(index: cst.BaseSlice) -> Iterator[cst.BaseExpression]:
    if isinstance(index, cst.Index):
        if not isinstance(index.value, cst.Ellipsis):
            yield index.value
    elif isinstance(index, cst.Slice):
        yield from (bound for bound in (index.lower, index.upper, index.step) if bound is not None)
