"""LibCST's nodes, once they are light, are what they were."""

from __future__ import annotations

import subprocess
import sys

import libcst as cst
import libcst.metadata
import pytest

from torchlint.semantics.light_nodes import lighten

CODE = "def f( x ):\n    # why\n    return ( x ,  [x for x in  x] )\n"


@pytest.fixture(autouse=True)
def light() -> None:
    lighten()


def test_nodes_are_keys_by_identity() -> None:
    first, second = cst.Name("x"), cst.Name("x")
    assert first != second
    assert {first: 1, second: 2}[first] == 1
    assert hash(first) == object.__hash__(first)


def test_nodes_are_of_their_class_and_of_those_above_it() -> None:
    node = cst.parse_expression("f(x)")
    assert isinstance(node, (cst.Name, cst.BaseExpression))
    assert isinstance(node, cst.CSTNode)
    assert not isinstance(node, (cst.Attribute, cst.BaseStatement))
    assert type(node).__instancecheck__ == type.__instancecheck__.__get__(type(node))


def test_a_tree_still_prints_as_its_text() -> None:
    assert cst.parse_module(CODE).code == CODE


def test_metadata_that_wants_each_node_once_can_still_be_had() -> None:
    wrapper = cst.MetadataWrapper(cst.parse_module(CODE))
    positions = wrapper.resolve(cst.metadata.PositionProvider)
    assert any(isinstance(node, cst.FunctionDef) for node in positions)


def test_lightening_twice_changes_nothing() -> None:
    before = type(cst.Name)
    lighten()
    assert type(cst.Name) is before


IN_A_NEW_PROCESS = """
import libcst as cst
call = cst.Call(cst.Name("f"), [cst.Arg(cst.Name("x"), keyword=cst.Name("at"))])
changed = call.with_changes(func=cst.Name("g"))
assert cst.Module([]).code_for_node(changed) == "g(at = x)" and changed.args is call.args
assert changed != call and call == call and "Name" in repr(call)
positions = cst.MetadataWrapper(cst.parse_module("f(x)")).resolve(cst.metadata.PositionProvider)
position = next(iter(positions.values()))
assert position == type(position)(position.start, position.end)
print(hasattr(call, "__post_init__"))
"""


@pytest.mark.parametrize(
    ("first", "checks"), [("import torchlint.semantics", "False"), ("import libcst, torchlint.semantics", "True")]
)
def test_nodes_check_nothing_unless_libcst_was_there_before(first: str, checks: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", f"{first}\nimport libcst.metadata\n{IN_A_NEW_PROCESS}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.stdout.strip(), run.stderr) == (checks, "")
