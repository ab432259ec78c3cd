"""How many dimensions a result has that `torch.vmap` computes: of one iteration, as the functions in it say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize.operation import Operation
from torchlint.analyses.vectorize.shapes import SCALAR, Rank, RefusedError
from torchlint.analyses.vectorize.sizes import shape_owner
from torchlint.semantics import torch_api
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter
    from torchlint.semantics.entities import Function

_DEPTH = 12
_SAME = ("real", "imag", "mT", "mH")
_CHANGE = re.compile(r"[+-]\d+")
_CONTRACTS = "tensordot"  # over as many dimensions as it is told


@dataclass(frozen=True, slots=True)
class Ranks:
    """`names` are those of a function of the file, None in the loop itself."""

    lifter: Lifter
    names: Mapping[str, Rank | None] | None = None

    def of(self, node: cst.BaseExpression, depth: int = 0) -> Rank | None:
        """None where nobody knows."""
        if depth > _DEPTH:
            return None
        if self._is_number(node):
            return SCALAR
        match node:
            case cst.BinaryOperation(left=left, operator=operator, right=right):
                if not isinstance(operator, cst.MatrixMultiply):
                    return self._widest([left, right], depth)
            case cst.UnaryOperation(expression=inner):
                return self.of(inner, depth + 1)
            case cst.Attribute(value=inner, attr=cst.Name(value=name)) if name in _SAME:
                return self.of(inner, depth + 1)
            case cst.Call():
                return self._of_call(node, depth)
        return self._plain(node)

    def _is_number(self, node: cst.BaseExpression) -> bool:
        """`r.shape[0]`, `math.sqrt(k)`, a number of the file."""
        if isinstance(node, cst.Name) and self.names is not None and node.value in self.names:
            return False
        return self.lifter.model.value(node).kind is Kind.NUMBER

    def _plain(self, node: cst.BaseExpression) -> Rank | None:
        if self.names is not None:
            return self.names.get(node.value) if isinstance(node, cst.Name) else None
        try:
            lifted = self.lifter.lift(node)
        except RefusedError:
            return None
        return SCALAR if lifted.number else lifted.rank

    def _widest(self, operands: list[cst.BaseExpression], depth: int) -> Rank | None:
        ranks = [self.of(operand, depth + 1) for operand in operands]
        known = [rank for rank in ranks if rank is not None]
        if len(known) < len(ranks):
            return None
        return next((one for one in known if all(other.at_most(one) for other in known)), None)

    def _of_call(self, node: cst.Call, depth: int) -> Rank | None:
        own = self.lifter.model.call(node).target
        if own is not None:
            return self._of_function(node, own, depth)
        try:
            operation = Operation.read(self.lifter, node)
        except RefusedError:
            return None
        entry = entry_of(self.lifter, node, operation)
        if entry is None or not operation.operands or operation.name == _CONTRACTS:
            return None
        if entry.rank == "broadcast":
            return self._widest(list(operation.operands), depth)
        if entry.rank == "reduce" and len(operation.operands) == 1 and not operation.keywords:
            return SCALAR
        if entry.rank.isdigit():
            return Rank(int(entry.rank))
        if entry.rank == "sized":
            return self._sized(operation, depth)
        change = int(entry.rank) if _CHANGE.fullmatch(entry.rank) else 0 if entry.rank == "keep" else None
        first = self.of(operation.operands[0], depth + 1) if change is not None else None
        return first.plus(change) if first is not None and change is not None else None

    def _sized(self, operation: Operation, depth: int) -> Rank | None:
        """Of `view` and the like, as many dimensions as sizes are given."""
        sizes = operation.operands[1:]
        if operation.keywords or not sizes:
            return None
        if len(sizes) > 1:
            return Rank(len(sizes))
        (only,) = sizes
        if isinstance(only, (cst.Tuple, cst.List)):
            starred = any(isinstance(element, cst.StarredElement) for element in only.elements)
            return None if starred else Rank(len(only.elements))
        owner = shape_owner(only)
        if owner is not None:
            return self.of(owner, depth + 1)
        return Rank(1) if self._is_number(only) else None

    def _of_function(self, node: cst.Call, function: Function, depth: int) -> Rank | None:
        """Of a function of assignments and one return."""
        definition = function.node
        assert isinstance(definition, cst.FunctionDef)
        listed = [*definition.params.posonly_params, *definition.params.params]
        names: dict[str, Rank | None] = {}
        for param, argument in zip(listed, node.args):
            name = argument.keyword.value if argument.keyword is not None else param.name.value
            names[name] = self.of(argument.value, depth + 1)
        inside = Ranks(self.lifter, names)
        for statement in statements(definition.body):
            match statement:
                case cst.Assign(targets=[cst.AssignTarget(cst.Name(name))], value=value):
                    names[name] = inside.of(value, depth + 1)
                case cst.Return(value=cst.BaseExpression() as value):
                    return inside.of(value, depth + 1)
        return None


def statements(body: cst.BaseSuite) -> Iterator[cst.CSTNode]:
    """What a block does, one by one."""
    for line in body.body:
        if isinstance(line, cst.SimpleStatementLine):
            yield from line.body
        else:
            yield line


def entry_of(lifter: Lifter, node: cst.Call, operation: Operation) -> torch_api.Entry | None:
    """What is known of a function or method of torch."""
    return torch_api.lookup(lifter.model.qualified(node.func) or f"torch.Tensor.{operation.name}")
