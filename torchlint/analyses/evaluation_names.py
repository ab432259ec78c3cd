"""What the names of functions, loops and data say about an evaluation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dataflow import given_to, text
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Function, Loop
    from torchlint.semantics.model import Model

_NAMES = re.compile(
    r"(?i)(^|_|\b)(eval\w*|valid\w*|val|test\w*|infer\w*|predict\w*|sampl\w*|generat\w*|translat\w*|recogni\w*|score"
    r"|detect\w*|caption\w*|decode|demo|greedy\w*|beam\w*|(choose|select)_action)(_|\b|$)"
    r"|(?-i:[a-z](Eval|Valid|Test|Infer|Predict))"
)
_OPTIONS = re.compile(r"(?i)\b\w*(cfg|conf|config|opts?|options?|args|params|settings)\.")
_HELD_OUT = re.compile(
    r"(?i)(^|_|\b)(val|valid|validat\w+|tests?|testing|dev|eval|evaluat\w+|holdout|inference)"
    r"(_|set|data|load|iter|batch|dl|gen|$|(?-i:[A-Z]))"
)
_DATA = re.compile(r"(?i)(loader|batches|dataset|data_?iter|dl)\w*\b")


def evaluates_by_name(function: Function) -> bool:
    """`validate`, `test_epoch`"""
    return _NAMES.search(function.name) is not None


def is_held_out(loop: Loop) -> bool:
    """Whether a loop is over validation or test data, by the name of what it iterates over. `test_cfg.steps` is none,
    but an option for tests."""
    return loop.iterable is not None and _HELD_OUT.search(_OPTIONS.sub("", text(loop.iterable))) is not None


def is_given_held_out(model: Model, loop: Loop) -> bool:
    """Whether a loop is over such data by its name, or by the names of all that callers hand in for it."""
    if is_held_out(loop):
        return True
    function = loop.function
    if loop.iterable is None or function.passed_around or function.foreign_callers:
        return False
    named = (model.binding(node) for node in walk(loop.iterable) if isinstance(node, cst.Name))
    own = {binding for binding in named if binding is not None and binding.is_parameter}
    given = [[text(arg) for call in function.callers for arg in given_to(call, each)] for each in own]
    return any(bool(texts) and all(map(_HELD_OUT.search, texts)) for texts in given)


def is_over_loader(loop: Loop) -> bool:
    """Whether a loop is over the batches of some data, by what it iterates over or by the name of that."""
    named = loop.iterable is not None and _DATA.search(text(loop.iterable)) is not None
    return named or loop.iterates.is_(Kind.LOADER)


def is_over_data(loop: Loop) -> bool:
    """Whether a loop is over the batches of some data, or takes a batch apart."""
    if is_over_loader(loop):
        return True
    return loop.iterates.is_(Kind.BATCH) or (
        loop.iterates.is_(Kind.ITERATOR)
        and loop.iterates.element is not None
        and loop.iterates.element.is_(Kind.BATCH, Kind.TUPLE)
    )
