"""`.data` that stands together, which is written alike: in one statement, in a row of like lines, of one tensor in a
function."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers._together import places_of

from torchlint.analyses.data_attribute.reads import data_reads
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.analyses.data_attribute.reads import DataRead
    from torchlint.finding import Places
    from torchlint.semantics.entities import Function
    from torchlint.semantics.model import Model


@dataclass
class Together:
    """Every `.data` of a file by where it stands. `reads` are those that a fix may change; of the statements of a row
    and of the tensors of a function `mixed_rows` and `kept` have one that is none of them."""

    reads: dict[cst.CSTNode, DataRead]
    in_statement: dict[cst.CSTNode, list[cst.Attribute]] = field(default_factory=lambda: defaultdict(list))
    in_words: dict[tuple[Function, str], list[cst.Attribute]] = field(default_factory=lambda: defaultdict(list))
    row_of: dict[cst.CSTNode, list[cst.CSTNode]] = field(default_factory=dict)
    mixed_rows: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)
    kept: dict[tuple[Function, str], cst.CSTNode] = field(default_factory=dict)


def together(model: Model) -> Together:
    found = Together({read.node: read for read in data_reads(model)})
    bodies = {}
    for node in model.nodes_of(cst.Attribute):
        if isinstance(node, cst.Attribute) and node.attr.value == "data":
            if node not in found.reads:
                found.kept.setdefault((model.function(node), model.code(node)), node)
            statement = model.small_statement(node)
            if statement is not None and (body := model.parent(model.statement(statement))) is not None:
                found.in_statement[statement].append(node)
                found.in_words[model.function(node), model.code(statement)].append(node)
                bodies[body] = True
    for body in bodies:
        for row in _rows(body):
            found.row_of.update(dict.fromkeys(row, row))
            all_of_it = (node for statement in row for node in found.in_statement.get(statement, ()))
            if (stays := next((node for node in all_of_it if node not in found.reads), None)) is not None:
                found.mixed_rows.update(dict.fromkeys(row, stays))
    return found


def reads_alike(read: DataRead, model: Model, whole: bool) -> list[DataRead]:
    """The reads of `.data` in the lines beside it that do the same with something else, and that of the same tensor in
    those lines of the function that say the same; `whole`: all reads in these."""
    found = model.once(together)
    own = model.small_statement(read.node)
    if own is None:
        return []
    others = (statement for statement in found.row_of.get(own, ()) if statement is not own)
    in_row = (node for statement in others for node in found.in_statement.get(statement, ()))
    said = found.in_words.get((model.function(own), model.code(own)), ())
    again = (node for node in said if model.small_statement(node) is not own)
    alike = (node for node in again if whole or model.code(node) == model.code(read.node))
    return [found.reads[node] for node in (*in_row, *alike) if node in found.reads]


def reads_beside(read: DataRead, model: Model) -> list[DataRead]:
    """The other reads of `.data` in the statement. Raises NoFixError where what is meant is not in sight."""
    found = model.once(together)
    if isinstance(outer := model.parent(read.node), cst.Attribute) and outer.attr.value == "grad":
        raise NoFixError(f"`{model.code(outer)}` is None, and what is meant is for you to say")
    above = getattr(model.statement(read.node), "leading_lines", ())
    if any(line.comment is not None and model.code(read.node) in line.comment.value for line in above):
        raise NoFixError(f"a comment above speaks of `{model.code(read.node)}`")
    return [found.reads[node] for node in _in_statement(read, model) if node in found.reads]


def places_beside(read: DataRead, model: Model) -> Places:
    """What it has to be like: in the statement, in the lines beside it, and where the function writes to the same."""
    found = model.once(together)
    statement, function = model.small_statement(read.node), model.function(read.node)
    beside = _in_statement(read, model)
    stay = [found.mixed_rows[statement]] if statement in found.mixed_rows else []
    for each in (read.node, *beside) if not function.is_module else ():
        stay += [found.kept[function, model.code(each)]] if (function, model.code(each)) in found.kept else []
    return places_of([*beside, *stay], model)


def _in_statement(read: DataRead, model: Model) -> list[cst.Attribute]:
    statement = model.small_statement(read.node)
    all_of_it = model.once(together).in_statement.get(statement, ()) if statement is not None else ()
    return [node for node in all_of_it if node is not read.node]


def _rows(body: cst.CSTNode) -> list[list[cst.CSTNode]]:
    """The statements of a body that do the same one after the other."""
    lines = getattr(body, "body", ())
    alone = [
        line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else line for line in lines
    ]
    return [list(row) for does, row in groupby(alone, _does) if does is not None]


def _does(statement: cst.CSTNode) -> tuple[str, str] | None:
    """What function a statement calls, what container it fills, whether it takes the `.data` of something as it is, or
    what method it calls of it."""
    match statement:
        case cst.Assign(value=cst.Call(func=cst.Name(value=name))):
            return ("call", name)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Name(value=name)))]):
            return ("fill", name)
        case cst.Assign(value=cst.Attribute(attr=cst.Name(value="data")) | cst.IfExp()):
            return ("data", "")
        case cst.Assign(
            value=cst.Call(
                func=cst.Attribute(value=cst.Attribute(attr=cst.Name(value="data")), attr=cst.Name(value=name))
            )
        ):
            return ("data", name)
        case cst.Expr(value=cst.Call(func=cst.Attribute(attr=cst.Name(value="append")))):
            return ("append", "")
    return None
