"""What the uses of a name that surely ran prove about the tensor or the number it holds."""

from __future__ import annotations

from itertools import takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.analyses.once import once_for_each
from torchlint.analyses.vectorize.reaching import Reaching
from torchlint.analyses.vectorize.vocabulary import COUNTING_FUNCTIONS, PROVING_FUNCTIONS, SHAPED
from torchlint.semantics.tree import integer, is_name

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Write
    from torchlint.semantics.model import Model

_CONDITIONAL = (cst.BooleanOperation, cst.IfExp, cst.Lambda, cst.BaseComp)


class Proof(NamedTuple):
    """What one read of a variable says of it, if it runs."""

    read: cst.CSTNode
    of_tensor: bool
    of_array: bool
    rank: int | None
    least: int  # dimensions


def _known_proofs(_: Model) -> dict[Binding, dict[cst.CSTNode, list[tuple[int, Proof]]]]:
    return {}


@once_for_each
def _always_read_in(model: Model, read: cst.CSTNode) -> cst.CSTNode | None:
    """The statement of a read, whenever which runs the read does."""
    statement = model.statement(read)
    parts = takewhile(lambda part: part is not statement, model.ancestors(read))
    return None if any(isinstance(part, _CONDITIONAL) for part in parts) else statement


class Uses:
    """What the uses of a variable prove of it."""

    def __init__(self, model: Model, reaching: Reaching) -> None:
        self._model = model
        self._reaching = reaching

    def proofs(self, binding: Binding, place: cst.CSTNode) -> list[Proof]:
        """The reads of a variable that say something of it, of those that may surely run before a place: in the blocks
        that it is in."""
        known = self._model.once(_known_proofs)
        if binding not in known:
            known[binding] = self._by_block(binding)
        blocks = (place, *self._model.ancestors(place)) if known[binding] else ()
        found = (each for block in blocks for each in known[binding].get(block, ()))
        return [proof for _, proof in sorted(found, key=itemgetter(0))]

    def _by_block(self, binding: Binding) -> dict[cst.CSTNode, list[tuple[int, Proof]]]:
        found: dict[cst.CSTNode, list[tuple[int, Proof]]] = {}
        for number, read in enumerate(binding.reads):
            statement = _always_read_in(self._model, read)
            proof = Proof(read, self.proves_tensor(read), self.proves_array(read), *self.dimensions_used(read))
            if statement is not None and (any(proof[1:]) or proof.rank is not None):
                found.setdefault(self._reaching.block(statement), []).append((number, proof))
        return found

    def proves_tensor(self, read: cst.CSTNode) -> bool:
        """Whether a use takes tensors and nothing else."""
        argument = self._model.parent(read)
        call = self._model.parent(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call) or call.args[0] is not argument:
            return False
        return self._model.qualified(call.func) in PROVING_FUNCTIONS

    def proves_array(self, read: cst.CSTNode) -> bool:
        parent = self._model.parent(read)
        return isinstance(parent, cst.Attribute) and parent.value is read and parent.attr.value == "shape"

    def proves_integer(self, read: cst.CSTNode) -> bool:
        """Whether a use takes one integer: a bound of a range, one of several sizes."""
        argument = self._model.parent(read)
        call = self._model.parent(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call) or not isinstance(argument, cst.Arg) or argument.keyword or argument.star:
            return False
        name = self._model.qualified(call.func)
        several = sum(other.keyword is None for other in call.args) > 1
        return name in COUNTING_FUNCTIONS or (name in SHAPED and several)

    def surely_read(self, read: cst.CSTNode, write: Write, place: cst.CSTNode) -> bool:
        if self._model.function(read) is not self._model.function(place):
            return False
        if self._reaching.order(read) < self._reaching.order(write.target):
            return False
        statement = _always_read_in(self._model, read)
        return statement is not None and (statement is place or self._reaching.surely_before(statement, place))

    def dimensions_used(self, read: cst.CSTNode) -> tuple[int | None, int]:
        """(rank, at least how many dimensions) that a use of a tensor needs."""
        parent = self._model.parent(read)
        if isinstance(parent, cst.Subscript) and parent.value is read:
            return None, sum(_takes_dimension(element) for element in parent.slice)
        if not isinstance(parent, cst.Attribute) or parent.attr.value not in ("shape", "size"):
            return None, 0
        shape: cst.CSTNode | None = parent
        above = self._model.parent(parent)
        if parent.attr.value == "size":
            if not isinstance(above, cst.Call):
                return None, 0
            if above.args:
                return None, _needed(integer(above.args[0].value))
            shape, above = above, self._model.parent(above)
        if isinstance(above, cst.Subscript) and above.value is shape and len(above.slice) == 1:
            index = above.slice[0].slice
            return None, _needed(integer(index.value) if isinstance(index, cst.Index) else None)
        if isinstance(above, cst.Assign) and len(above.targets) == 1 and isinstance(above.targets[0].target, cst.Tuple):
            elements = above.targets[0].target.elements
            if not any(isinstance(element, cst.StarredElement) for element in elements):
                return len(elements), 0
        return None, 0


def _needed(index: int | None) -> int:
    return 0 if index is None else index + 1 if index >= 0 else -index


def _takes_dimension(element: cst.SubscriptElement) -> bool:
    index = element.slice
    if isinstance(index, cst.Slice):
        return True
    if not isinstance(index, cst.Index) or isinstance(index.value, cst.Ellipsis):
        return False
    return not is_name(index.value, "None")
