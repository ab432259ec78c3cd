"""The end of a file that tries out what the file defines: it says nothing of the devices of those who use it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import libcst as cst

from torchlint.semantics.transfer import Arguments
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Grad, Kind, Place, Value

# Names and strings of a program that is run for what comes of it.
_WORK = re.compile(r"^(backward|step|open|argv)$|optim|DataLoader|load|read|argparse|parse_args")


def calls_of_self_test(module: cst.Module) -> frozenset[cst.CSTNode]:
    """The calls below `if __name__ == "__main__":`, and in the functions that are run there, of a file that defines
    functions or classes and does no work there but to try them out."""
    block = next(filter(is_main, reversed(module.body)), None)
    if block is None or any(map(_is_work, walk(block))):
        return frozenset()
    parts = [block, *_entered(block, module.body)]
    calls = []
    for node in (node for part in parts for node in walk(part)):
        if _is_work(node):
            return frozenset()
        if isinstance(node, cst.Call):
            calls.append(node)
    return frozenset(calls)


def anywhere(given: Arguments) -> Arguments:
    """The same, where each tensor may be on another device as well, and of another's graph."""
    keywords = {name: _anywhere(value) for name, value in given.keywords.items()}
    positional, starred = map(_anywhere, given.positional), map(_anywhere, given.starred)
    return replace(given, positional=tuple(positional), keywords=keywords, starred=tuple(starred))


def _anywhere(value: Value) -> Value:
    if value.kind is not Kind.TENSOR:
        return value
    place = Place.UNKNOWN if value.place is Place.HOST else value.place
    return value.but(place=place, grad=Grad.CARRIES if value.carries else Grad.UNKNOWN)


def is_main(node: cst.CSTNode) -> bool:
    """`if __name__ == "__main__":`"""
    match node:
        case cst.If(test=cst.Comparison(left=cst.Name(value="__name__"), comparisons=[cst.ComparisonTarget()])):
            return True
    return False


def _is_work(node: cst.CSTNode) -> bool:
    cls = type(node)
    if cls is cst.Name or cls is cst.SimpleString:
        return _WORK.search(node.value) is not None  # type: ignore[attr-defined]
    return cls is cst.While


def _entered(block: cst.CSTNode, body: Sequence[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    names = {node.func.value for node in walk(block) if isinstance(node, cst.Call) and isinstance(node.func, cst.Name)}
    return (
        node for node in body if isinstance(node, cst.FunctionDef) and node.name.value in names and not _takes(node)
    )


def _takes(function: cst.FunctionDef) -> bool:
    params = function.params
    return bool(params.params or params.posonly_params or params.kwonly_params)
