"""Notebooks: cells as one program, IPython's syntax set aside, edits back into the JSON."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from torchlint.finding import Edit
from torchlint.notebook import set_magics_aside
from torchlint.source import Source, UnreadableSourceError

PATH = Path("study.ipynb")


def notebook(*cells: str | list[str], indent: int | None = 1, **metadata: Any) -> bytes:
    entries: list[dict[str, Any]] = [{"cell_type": "markdown", "metadata": {}, "source": ["# torch\n"]}]
    code = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    entries += [{**code, "source": source} for source in cells]
    document = {"cells": entries, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=indent, ensure_ascii=False).encode() + b"\n"


def edit(source: Source, old: str, new: str) -> Edit:
    start = source.text.index(old)
    return Edit(start, start + len(old), new)


def test_code_cells_are_one_program_and_offsets_name_the_cell() -> None:
    source = Source.from_bytes(notebook(["import torch\n", "x = 1"], "y = 2"), PATH)
    assert source.text == "import torch\nx = 1\ny = 2\n"
    assert source.locate(source.text.index("x")) == (1, 2, 1)
    assert source.locate(source.text.index("y")) == (2, 1, 1)


@pytest.mark.parametrize("indent", [None, 1, 4], ids=["on one line", "as jupyter writes", "indented by four"])
@pytest.mark.parametrize("as_list", [True, False], ids=["lines", "text"])
def test_an_edit_leaves_the_rest_of_the_document_byte_for_byte(indent: int | None, as_list: bool) -> None:
    cells: list[str | list[str]] = [["a = 'ä'\n", "b = 2\n", "c"], ["d"]] if as_list else ["a = 'ä'\nb = 2\nc", "d"]
    before = notebook(*cells, indent=indent)
    source = Source.from_bytes(before, PATH)
    after = source.apply([edit(source, "b = 2", "b = 'ö'")])
    assert after.data == before.replace(b"b = 2", "b = 'ö'".encode())
    assert after.text == source.text.replace("b = 2", "b = 'ö'")


def test_lines_are_added_in_the_layout_of_the_document() -> None:
    source = Source.from_bytes(notebook(["a\n", "b"]), PATH)
    start = source.text.index("b")
    after = source.apply([Edit(start, start, "new\n")])
    assert after.data == notebook(["a\n", "new\n", "b"])


def test_a_cell_of_one_line_grows() -> None:
    after = Source.from_bytes(notebook(["b"]), PATH).apply([Edit(0, 0, "a\n")])
    assert json.loads(after.data)["cells"][1]["source"] == ["a\n", "b"]


def test_escapes_of_an_ascii_document_stay() -> None:
    before = json.dumps(json.loads(notebook(["a = 'ä'\n", "b = 1"]))).encode()
    source = Source.from_bytes(before, PATH)
    assert source.apply([edit(source, "b = 1", "b = 2")]).data == before.replace(b"b = 1", b"b = 2")


def test_edits_across_cells_and_in_magics_are_not_accepted() -> None:
    source = Source.from_bytes(notebook(["%matplotlib inline\n", "x = 1"], "y = 2"), PATH)
    assert source.objection([edit(source, "x = 1", "x = 2")]) is None
    assert source.objection([edit(source, "x = 1", "x = 2"), edit(source, "y = 2", "y = 3")]) is None
    assert source.objection([edit(source, "1\ny", "z")]) is not None
    assert source.objection([edit(source, "pass#", "z")]) is not None


def test_an_edit_next_to_a_magic_keeps_the_magic() -> None:
    source = Source.from_bytes(notebook(["%matplotlib inline\n", "x = 1"]), PATH)
    after = source.apply([edit(source, "x = 1", "x = 2")])
    assert json.loads(after.data)["cells"][1]["source"] == ["%matplotlib inline\n", "x = 2"]


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param("%matplotlib inline\nx = 1", id="line magic"),
        pytest.param("!pip install torch\nx = 1", id="shell"),
        pytest.param("!pip install \\\n   torch\nx = 1", id="shell over two lines"),
        pytest.param("if a:\n    !ls\nx = 1", id="shell as the only body"),
        pytest.param("if a:\n    %cd ..\nelse:\n    !ls", id="indented"),
        pytest.param("files = !ls *.pt\nx = files", id="assigned shell"),
        pytest.param("t = %timeit -o f()", id="assigned magic"),
        pytest.param("torch.zeros?\nx = 1", id="help after"),
        pytest.param("?torch.zeros", id="help before"),
        pytest.param("pip install -q torch\nx = 1", id="magic without its sign"),
        pytest.param("cd ../data\nls data", id="two of them"),
        pytest.param("%%bash\necho 'a\nfor x in y; do", id="cell magic of another language"),
        pytest.param("%%time\nx = 1", id="cell magic around python"),
        pytest.param("\n%%capture out\n%cd x\ny = 1", id="both"),
        pytest.param("x = (1\n% 2)\n!ls", id="modulo at the start of a line"),
        pytest.param("x = '''\n!not a command\n'''\n!ls", id="text in a string"),
        pytest.param("!a\n!b\n%c\n%", id="shorter than a statement"),
        pytest.param("await f()\n!ls", id="await at the top"),
    ],
)
def test_magics_become_python_of_the_same_shape(cell: str) -> None:
    text, spans = set_magics_aside(cell)
    compile(text, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert [len(line) for line in text.split("\n")] == [len(line) for line in cell.split("\n")]
    kept = [(a, b) for i, (a, b) in enumerate(zip(text, cell)) if not any(s <= i < e for s, e in spans) and a != b]
    assert kept == []


LINES = st.lists(
    st.sampled_from(
        ["%a b", "!ls \\", "x?", "'''", "(", ")", "x = 1", "  !", "#", "", "%%time", "ä = !b", "'\\"],
    )
)


@settings(max_examples=200, deadline=None)
@given(st.one_of(LINES.map("\n".join), st.text(max_size=80)))
def test_whatever_a_cell_holds_its_shape_stays(cell: str) -> None:
    text, spans = set_magics_aside(cell)
    assert len(text) == len(cell)
    assert [i for i, c in enumerate(text) if c in "\r\n"] == [i for i, c in enumerate(cell) if c in "\r\n"]
    assert all(0 <= start <= end <= len(cell) for start, end in spans)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=3), st.sampled_from([None, 1, 3]), st.booleans())
def test_whatever_a_cell_holds_it_comes_back(sources: list[str], indent: int | None, as_lines: bool) -> None:
    cells: list[str | list[str]] = [source.splitlines(keepends=True) if as_lines else source for source in sources]
    before = Source.from_bytes(notebook(*cells, indent=indent), PATH)
    start = before.cells[-1].start
    edits = [Edit(start, start, "new")]
    assume(before.objection(edits) is None)
    after, expected = json.loads(before.apply(edits).data), json.loads(before.data)
    assert "".join(after["cells"][-1]["source"]) == "new" + "".join(expected["cells"][-1]["source"])
    after["cells"][-1]["source"] = expected["cells"][-1]["source"]
    assert after == expected


def test_python_is_left_alone() -> None:
    cell = "x = 5 % 3\ny = x != 2\nprint('what?')\ntime -x\nrun = ls\nls in [1]\ntime if x else y\n"
    assert set_magics_aside(cell) == (cell, ())


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="broken"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b"\xff\xfe{}", id="another encoding"),
        pytest.param(b"[" * 100_000, id="nested without end"),
    ],
)
def test_what_is_no_notebook(data: bytes) -> None:
    with pytest.raises(UnreadableSourceError, match="notebook"):
        Source.from_bytes(data, PATH)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"{}", id="no cells"),
        pytest.param(b'{"cells": 3}', id="cells of another kind"),
        pytest.param(b'{"cells": [1, null, {}, {"cell_type": "code", "source": 3}]}', id="odd cells"),
        pytest.param(notebook("x <- 1", kernelspec={"language": "R"}), id="another language"),
    ],
)
def test_notebooks_without_python(data: bytes) -> None:
    assert Source.from_bytes(data, PATH).text == ""
