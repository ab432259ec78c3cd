"""Enumerations whose members are found fast are still enumerations."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

from torchlint.nouns import Noun, found_fast
from torchlint.semantics.values import Kind


@found_fast
class Colour(Noun):
    RED = "red"
    BLUE = "blue"


def test_members_are_there_by_name_and_by_value() -> None:
    assert Colour("red") is Colour.RED
    assert Colour.BLUE.value == "blue"
    assert [*Colour] == [Colour.RED, Colour.BLUE]
    assert isinstance(Colour.RED, Colour)
    assert {Colour.RED: 1}[Colour.RED] == 1


def test_members_stay_the_same_in_copies_and_in_other_processes() -> None:
    assert copy.deepcopy(Kind.TENSOR) is Kind.TENSOR
    assert pickle.loads(pickle.dumps(Kind.TENSOR)) is Kind.TENSOR
    code = f"import pickle; print(pickle.loads({pickle.dumps(Kind.TENSOR)!r}).name)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "TENSOR\n"


def test_nothing_stands_between_a_class_and_its_members() -> None:
    assert not hasattr(type(Colour), "__getattr__")
