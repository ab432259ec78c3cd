"""Tabs and spaces in one indentation, which Python accepts and LibCST cannot represent."""

from __future__ import annotations

import ast

import libcst as cst
import pytest

from torchlint.engine import lint
from torchlint.indentation import with_nested_indentation
from torchlint.source import Source

TABS_AND_SPACES = """
import torch

def infer(model, images, path, cuda):
\tmodel.load_state_dict(torch.load(path))
\tfor image in images:
\t  if cuda:
\t\t  image = image.cuda()
\t  with torch.no_grad():
\t\t  print(model(image).data.cpu())
\treturn model
"""
TAB_UNDER_SPACES = """
def show(words):
        for word in words:
            with open(word) as file:
\t                file.write(word)
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(TABS_AND_SPACES, id="spaces below tabs"),
        pytest.param(TAB_UNDER_SPACES, id="a tab below spaces"),
        pytest.param(TABS_AND_SPACES.replace("\n", "\r\n"), id="crlf"),
        pytest.param(TABS_AND_SPACES + '\ttext = """\n\ttab"""\n\tx = [\n\t\t  1,\n\t]\n', id="a string with a tab"),
        pytest.param(TABS_AND_SPACES.rstrip("\n"), id="no final newline"),
    ],
)
def test_blocks_and_places_stay_the_same(text: str) -> None:
    with pytest.raises(cst.ParserSyntaxError):
        cst.parse_module(text)
    nested = with_nested_indentation(text)
    assert cst.parse_module(nested).code.rstrip() == nested.rstrip()
    assert ast.dump(ast.parse(nested)) == ast.dump(ast.parse(text))
    assert [a == b or (a, b) == ("\t", " ") for a, b in zip(text, nested, strict=True)] == [True] * len(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("if a:\n\tif b:\n\t\tc = '''\n  d'''\n\te\n", id="tabs only"),
        pytest.param("if a:\n  if b:\n  \tc\n  d\n", id="tabs behind the spaces of the block around"),
        pytest.param("if a:\n        b\n\tc\n", id="what Python refuses"),
        pytest.param("if a:\n\tif b:\n\t  c\n\t\t d\n", id="what Python refuses, too"),
    ],
)
def test_other_texts_are_left_alone(text: str) -> None:
    assert with_nested_indentation(text) == text


def test_a_fix_inside_a_line_keeps_every_tab() -> None:
    source = Source.from_bytes(TABS_AND_SPACES.encode(), Source.from_text("").path)
    finding = next(finding for finding in lint(source, strict=True) if finding.code == "TRAIN10")
    assert (finding.line, finding.column) == (10, 11)
    assert finding.fix is not None
    fixed = source.apply(finding.fix.edits)
    assert fixed.data.decode() == TABS_AND_SPACES.replace(".data", "")
    assert fixed.is_reindented


def test_a_fix_that_writes_lines_is_refused_with_a_reason() -> None:
    text = TABS_AND_SPACES.replace("print(model(image).data.cpu())", "loss = model(image)\n\t\t  print(loss.item())")
    text = text.replace("with torch.no_grad()", "with open(path)").replace("\treturn model", "\treturn 1")
    with_fix = next(f for f in lint(Source.from_text(text.replace("\t", "        "))) if f.code == "MEM05")
    assert with_fix.fix is not None
    finding = next(f for f in lint(Source.from_bytes(text.encode(), Source.from_text("").path)) if f.code == "MEM05")
    assert finding.fix is None
    assert finding.no_fix == "the fix writes lines of its own, and the file mixes tabs and spaces in its indentation"
