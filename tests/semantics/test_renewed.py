"""What an iteration of a loop leaves in a variable tells the next one nothing where that one writes it first."""

from __future__ import annotations

from textwrap import indent

import libcst as cst
import pytest

from torchlint.semantics.collecting import collect
from torchlint.semantics.renewed import is_renewed

WRITTEN_FIRST = {
    "an assignment": "x = f()\ng(x)",
    "one of several": "x, y = f()\nif y:\n    g(x)",
    "for a loop within": "for y in data:\n    x = f(y)\n    g(x)",
    "the variable of a loop within": "for x in data:\n    g(x)",
    "within a context": "with f():\n    x = f()\ng(x)",
    "before it is added to": "x = 0\nx += 1",
    "never read": "x = f()",
}
READ_FIRST = {
    "a read before": "g(x)\nx = f()",
    "of itself": "x = f(x)",
    "in one branch": "if y:\n    x = f()\ng(x)",
    "in a branch of one line": "if y: x = f()\ng(x)",
    "in a loop that may not run": "for y in data:\n    x = f(y)\ng(x)",
    "an addition": "x += 1",
    "what a function reads": "def later():\n    return x\nx = f()",
    "a declaration": "x: int\ng(x)",
    "a part": "x[0] = f()",
    "a deletion": "del x\nx = f()",
}


def _is_renewed(body: str) -> bool:
    scopes = collect(cst.parse_module(f"x = 0\nfor i in items:\n{indent(body, '    ')}\n"))
    return is_renewed(scopes.functions[0].scope.bindings["x"], scopes.loops[0], scopes)


@pytest.mark.parametrize("body", WRITTEN_FIRST.values(), ids=WRITTEN_FIRST)
def test_written_before_it_is_read(body: str) -> None:
    assert _is_renewed(body)


@pytest.mark.parametrize("body", READ_FIRST.values(), ids=READ_FIRST)
def test_read_before_it_is_written(body: str) -> None:
    assert not _is_renewed(body)


def test_a_read_behind_the_loop_is_not_of_the_loop() -> None:
    scopes = collect(cst.parse_module("for i in items:\n    x = f()\nprint(x)\n"))
    assert is_renewed(scopes.functions[0].scope.bindings["x"], scopes.loops[0], scopes)


def test_a_write_before_the_loop_is_none_of_its_iterations() -> None:
    scopes = collect(cst.parse_module("x = 0\nfor i in items:\n    g(x)\n"))
    assert not is_renewed(scopes.functions[0].scope.bindings["x"], scopes.loops[0], scopes)
