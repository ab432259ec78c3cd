"""What is known of a tensor outside a loop."""

from __future__ import annotations

from dataclasses import dataclass

from torchlint.analyses.vectorize.shapes import UNKNOWN_DTYPE, Dimension, DType, Rank


@dataclass(frozen=True, slots=True)
class Facts:
    """`key` stands for its shape, the same at every place; `dims` are its dimensions where all are in sight.

    `fresh`: made by a call that returns memory of its own. `array`: a tensor, or an array of numpy. `front`: the first
    dimensions, where no more are in sight.
    """

    key: str
    rank: Rank
    tensor: bool = False
    number: bool = False
    dims: tuple[Dimension, ...] | None = None
    dtype: DType = UNKNOWN_DTYPE
    fresh: bool = False
    array: bool = False
    front: tuple[Dimension, ...] = ()

    def dimension(self, index: int) -> Dimension:
        if 0 <= index < len(self.front):
            return self.front[index]
        if self.dims is not None and -len(self.dims) <= index < len(self.dims):
            return self.dims[index]
        if index < 0 and self.rank.known is not None:
            index += self.rank.known
        return (f"{self.key}#{index}", 0)
