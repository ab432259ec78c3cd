"""Edits against the layouts that real files have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from tests.rewriting import EXPRESSION, STATEMENT, applied, first, model_of, rewritten
from torchlint.edits import spelling
from torchlint.edits.rewriter import Rewriter
from torchlint.semantics.tree import walk

APART = [
    pytest.param("a, b = f(a), g(b)\n", "a = f(a)\nb = g(b)\n", id="two"),
    pytest.param(
        "if c:\n    a, b = f(1), g(2)  # c\n", "if c:\n    # c\n    a = f(1)\n    b = g(2)\n", id="in a block"
    ),
    pytest.param("(a, b) = (f(a),\n          g(b))\n", "a = f(a)\nb = g(b)\n", id="in parentheses"),
    pytest.param("a, b = f(b), g(1)\n", "", id="reads what is written later"),
    pytest.param("a, b = f(1), g(a)\n", "", id="reads what is written before"),
    pytest.param("a, a = f(1), g(2)\n", "", id="one name twice"),
    pytest.param("a, b[0] = f(1), g(2)\n", "", id="no name"),
    pytest.param("a, *b = f(1), g(2)\n", "", id="starred"),
    pytest.param("a, b = f(1)\n", "", id="one value"),
    pytest.param("a, b = f(1), g(2); c = 1\n", "", id="not alone"),
    pytest.param("if c: a, b = f(1), g(2)\n", "", id="in a suite"),
    pytest.param("a, b = (f(1),  # one\n        g(2))\n", "", id="comment in between"),
]


@pytest.mark.parametrize(("text", "expected"), APART)
def test_assign_apart(text: str, expected: str) -> None:
    model = model_of(text)
    edits = Rewriter(model).assign_apart(first(model, "", cst.Assign))
    assert applied(text, edits or []) == (expected or text)


BEFORE = [
    pytest.param("a\nb\n", "b", "a\nz()\nb\n", id="module"),
    pytest.param("if c:\n    # why\n    b  # note\n", "b", "if c:\n    # why\n    z()\n    b  # note\n", id="comments"),
    pytest.param("if c:\n\tb\n", "b", "if c:\n\tz()\n\tb\n", id="tabs"),
    pytest.param("if c:\r\n  b\r\n", "b", "if c:\r\n  z()\r\n  b\r\n", id="CRLF and two spaces"),
    pytest.param("a; b; d\n", "b", "a\nz()\nb; d\n", id="second of three on a line"),
    pytest.param("a; b\n", "a", "z()\na; b\n", id="first of two on a line"),
    pytest.param("for i in x: a; b\n", "b", "for i in x: a; z(); b\n", id="one-line suite"),
    pytest.param("@d\n# c\n@e\ndef f(): pass\n", "def f", "z()\n@d\n# c\n@e\ndef f(): pass\n", id="decorated"),
    pytest.param("if a:\n    x\nelif b:\n    y\n", "elif b", "z()\nif a:\n    x\nelif b:\n    y\n", id="elif"),
    pytest.param("if a:\n    x\nelse:\n    y\n", "y", "if a:\n    x\nelse:\n    z()\n    y\n", id="else"),
    pytest.param("with a as b, \\\n     c:\n    q\n", "with", "z()\nwith a as b, \\\n     c:\n    q\n", id="continued"),
]


@pytest.mark.parametrize(("text", "code", "expected"), BEFORE)
def test_insert_before(text: str, code: str, expected: str) -> None:
    assert rewritten(text, code, lambda r, node: r.insert_before(node, "z()")) == expected


def test_the_statement_of_an_expression_is_found() -> None:
    change = lambda r, node: r.insert_before(node, "z()")  # noqa: E731
    assert rewritten("x = f(\n    b,\n)\n", "b", change, EXPRESSION) == "z()\nx = f(\n    b,\n)\n"


AFTER = [
    pytest.param("a  # note\nb\n", "a", "a  # note\nz()\nb\n", id="trailing comment"),
    pytest.param("a;\nb\n", "a", "a;\nz()\nb\n", id="trailing semicolon"),
    pytest.param("a; b\n", "a", "a\nz()\nb\n", id="first of two on a line"),
    pytest.param("a; b  # c\n", "b", "a; b  # c\nz()\n", id="second of two on a line"),
    pytest.param("a", "a", "a\nz()", id="no line end"),
    pytest.param("a # c", "a", "a # c\nz()", id="no line end, comment"),
    pytest.param("if c: a; b\n", "a", "if c: a; z(); b\n", id="one-line suite"),
    pytest.param("if c: a; b;\n", "b", "if c: a; b; z();\n", id="one-line suite, last"),
    pytest.param("x = f('#',\n  1)  # c\nb\n", "x", "x = f('#',\n  1)  # c\nz()\nb\n", id="statement over lines"),
    pytest.param(
        "for i in x:\n    a\n    # in\n# out\nb\n", "for", "for i in x:\n    a\n    # in\nz()\n# out\nb\n", id="block"
    ),
    pytest.param(
        "for i in x:\n    a\n\n    # in\n\nb\n", "for", "for i in x:\n    a\n\n    # in\nz()\n\nb\n", id="blank lines"
    ),
    pytest.param(
        "for i in x:\n    if i:\n        a\n    b\n",
        "if i",
        "for i in x:\n    if i:\n        a\n    z()\n    b\n",
        id="inner",
    ),
    pytest.param("for i in x: a  # c\nb\n", "for", "for i in x: a  # c\nz()\nb\n", id="one-line loop"),
    pytest.param("x = 1 + \\\n  2 \nb\n", "x", "x = 1 + \\\n  2 \nz()\nb\n", id="continued line"),
    pytest.param(
        "if a:\r\n\tx\r\nelse:\r\n\ty\r\nb\r\n", "if", "if a:\r\n\tx\r\nelse:\r\n\ty\r\nz()\r\nb\r\n", id="CRLF, tabs"
    ),
]


@pytest.mark.parametrize(("text", "code", "expected"), AFTER)
def test_insert_after(text: str, code: str, expected: str) -> None:
    assert rewritten(text, code, lambda r, node: r.insert_after(node, "z()")) == expected


def test_a_block_cannot_join_a_one_line_suite() -> None:
    change = lambda r, node: r.insert_before(node, "if s:", "    z()")  # noqa: E731
    expected = "for i in x:\n  a\n  if s:\n    z()\n  b  # c\nif q:\n  p\n"
    assert rewritten("for i in x: a; b  # c\nif q:\n  p\n", "b", change) == expected


def test_lines_of_a_block_come_out_in_the_indentation_of_the_file() -> None:
    change = lambda r, node: r.insert_before(node, "if s:", "    z()")  # noqa: E731
    assert rewritten("if a:\n\tb\n", "b", change) == "if a:\n\tif s:\n\t\tz()\n\tb\n"


PREPEND = [
    pytest.param("for i in x:\n    a\n", "for", "for i in x:\n    z()\n    a\n", id="loop"),
    pytest.param(
        "for i in x:  # c\n\n    # d\n    a\n", "for", "for i in x:  # c\n    z()\n\n    # d\n    a\n", id="comments"
    ),
    pytest.param("for i in x: a; b\n", "for", "for i in x: z(); a; b\n", id="one-line suite"),
    pytest.param("def f():\n    '''d'''\n    a\n", "def", "def f():\n    '''d'''\n    z()\n    a\n", id="docstring"),
    pytest.param(
        "def f():\n    '''d'''; a\n", "def", "def f():\n    '''d'''\n    z()\n    a\n", id="docstring on a line"
    ),
    pytest.param("def f(): 'd'\n", "def", "def f(): 'd'; z()\n", id="only a docstring"),
    pytest.param(
        "for i in x:\n    'd'\n", "for", "for i in x:\n    z()\n    'd'\n", id="a string in a loop is no docstring"
    ),
    pytest.param(
        "for i in x:\n    # c\n    @d\n    def f(): pass\n",
        "for",
        "for i in x:\n    z()\n    # c\n    @d\n    def f(): pass\n",
        id="def",
    ),
    pytest.param(
        "for i in x:\r\n\r\n\t# d\r\n\ta\r\n", "for", "for i in x:\r\n\tz()\r\n\r\n\t# d\r\n\ta\r\n", id="CRLF"
    ),
    pytest.param(
        "for i in f(\n    a,\n):\n    b\n", "for", "for i in f(\n    a,\n):\n    z()\n    b\n", id="header over lines"
    ),
]


@pytest.mark.parametrize(("text", "code", "expected"), PREPEND)
def test_prepend_to_body(text: str, code: str, expected: str) -> None:
    assert rewritten(text, code, lambda r, node: r.prepend_to_body(node, "z()")) == expected


REMOVE = [
    pytest.param("a\nb\nc\n", "b", "a\nc\n", id="line"),
    pytest.param("# w\na\nb  # c\n", "a", "# w\nb  # c\n", id="comment above stays"),
    pytest.param("if x:\n    a\n    b  # c\n", "b", "if x:\n    a\n    # c\n", id="comment behind stays"),
    pytest.param("if x:\n    b  # c\n", "b", "if x:\n    pass  # c\n", id="only statement of a block"),
    pytest.param("if x: b\n", "b", "if x: pass\n", id="only statement of a suite"),
    pytest.param("a; b; c\n", "b", "a; c\n", id="second of three"),
    pytest.param("a; b; c\n", "c", "a; b\n", id="last of three"),
    pytest.param("a; b; c\n", "a", "b; c\n", id="first of three"),
    pytest.param("x = f(\n  1,\n)\nb\n", "x", "b\n", id="statement over lines"),
    pytest.param("if x:\n    b\n\n    c\n", "b", "if x:\n    c\n", id="first of a block"),
    pytest.param("if x:\n    a\n    b\n\n    c\n", "b", "if x:\n    a\n\n    c\n", id="second of a block"),
    pytest.param(
        "if x:  # y:\n    # z:\n    b\n\n    c\n", "b", "if x:  # y:\n    # z:\n\n    c\n", id="under a comment"
    ),
    pytest.param("b\n\n\na\n", "b", "a\n", id="first of a file"),
    pytest.param("a\nb", "b", "a\n", id="no line end"),
    pytest.param("a\r\nb\r\nc\r\n", "b", "a\r\nc\r\n", id="CRLF"),
]


@pytest.mark.parametrize(("text", "code", "expected"), REMOVE)
def test_remove_statement(text: str, code: str, expected: str) -> None:
    assert rewritten(text, code, lambda r, node: r.remove_statement(node)) == expected


def test_a_compound_statement_is_not_removed() -> None:
    model = model_of("for i in x:\n    a\n")
    assert Rewriter(model).remove_statement(first(model, "for", STATEMENT)) is None


CONDITIONS = [
    pytest.param("x\nif q:\n    f()\ny\n", "x\ny\n", id="the condition goes too"),
    pytest.param("x\nif q: f()\ny\n", "x\ny\n", id="on one line"),
    pytest.param("x\nif q:\n    f()\n    g()\n", "x\nif q:\n    g()\n", id="more in the block"),
    pytest.param("x\nif q:\n    f(); g()\n", "x\nif q:\n    g()\n", id="more on the line"),
    pytest.param("x\nif q:\n    f()\nelse:\n    g()\n", "x\nif q:\n    pass\nelse:\n    g()\n", id="other branch"),
    pytest.param("x\nif q:  # why\n    f()\n", "x\nif q:  # why\n    pass\n", id="comment"),
    pytest.param("while a:\n    if q:\n        f()\n", "while a:\n    if q:\n        pass\n", id="nothing else there"),
    pytest.param("while a:\n    f()\n    b\n", "while a:\n    b\n", id="no condition"),
]


@pytest.mark.parametrize(("before", "after"), CONDITIONS)
def test_remove_with_condition(before: str, after: str) -> None:
    model = model_of(before)
    call = next(call.node for call in model.calls if model.code(call.node) == "f()")
    edit = Rewriter(model).remove_with_condition(call)
    assert edit is not None
    assert applied(before, [edit]) == after


UNDER = [
    pytest.param("for i in x:\n    a\nb\n", "for", "with w:\n    for i in x:\n        a\nb\n", id="loop"),
    pytest.param("a; b  # c\n", "a; b", "with w:\n    a; b  # c\n", id="simple statements"),
    pytest.param(
        "if q:\n\t# c\n\tfor i in x:\n\t\ta\n\t# d\n",
        "for",
        "if q:\n\t# c\n\twith w:\n\t\tfor i in x:\n\t\t\ta\n\t# d\n",
        id="tabs",
    ),
    pytest.param(
        "for i in x:\n    a\n\n    # d\n    b\nc\n",
        "for",
        "with w:\n    for i in x:\n        a\n\n        # d\n        b\nc\n",
        id="blank lines",
    ),
    pytest.param(
        "for i in x:\n    a = '''\n  s\n'''\n    b\n",
        "for",
        "with w:\n    for i in x:\n        a = '''\n  s\n'''\n        b\n",
        id="string over lines",
    ),
    pytest.param(
        "for i in x:\n    a = f'''\n  {s}\n'''\n",
        "for",
        "with w:\n    for i in x:\n        a = f'''\n  {s}\n'''\n",
        id="f-string over lines",
    ),
    pytest.param(
        "for i in x:\n    a\n    '''\n    s\n\n  t'''\n    b\n",
        "for",
        "with w:\n    for i in x:\n        a\n        '''\n        s\n\n      t'''\n        b\n",
        id="code that is taken out by a string",
    ),
    pytest.param(
        "for i in x:\n    def f():\n        '''s\n        t'''\n",
        "for",
        "with w:\n    for i in x:\n        def f():\n            '''s\n        t'''\n",
        id="docstring over lines",
    ),
    pytest.param(
        "for i in x:\r\n  a(1,\r\n2)\r\n",
        "for",
        "with w:\r\n  for i in x:\r\n    a(1,\r\n  2)\r\n",
        id="CRLF, less indented line",
    ),
    pytest.param(
        "if q:\n    a\n    # end\nb\n",
        "if",
        "with w:\n    if q:\n        a\n        # end\nb\n",
        id="comment at the end",
    ),
    pytest.param(
        "if q:\n    a\ndef f():\n  for i in x:\n    for j in i:\n      a\n",
        "for j",
        "if q:\n    a\ndef f():\n  for i in x:\n    with w:\n      for j in i:\n        a\n",
        id="a function of other indentation",
    ),
    pytest.param("@d\ndef f():\n    a\n", "def", "with w:\n    @d\n    def f():\n        a\n", id="decorated"),
    pytest.param("for i in x: a", "for", "with w:\n    for i in x: a", id="no line end"),
    pytest.param(
        "if q:\n    x = 1 + \\\n 2\n", "x", "if q:\n    with w:\n        x = 1 + \\\n     2\n", id="continued line"
    ),
]


@pytest.mark.parametrize(("text", "code", "expected"), UNDER)
def test_indent_under(text: str, code: str, expected: str) -> None:
    assert rewritten(text, code, lambda r, node: r.indent_under([node], "with w:"), cst.BaseStatement) == expected


def test_neighbours_go_under_one_header() -> None:
    text = "def f():\n    a\n    # c\n\n    b\n    d\n"
    model = model_of(text)
    edits = Rewriter(model).indent_under(model.module.body[0].body.body[:2], "with w:")
    assert edits is not None
    assert applied(text, edits) == "def f():\n    with w:\n        a\n        # c\n\n        b\n    d\n"


def test_a_whole_suite_becomes_a_block() -> None:
    text = "for i in x: a; b;  # c\n"
    model = model_of(text)
    edits = Rewriter(model).indent_under(model.module.body[0].body.body, "with w:")
    assert edits is not None
    assert applied(text, edits) == "for i in x:\n    with w:\n        a\n        b  # c\n"


def test_part_of_a_line_is_not_indented() -> None:
    model = model_of("a; b\n")
    assert Rewriter(model).indent_under(model.module.body[0].body[:1], "with w:") is None


DECORATE = [
    pytest.param("def f(): pass\n", "@n\ndef f(): pass\n", id="plain"),
    pytest.param(
        "class A:\n  @d\n  # c\n  def f(self):\n    pass\n",
        "class A:\n  @d\n  # c\n  @n\n  def f(self):\n    pass\n",
        id="innermost",
    ),
    pytest.param("if x:\n\tasync def f(): pass\n", "if x:\n\t@n\n\tasync def f(): pass\n", id="async"),
]


@pytest.mark.parametrize(("text", "expected"), DECORATE)
def test_decorate(text: str, expected: str) -> None:
    assert rewritten(text, "", lambda r, node: r.decorate(node, "@n"), cst.FunctionDef) == expected


OPERATIONS = [
    pytest.param(lambda r, n: r.insert_before(n, "if z:", "    z()"), id="insert_before"),
    pytest.param(lambda r, n: r.insert_after(n, "if z:", "    z()"), id="insert_after"),
    pytest.param(lambda r, n: r.remove_statement(n) or [], id="remove_statement"),
    pytest.param(lambda r, n: r.indent_under([n], "with z:") or [], id="indent_under"),
]
LINE_ENDS = [pytest.param("\n", id="LF"), pytest.param("\r\n", id="CRLF")]


@pytest.mark.parametrize("newline", LINE_ENDS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_statement_of_a_real_file_can_be_rewritten(operation: Any, newline: str) -> None:
    text = Path(spelling.__file__).read_text().replace("\n", newline)
    model = model_of(text)
    rewriter = Rewriter(model)
    future = 1 + next(
        i for i, n in enumerate(model.module.body) if text.startswith("from __future__", model.span(n)[0])
    )
    for top in model.module.body[future:]:
        for node in walk(top):
            if isinstance(node, STATEMENT):
                edits = operation(rewriter, node)
                changed = applied(text, edits if isinstance(edits, list) else [edits])
                assert newline == "\n" or "\n" not in changed.replace("\r\n", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a\n\nimport b\n\n\nx = 1\n", "import a\n\n\nx = 1\n"),
        ("import a\n\n\nimport b\n\nx = 1\n", "import a\n\n\nx = 1\n"),
        ("import a\n\nimport b\nx = 1\n", "import a\n\nx = 1\n"),
        ("if a:\n    import b\n\n    x = 1\n", "if a:\n    x = 1\n"),
    ],
    ids=["more behind", "more in front", "none behind", "the first of a block"],
)
def test_of_two_gaps_the_longer_one_stays(text: str, expected: str) -> None:
    assert rewritten(text, "import b", lambda r, node: r.remove_statement(node)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1  # of x\nf()  # why\n", "# why"),
        ("x = 1  # of x\n# why\n# more\nf()\n", "# why\n# more\n"),
        ("# why\r\nf(  # one\r\n    1\r\n)  # two\r\n", "# why\r\n# one\n# two"),
        ("# far\n\nf()\n", ""),
    ],
    ids=["not that of the line before", "lines above", "lines of one statement", "not above a gap"],
)
def test_comments_of_a_statement(text: str, expected: str) -> None:
    model = model_of(text)
    assert Rewriter(model).comments(first(model, "f(", EXPRESSION)) == expected
