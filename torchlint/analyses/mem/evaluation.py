"""An evaluation that records a graph, and how much of its function is to run without."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call


class Extent(Enum):
    """How much of a function is to run without gradients."""

    FUNCTION = "function"  # all the function does is evaluate
    BLOCK = "block"  # one statement of a function that also trains, or of a script
    PHASE = "phase"  # code that trains in one phase and evaluates in the other
    PART = "part"  # a forward pass in a statement that has gradients to record


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`region` is the def or statement that should run without gradients, `phase` the code of the condition under which
    it trains.

    `others` are the further forward passes in the region. `bare` is a `torch.no_grad()` that is called and dropped,
    which does nothing.
    """

    forward: Call
    extent: Extent
    region: cst.CSTNode
    certain: bool
    others: tuple[Call, ...] = ()
    phase: str | None = None
    bare: cst.CSTNode | None = None

    def covers(self, call: Call) -> bool:
        return self.extent is Extent.FUNCTION or call in (self.forward, *self.others)

    @property
    def place(self) -> cst.CSTNode:
        """Where to point: a function that only evaluates, otherwise the forward pass."""
        return self.region if isinstance(self.region, cst.FunctionDef) else self.forward.node
