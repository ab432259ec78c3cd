"""Calls, their names and their arguments, in the layouts that real files have."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.rewriting import EXPRESSION, applied, model_of, rewritten
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Edit

LONG = "x" * 90
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
    pytest.param("f(a, b,\n  c,\n  d)\n", "f(a, b,\n  c,\n  d,\n  k=1)\n", id="one a line below the first"),
    pytest.param("f(\n  a, b,\n  c,\n  d\n)\n", "f(\n  a, b,\n  c,\n  d,\n  k=1\n)\n", id="two on the first line"),
    pytest.param("f(\n  [\n    a\n  ]\n)\n", "f(\n  [\n    a\n  ],\n  k=1,\n)\n", id="one over several lines"),
    pytest.param("f(a, b,\n  c)\n", "f(a, b,\n  c, k=1)\n", id="one on a second line"),
    pytest.param("f(a,\n  b, c)\n", "f(a,\n  b, c, k=1)\n", id="two on the last line"),
    pytest.param("f(\n    a,\n    b  # c\n)\n", "f(\n    a,\n    b,  # c\n    k=1\n)\n", id="comment after the last"),
    pytest.param("f(\n    a  # c, d\n)\n", "f(\n    a,  # c, d\n    k=1\n)\n", id="comma in the comment"),
    pytest.param("f(\n    a\n    # , d\n)\n", "f(\n    a,\n    k=1\n    # , d\n)\n", id="argument that is a comment"),
    pytest.param("f(\n    a,  # c\n)\n", "f(\n    a,  # c\n    k=1,\n)\n", id="comment after the comma"),
    pytest.param("[f(\n    a) for b in c]\n", "[f(\n    a, k=1) for b in c]\n", id="one that was pushed down"),
    pytest.param("f(\n    a\n)\n", "f(\n    a,\n    k=1\n)\n", id="one in a column"),
    pytest.param(f"f(\n    {LONG}\n)\n", f"f(\n    {LONG}, k=1\n)\n", id="one that is long"),
    pytest.param("f(\n    a  # c\n    ,\n)\n", "f(\n    a  # c\n    ,\n    k=1,\n)\n", id="comma on its own line"),
    pytest.param("f(\r\n    a,\r\n    b,\r\n)\r\n", "f(\r\n    a,\r\n    b,\r\n    k=1,\r\n)\r\n", id="CRLF"),
    pytest.param("f(\n\ta,\n\tb,\n)\n", "f(\n\ta,\n\tb,\n\tk=1,\n)\n", id="tabs"),
    pytest.param("f(g(\n    1,\n    2,\n))\n", "f(g(\n    1,\n    2,\n), k=1)\n", id="nested call over lines"),
    pytest.param("f(a, b = 2)\n", "f(a, b = 2, k = 1)\n", id="spaces around the equals sign"),
    pytest.param("f(a=lambda: 1)\n", "f(a=lambda: 1, k=1)\n", id="lambda last"),
]


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
