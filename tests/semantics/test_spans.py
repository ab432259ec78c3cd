"""Spans are the same whichever statement they are asked of first, and nothing is printed that was not asked about."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.semantics.collecting import collect
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.spans import Spans
from torchlint.source import Source

PROGRAM = '''"""A docstring."""
# a comment of the module
import torch; import os


@torch.no_grad()  # a decorator
# between
@torch.compile(
    mode="max-autotune",
)
async def run(model, loader=(1,
                             2)):
    """Of a function."""

    # before the loop
    for batch in loader: print(batch)
    for (x,
         y) in loader:
        if x: y = (
            x +
            1
        )
        elif y:
            z = f"{x}é"  # with an accent
        else:
            \tz = 2; w = 3
        # at the end of the block
    with torch.no_grad(), open("a") as f:
      out = model(x)[0, ...]
    try:
        pass
    except (ValueError, TypeError) as e:
        raise RuntimeError from e
    finally:
        del x
  # less indented

class A(B): x: int = 3
class C:

    y = lambda self: (self.y)

(
    run(
        1)
)
if __name__ == "__main__":
    run(2)'''


def scopes_of(text: str) -> tuple[Scopes, Source]:
    source = Source.from_text(text)
    return collect(cst.parse_module(source.text)), source


def spans_of(scopes: Scopes, source: Source) -> Spans:
    return Spans(scopes.module, source.text, source.line_starts, scopes.parents)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("ending", ["", "\n", "\n\n# the end\n", "\n    \n        "])
def test_each_node_stands_where_printing_the_whole_module_puts_it(newline: str, ending: str) -> None:
    scopes, source = scopes_of((PROGRAM + ending).replace("\n", newline))
    whole = spans_of(scopes, source)
    whole._print_all()
    assert len(scopes.parents) > 150
    for node in scopes.parents:
        assert spans_of(scopes, source)[node] == whole[node], type(node)


def test_only_the_statement_around_a_node_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    def everything(spans: Spans) -> None:
        raise AssertionError("the whole module was printed")

    monkeypatch.setattr(Spans, "_print_all", everything)
    scopes, source = scopes_of(PROGRAM)
    spans = spans_of(scopes, source)
    node = next(
        call.node for call in scopes.calls if isinstance(call.node.func, cst.Name) and call.node.func.value == "model"
    )
    start, end = spans[node]
    assert source.text[start:end] == "model(x)"
    printed = {source.text[slice(*span)] for span in spans._found.values()}
    assert "out = model(x)[0, ...]" in printed
    assert not any("RuntimeError" in text for text in printed)


def test_of_a_compound_statement_only_the_ends_are_printed() -> None:
    scopes, source = scopes_of(PROGRAM)
    spans = spans_of(scopes, source)
    function = scopes.functions[1].node
    assert isinstance(function, cst.FunctionDef)
    for node in (function, function.body):
        start, end = spans[node]
        assert source.text[:start].endswith(")\n" if node is function else ":\n    ")
        assert source.text[start:end].endswith("del x")
    assert not any(isinstance(node, cst.Call) for node in spans._found)


def test_a_module_that_the_interpreter_reads_otherwise_is_printed_as_a_whole() -> None:
    scopes, source = scopes_of(PROGRAM)
    spans = Spans(scopes.module, source.text, [start + 1 for start in source.line_starts], scopes.parents)
    node = scopes.calls[0].node
    assert source.text[slice(*spans[node])] == "print(batch)"
    assert scopes.functions[1].node in spans._found


def test_the_whole_module_is_not_printed_to_know_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spans, "_print_all", lambda spans: pytest.fail("the whole module was printed"))
    scopes, source = scopes_of(PROGRAM)
    assert spans_of(scopes, source)[scopes.module] == (0, len(source.text))
