"""A picture of curves as SVG, both axes logarithmic, without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 170, 40, 55
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#555555")  # told apart by colour-blind readers
Points = Sequence[tuple[float, float]]


def curves(title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> str:
    """An SVG document. All coordinates must be positive; each series is a curve with dots and its name at its end.

    Raises ValueError when there is no point.
    """
    points = [point for line in series.values() for point in line]
    if not points:
        raise ValueError("nothing to draw")
    x, y = _Axis([p[0] for p in points], _LEFT, WIDTH - _RIGHT), _Axis([p[1] for p in points], HEIGHT - _BOTTOM, _TOP)
    body = [
        f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>',
        f'<text x="{(_LEFT + WIDTH - _RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">'
        f"{escape(y_label)}</text>",
        *_grid(x, y),
        *(text for number, (name, line) in enumerate(series.items()) for text in _curve(number, name, line, x, y)),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *body, "</svg>"]) + "\n"


class _Axis:
    """Maps values between powers of ten to pixels."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self.low = math.floor(math.log10(min(values)))
        self.high = max(math.ceil(math.log10(max(values))), self.low + 1)
        self.start, self.end = start, end

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> Iterator[float]:
        return (10.0**power for power in range(self.low, self.high + 1))


def _grid(x: _Axis, y: _Axis) -> Iterator[str]:
    for value in x.ticks():
        at = f"{x.at(value):.1f}"
        yield f'<line x1="{at}" x2="{at}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}" stroke="#ddd"/>'
        yield f'<text x="{at}" y="{HEIGHT - _BOTTOM + 18}" text-anchor="middle">{value:g}</text>'
    for value in y.ticks():
        at = f"{y.at(value):.1f}"
        yield f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at}" y2="{at}" stroke="#ddd"/>'
        yield f'<text x="{_LEFT - 6}" y="{at}" text-anchor="end" dominant-baseline="middle">{value:g}</text>'


def _curve(number: int, name: str, line: Points, x: _Axis, y: _Axis) -> Iterator[str]:
    colour = _COLOURS[number % len(_COLOURS)]
    places = [(f"{x.at(a):.1f}", f"{y.at(b):.1f}") for a, b in line]
    if not places:
        return
    path = " ".join(f"{a},{b}" for a, b in places)
    yield f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>'
    for a, b in places:
        yield f'<circle cx="{a}" cy="{b}" r="3" fill="{colour}"/>'
    row = _TOP + 16 * (number + 1)
    yield f'<text x="{WIDTH - _RIGHT + 12}" y="{row}" fill="{colour}">{escape(name)}</text>'
