"""Edits against the layouts that real files have."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import libcst as cst
import pytest

from torchlint import spelling
from torchlint.finding import Edit
from torchlint.rewrite import Rewriter
from torchlint.rule import NoFixError
from torchlint.semantics.model import Model
from torchlint.semantics.tree import walk
from torchlint.source import Source

STATEMENT = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
EXPRESSION = cst.BaseExpression


def model_of(text: str) -> Model:
    return Model.build(Source.from_text(text), cst.parse_module(text))


def applied(text: str, edits: list[Edit]) -> str:
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    ast.parse(text)
    return text


def first(model: Model, code: str, kind: Any) -> Any:
    """The outermost first node of a kind whose text begins with `code`."""
    for node in walk(model.module):
        if isinstance(node, kind) and model.source.text.startswith(code, model.span(node)[0]):
            return node
    raise AssertionError(f"no {code!r}")


def rewritten(
    text: str, code: str, change: Callable[[Rewriter, Any], Edit | list[Edit] | None], kind: Any = STATEMENT
) -> str:
    model = model_of(text)
    edits = change(Rewriter(model), first(model, code, kind))
    assert edits is not None
    return applied(text, edits if isinstance(edits, list) else [edits])


METHOD_CALLS = [
    pytest.param("f(loss)\n", "loss", "f(loss.detach())\n", id="name"),
    pytest.param("f(a.b[0](1))\n", "a.b[0](1)", "f(a.b[0](1).detach())\n", id="chain"),
    pytest.param("f(a + b)\n", "a + b", "f((a + b).detach())\n", id="sum"),
    pytest.param("f((a + b))\n", "(a + b)", "f((a + b).detach())\n", id="sum in its own parentheses"),
    pytest.param("f(-a)\n", "-a", "f((-a).detach())\n", id="minus"),
    pytest.param("f(a if c else b)\n", "a if", "f((a if c else b).detach())\n", id="conditional"),
    pytest.param("f(lambda: a)\n", "lambda", "f((lambda: a).detach())\n", id="lambda"),
    pytest.param("f(a < b)\n", "a < b", "f((a < b).detach())\n", id="comparison"),
    pytest.param("f(not a)\n", "not a", "f((not a).detach())\n", id="negation"),
    pytest.param("f(a for a in b)\n", "a for", "f((a for a in b).detach())\n", id="bare generator"),
    pytest.param("f((a for a in b), 1)\n", "(a for", "f((a for a in b).detach(), 1)\n", id="generator in parentheses"),
    pytest.param("f(1)\n", "1", "f((1).detach())\n", id="integer"),
    pytest.param("f([a])\n", "[a]", "f([a].detach())\n", id="list"),
    pytest.param(
        "async def g():\n    f(await a)\n", "await", "async def g():\n    f((await a).detach())\n", id="await"
    ),
    pytest.param("f(a * (b\n    + c))\n", "a *", "f((a * (b\n    + c)).detach())\n", id="over two lines"),
    pytest.param("x = a + \\\n    b\n", "a +", "x = (a + \\\n    b).detach()\n", id="continued line"),
    pytest.param("return_ = 1 if(a)else 2\n", "(a)", "return_ = 1 if(a).detach()else 2\n", id="beside keywords"),
]


@pytest.mark.parametrize(("text", "code", "expected"), METHOD_CALLS)
def test_method_call(text: str, code: str, expected: str) -> None:
    assert rewritten(text, code, lambda r, node: r.method_call(node, ".detach()"), EXPRESSION) == expected


def test_a_word_that_replaces_parentheses_keeps_away_from_keywords() -> None:
    assert (
        rewritten("x = 1 if(a)else 2\n", "(a)", lambda r, node: r.replace(node, "b"), EXPRESSION)
        == "x = 1 if b else 2\n"
    )


def test_wrapping_keeps_away_from_keywords() -> None:
    assert rewritten("assert(a)\n", "(a)", lambda r, node: r.wrap(node, "all(", ")"), EXPRESSION) == "assert all((a))\n"


ARGUMENTS = [
    pytest.param("f()\n", "f(k=1)\n", id="no argument"),
    pytest.param("f(\n)\n", "f(\nk=1)\n", id="no argument over two lines"),
    pytest.param("f(a)\n", "f(a, k=1)\n", id="one argument"),
    pytest.param("f(a, )\n", "f(a, k=1, )\n", id="trailing comma"),
    pytest.param("(f(a))\n", "(f(a, k=1))\n", id="call in parentheses"),
    pytest.param("f((a))\n", "f((a), k=1)\n", id="argument in parentheses"),
    pytest.param("f(x for x in y)\n", "f((x for x in y), k=1)\n", id="bare generator"),
    pytest.param("f(\n    a, b\n)\n", "f(\n    a, b, k=1\n)\n", id="on one line of their own"),
    pytest.param("f(a, **kw)\n", "f(a, **kw, k=1)\n", id="after keywords in a dict"),
    pytest.param("f(\n    a,\n    b,\n)\n", "f(\n    a,\n    b,\n    k=1,\n)\n", id="one a line, trailing comma"),
    pytest.param("f(\n    a,\n    b\n)\n", "f(\n    a,\n    b,\n    k=1\n)\n", id="one a line"),
    pytest.param("f(a,\n  b)\n", "f(a,\n  b,\n  k=1)\n", id="aligned"),
    pytest.param("f(a,\n  b, c)\n", "f(a,\n  b, c, k=1)\n", id="two on the last line"),
    pytest.param("f(\n    a,\n    b  # c\n)\n", "f(\n    a,\n    b,  # c\n    k=1\n)\n", id="comment after the last"),
    pytest.param("f(\n    a,  # c\n)\n", "f(\n    a,  # c\n    k=1,\n)\n", id="comment after the comma"),
    pytest.param("[f(\n    a) for b in c]\n", "[f(\n    a, k=1) for b in c]\n", id="one that was pushed down"),
    pytest.param("f(\n    a\n)\n", "f(\n    a,\n    k=1\n)\n", id="one in a column"),
    pytest.param("f(\n    a  # c\n    ,\n)\n", "f(\n    a  # c\n    ,\n    k=1,\n)\n", id="comma on its own line"),
    pytest.param("f(\r\n    a,\r\n    b,\r\n)\r\n", "f(\r\n    a,\r\n    b,\r\n    k=1,\r\n)\r\n", id="CRLF"),
    pytest.param("f(\n\ta,\n\tb,\n)\n", "f(\n\ta,\n\tb,\n\tk=1,\n)\n", id="tabs"),
    pytest.param("f(g(\n    1,\n    2,\n))\n", "f(g(\n    1,\n    2,\n), k=1)\n", id="nested call over lines"),
    pytest.param("f(a, b = 2)\n", "f(a, b = 2, k = 1)\n", id="spaces around the equals sign"),
    pytest.param("f(a=lambda: 1)\n", "f(a=lambda: 1, k=1)\n", id="lambda last"),
]


LONG = "x" * 90
ARGUMENTS += [
    pytest.param(f"y = f(a, {LONG})\n", f"y = f(a, {LONG},\n      k=1)\n", id="long line"),
    pytest.param(f"if c:\n\ty = f(a, {LONG})\n", f"if c:\n\ty = f(a, {LONG},\n\t      k=1)\n", id="after a tab"),
    pytest.param(f"f(a,\n    {LONG}, c)\n", f"f(a,\n    {LONG}, c,\n    k=1)\n", id="long last line"),
    pytest.param(f"f(\n  a, {LONG}\n)\n", f"f(\n  a, {LONG}, k=1\n)\n", id="a formatter's long line"),
    pytest.param(f"f(a, {LONG})  # c\n", f"f(a, {LONG}, k=1)  # c\n", id="long line with a comment"),
    pytest.param(f"f(a, {LONG} + {LONG})\n", f"f(a, {LONG} + {LONG},\n  k=1)\n", id="long before"),
    pytest.param(f"f(g(a), {LONG})\n", f"f(g(a), {LONG},\n  k=1)\n", id="call within"),
    pytest.param(f"{LONG}(a)\n", f"{LONG}(a, k=1)\n", id="no room under the first argument"),
    pytest.param("f(\n    a,\n    b=2)  # c\n", "f(\n    a,\n    k=1,\n    b=2)  # c\n", id="comment behind the call"),
    pytest.param("f(\n    a,\n    b=2,\n)  # c\n", "f(\n    a,\n    b=2,\n    k=1,\n)  # c\n", id="bracket apart"),
    pytest.param("f(\n    a,\n    b)  # c\n", "f(\n    a,\n    b,\n    k=1)  # c\n", id="and none by name"),
]


@pytest.mark.parametrize(("text", "expected"), ARGUMENTS)
def test_add_argument(text: str, expected: str) -> None:
    assert rewritten(text, "", lambda r, node: r.add_argument(node, "k=1"), cst.Call) == expected


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


def test_an_argument_in_a_formatted_string_stays_on_its_line() -> None:
    text = f"print(f'{{f(a)}} {LONG}')\n"
    change = lambda r, node: r.add_argument(node, "k=1")  # noqa: E731
    assert rewritten(text, "f(a", change, cst.Call) == text.replace("a)", "a, k=1)")


def test_only_a_call_that_ends_its_line_is_broken() -> None:
    text = f"y = [f(a, {LONG}), 2]\n"
    change = lambda r, node: r.add_argument(node, "k=1")  # noqa: E731
    assert rewritten(text, "f(a", change, cst.Call) == text.replace("),", ", k=1),")
    text = f"y = [2, f(a, {LONG})]\n"
    assert rewritten(text, "f(a", change, cst.Call) == text.replace(")]", ",\n          k=1)]")


def test_a_new_line_begins_under_the_first_argument_as_other_edits_leave_it() -> None:
    text = f"y = long_name(a, {LONG[:80]})\n"
    renamed = Edit(4, 13, "f")
    change = lambda r, node: [r.add_argument(node, "k='some text'", [renamed]), renamed]  # noqa: E731
    assert rewritten(text, "long", change, cst.Call) == f"y = f(a, {LONG[:80]},\n      k='some text')\n"


def test_what_other_edits_take_off_the_line_makes_room() -> None:
    text = f"y = f(a, {LONG}).real\n"
    cut = Edit(text.index(".real"), len(text) - 1, "")
    change = lambda r, node: r.add_argument(node, "k=1", [cut])  # noqa: E731
    assert rewritten(text, "f(a", change, cst.Call) == text.replace(").real", ", k=1).real")


def test_replace_argument_keeps_the_keyword() -> None:
    change = lambda r, node: r.replace_argument(node.args[0], "True")  # noqa: E731
    assert rewritten("f(pin = (False), n=1)\n", "f(", change, cst.Call) == "f(pin = True, n=1)\n"


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


LAST_ARGUMENT = [
    pytest.param("f(a=1)", "f()", id="the only one"),
    pytest.param("f(a=1,)", "f()", id="the only one, with a comma"),
    pytest.param("f(x, a=1)", "f(x)", id="the last one"),
    pytest.param("f(x, a=1, )", "f(x, )", id="the last one, with a comma"),
    pytest.param("f(a=1, y=2)", "f(y=2)", id="the first one"),
    pytest.param("f(\n    x,\n    a=1,\n    y=2,\n)", "f(\n    x,\n    y=2,\n)", id="one of several lines"),
    pytest.param("f(\n    x,\n    a=1,\n)", "f(\n    x,\n)", id="the last of several lines"),
]


@pytest.mark.parametrize(("before", "after"), LAST_ARGUMENT)
def test_remove_argument(before: str, after: str) -> None:
    model = model_of(before + "\n")
    call = model.calls[0].node
    argument = next(arg for arg in call.args if arg.keyword is not None and arg.keyword.value == "a")
    assert applied(before + "\n", [Rewriter(model).remove_argument(call, argument)]) == after + "\n"


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


NAMES = [
    pytest.param("import torch\nx = 1\n", "torch.no_grad", "torch.no_grad", "", id="package"),
    pytest.param("import torch as th\nx = 1\n", "torch.no_grad", "th.no_grad", "", id="alias"),
    pytest.param("from torch import no_grad as n\nx = 1\n", "torch.no_grad", "n", "", id="name"),
    pytest.param("import torch\nfrom torch import nn\nx = 1\n", "torch.nn.Linear", "nn.Linear", "", id="longest"),
    pytest.param("import torch.nn as n\nx = 1\n", "torch.no_grad", "torch.no_grad", "import torch", id="part of it"),
    pytest.param(
        "from torch.utils.data.distributed import DistributedSampler as DS\nx = 1\n",
        "torch.utils.data.DistributedSampler",
        "DS",
        "",
        id="exported twice",
    ),
    pytest.param(
        "def f():\n    import torch as t\n    x = 1\n", "torch.no_grad", "t.no_grad", "", id="in the function"
    ),
    pytest.param("def f():\n    x = 1\nimport torch\n", "torch.no_grad", "torch.no_grad", "", id="below the function"),
    pytest.param(
        "def g():\n    import torch as t\ndef f():\n    x = 1\n",
        "torch.no_grad",
        "torch.no_grad",
        "import torch",
        id="in another function",
    ),
    pytest.param(
        "try:\n    import torch\nexcept ImportError:\n    pass\ndef f():\n    x = 1\n",
        "torch.no_grad",
        "torch.no_grad",
        "",
        id="tried",
    ),
    pytest.param("import os\nx = 1\n", "math.sqrt", "math.sqrt", "import math", id="another package"),
]


@pytest.mark.parametrize(("text", "qualified", "expected", "imported"), NAMES)
def test_name_for(text: str, qualified: str, expected: str, imported: str) -> None:
    model = model_of(text)
    found = Rewriter(model).name_for(qualified, first(model, "x", cst.Assign))
    assert found[0] == expected
    assert "".join(edit.text for edit in found[1]).strip("\n") == imported


TAKEN = [
    pytest.param("def f(torch):\n    x = 1\n", id="parameter"),
    pytest.param("torch = None\ndef f():\n    x = 1\n", id="variable"),
    pytest.param(
        "try:\n    import torch\nexcept ImportError:\n    torch = object()\ndef f():\n    x = 1\n", id="replaced"
    ),
    pytest.param("def f():\n    x = 1\n    import torch\n", id="imported later"),
    pytest.param("if TYPE_CHECKING:\n    import torch\ndef f():\n    x = 1\n", id="for types only"),
    pytest.param("y = [(x := 1) for torch in range(2)]\n", id="comprehension"),
]


@pytest.mark.parametrize("text", TAKEN)
def test_a_name_that_means_something_else_is_not_used(text: str) -> None:
    model = model_of(text)
    place = first(model, "x", cst.Name)
    with pytest.raises(NoFixError, match="`torch` is not imported there, and its name is taken"):
        Rewriter(model).name_for("torch.no_grad", place)


IMPORTS = [
    pytest.param(
        "import os\nimport sys\n\nx = 1\n", "import os\nimport sys\nimport torch\n\nx = 1\n", id="after imports"
    ),
    pytest.param(
        '"""Doc."""\nfrom __future__ import annotations\n\nx = 1\n',
        '"""Doc."""\nfrom __future__ import annotations\nimport torch\n\nx = 1\n',
        id="after future imports",
    ),
    pytest.param('"""Doc."""\nx = 1\n', '"""Doc."""\n\nimport torch\nx = 1\n', id="after the docstring"),
    pytest.param(
        "import os\nfrom torch import nn\n\nfrom .a import b\n\nx = 1\n",
        "import os\nimport torch\nfrom torch import nn\n\nfrom .a import b\n\nx = 1\n",
        id="before a part of it",
    ),
    pytest.param(
        "import numpy\n\nfrom ..a import b\n\nx = 1\n",
        "import numpy\nimport torch\n\nfrom ..a import b\n\nx = 1\n",
        id="before the project's own",
    ),
    pytest.param("#!/bin/python\nx = 1\n", "#!/bin/python\nimport torch\n\nx = 1\n", id="after the first comment"),
    pytest.param("import a  # c\r\nx = 1\r\n", "import a  # c\r\nimport torch\r\nx = 1\r\n", id="CRLF"),
]


@pytest.mark.parametrize(("text", "expected"), IMPORTS)
def test_an_import_goes_to_the_others(text: str, expected: str) -> None:
    model = model_of(text)
    found = Rewriter(model).name_for("torch.no_grad", first(model, "x", cst.Assign))
    assert applied(text, found[1]) == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param("import torch\nfrom a import b\n", "import os\n\nimport torch\nfrom a import b\n", id="others"),
        pytest.param("import math\nimport sys\n", "import math\nimport os\nimport sys\n", id="the alphabet"),
        pytest.param("import sys\n\nimport torch\n", "import os\nimport sys\n\nimport torch\n", id="the first"),
        pytest.param(
            "import io\nfrom time import time\nimport torch\n",
            "import io\nimport os\nfrom time import time\nimport torch\n",
            id="before what it imports from",
        ),
        pytest.param(
            "from __future__ import annotations\n\nimport torch\n",
            "from __future__ import annotations\n\nimport os\n\nimport torch\n",
            id="after future imports",
        ),
        pytest.param("", "import os\n\n", id="none"),
    ],
)
def test_an_import_of_the_standard_library_goes_to_its_own(head: str, expected: str) -> None:
    model = model_of(head + "x = 1\n")
    found = Rewriter(model).name_for("os.cpu_count", first(model, "x", cst.Assign))
    assert applied(head + "x = 1\n", found[1]) == expected + "x = 1\n"
