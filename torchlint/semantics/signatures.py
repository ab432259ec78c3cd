"""Which parameters of a function the arguments of a call fill, and what the others are then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import libcst as cst

from torchlint.semantics.entities import Function
from torchlint.semantics.transfer import Arguments
from torchlint.semantics.values import UNKNOWN, Grad, Kind, Place, Value


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function, and where the arguments of a call go."""

    positional: tuple[str, ...] = ()
    keyword_only: tuple[str, ...] = ()
    defaults: Mapping[str, cst.BaseExpression] = field(default_factory=dict)
    rest: str | None = None  # *args
    rest_by_name: str | None = None  # **kwargs

    @classmethod
    def of(cls, function: Function) -> Signature:
        if isinstance(function.node, cst.Module):
            return cls()
        params = function.node.params
        positional = [*params.posonly_params, *params.params]
        return cls(
            tuple(param.name.value for param in positional),
            tuple(param.name.value for param in params.kwonly_params),
            {p.name.value: p.default for p in (*positional, *params.kwonly_params) if p.default is not None},
            params.star_arg.name.value if isinstance(params.star_arg, cst.Param) else None,
            params.star_kwarg.name.value if params.star_kwarg is not None else None,
        )

    def filled(
        self, given: Arguments, defaults: Mapping[cst.BaseExpression, Value], *, bound: bool
    ) -> Iterator[tuple[str, Value]]:
        """Parameters with their values. Behind `*` and `**` that are out of sight may be anything."""
        names = self.positional[1:] if bound else self.positional
        seen = dict(zip(names, given.positional))
        named = {*names, *self.keyword_only}
        seen.update((name, value) for name, value in given.keywords.items() if name in named)
        yield from seen.items()
        for name in (*names, *self.keyword_only):
            if name not in seen and given.open:
                yield name, UNKNOWN
            elif name not in seen and name in self.defaults:
                yield from self._by_default(name, defaults)
        if self.rest is not None:
            extra = tuple(given.positional[len(names) :])
            yield self.rest, Value(Kind.TUPLE, items=None if given.open else extra)
        if self.rest_by_name is not None:
            others = tuple((name, value) for name, value in given.keywords.items() if name not in named)
            yield self.rest_by_name, Value(Kind.DICT, fields=None if given.open else others)

    def tells_more(self, given: Arguments, known: Mapping[str, Value], *, bound: bool) -> bool:
        """Whether a call gives a tensor of which more is said than is known of the parameter that it fills: what it is,
        whether it has a graph, where it is."""
        if given.open:
            return False
        filled = ((value, known.get(name)) for name, value in self.filled(given, {}, bound=bound) if value.is_tensor)
        return any(
            joined.kind is Kind.UNKNOWN
            or (value.grad is not Grad.UNKNOWN and joined.grad is not value.grad)
            or (value.place is not Place.UNKNOWN and joined.place is not value.place)
            for value, joined in filled
            if joined is not None
        )

    def _by_default(self, name: str, defaults: Mapping[cst.BaseExpression, Value]) -> Iterator[tuple[str, Value]]:
        """A default says what kind of thing a parameter is; None, or which number, is for callers to change."""
        value = defaults.get(self.defaults[name])
        if value is not None and value.kind is not Kind.NONE:
            yield name, value.but(constant=None) if value.kind is Kind.NUMBER else value
