"""`torchlint explain-model`: what the model believes about a line or a file, and why."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchlint.cli import FAILED
from torchlint.parsing import UnparsableError
from torchlint.source import Source, UnreadableSourceError

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.rule import Fact
    from torchlint.semantics.model import Model

_PLACE = re.compile(r"(?P<file>.+?)(?::(?P<cell>\d+))??(?::(?P<line>\d+))?")


class _UnanalysableError(click.ClickException):
    exit_code = FAILED


@click.command("explain-model", short_help="Show what is known about a line, and why.")
@click.argument("place", metavar="FILE[:LINE]")
def command(place: str) -> None:
    """What torchlint believes about each name and call on a line, and the assignments it concludes that from; of a
    whole file, its functions, classes, loops and imports.

    In a notebook a line is named as FILE:CELL:LINE. No code is run.
    """
    source, number = _find(place)
    model = _model(source)
    lines = _line(model, number) if number is not None else _file(model)
    for line in lines:
        click.echo(line.rstrip())


def _find(place: str) -> tuple[Source, int | None]:
    """The file, and the line of its text, that the argument names."""
    match = _PLACE.fullmatch(place)
    assert match is not None
    exact = Path(place)
    path = exact if exact.exists() else Path(match["file"])
    if not path.is_file():
        raise click.UsageError(f"{path}: {'a folder; name a file' if path.is_dir() else 'no such file'}")
    try:
        source = Source.read(path)
    except (OSError, UnreadableSourceError) as error:
        raise click.UsageError(f"{path}: {error}") from error
    if path == exact or match["line"] is None:
        return source, None
    return source, _number(source, match["cell"], int(match["line"]))


def _number(source: Source, cell: str | None, line: int) -> int:
    first, last = 1, len(source.line_starts)
    if source.is_notebook:
        found = next((c for c in source.cells if cell is not None and c.index == int(cell)), None)
        if found is None:
            known = ", ".join(str(c.index) for c in source.cells)
            raise click.UsageError(f"name a line of a notebook as FILE:CELL:LINE; its code cells are {known}")
        first = source.line_number(found.start)
        last = max((source.line_number(c.start) for c in source.cells if c.start > found.start), default=last + 1) - 1
    elif cell is not None:
        raise click.UsageError("only notebooks have cells: name a line as FILE:LINE")
    number = first + line - 1
    if not first <= number <= last:
        raise click.UsageError(f"there is no line {line}; the last one is {last - first + 1}")
    return number


def _model(source: Source) -> Model:
    from torchlint.semantics.project import Project

    try:
        return Project().model_to_lint(source)
    except UnparsableError as error:
        line = source.locate(error.offset)[1]
        raise _UnanalysableError(f"{source.path}: {error.message} in line {line}") from error
    except RecursionError as error:
        raise _UnanalysableError(f"{source.path}: the file is nested too deeply to be analysed") from error


def _line(model: Model, number: int) -> Iterator[str]:
    from torchlint.semantics.beliefs import of_line

    believed = of_line(model, number)
    cell, line, _ = model.source.locate(model.source.line_starts[number - 1])
    where = f"{model.source.path}:{line}" if cell is None else f"{model.source.path}:{cell}:{line}"
    yield where + (f", in {believed.function}" if believed is not None and believed.function else "")
    yield f"    {model.source.line(number).strip()}"
    yield ""
    if believed is None:
        yield "No expression begins on this line."
        return
    if believed.repeated is not None:
        yield f"{model.place(believed.repeated.node)}: {believed.repeated.text}"
    for node, what in believed.conditions:
        yield f"{model.place(node)}: Only {what}."
    yield f"Gradients are {believed.gradients}."
    for belief in believed.beliefs:
        yield ""
        yield f"`{belief.code}` is {belief.value}"
        for fact in (*belief.because, *_fate_of_graph(model, belief.node)):
            yield f"    {model.place(fact.node)}: {fact.text}"


def _fate_of_graph(model: Model, node: cst.CSTNode) -> Iterator[Fact]:
    """The backward passes of the function that go through the graph of a tensor."""
    from torchlint.analyses.mem.backward_pass import keeps_graph, passes_through
    from torchlint.rule import Fact

    if model.value(node).is_tensor and model.value(node).carries and model.binding(node) is not None:
        for call in passes_through(model, node):  # type: ignore[arg-type]
            done = "keeps its graph" if keeps_graph(call) else "frees its graph"
            yield Fact(call.node, f"`{model.code(call.node)}` {done}.")


def _file(model: Model) -> Iterator[str]:
    yield str(model.source.path)
    if model.frameworks:
        yield f"frameworks: {', '.join(sorted(model.frameworks))}"
    for title, lines in (
        ("imports of the project", _imports(model)),
        ("classes", _classes(model)),
        ("functions", _functions(model)),
        ("loops", _loops(model)),
    ):
        shown = list(lines)
        if shown:
            yield ""
            yield title
            yield from (f"  {line}" for line in shown)


def _imports(model: Model) -> Iterator[str]:
    for name, file in model.imports_of_project():
        yield f"{name}: {os.path.relpath(file)}"


def _classes(model: Model) -> Iterator[str]:
    from torchlint.semantics.account import describe
    from torchlint.semantics.values import Value

    for cls in model.classes:
        yield f"{cls.qualname} ({model.place(cls.node)}): an object of it is {describe(Value(cls.kind))}"


def _functions(model: Model) -> Iterator[str]:
    from torchlint.semantics.beliefs import of_functions

    for believed in of_functions(model):
        purpose = f": {believed.purpose}" if believed.purpose else ""
        yield f"{believed.function.qualname} ({model.place(believed.function.node)}){purpose}"
        for name, value in believed.parameters:
            yield f"    {name} is {value}"
        if believed.effects:
            yield f"    does: {', '.join(believed.effects)}"
        yield f"    gradients are {believed.gradients}"
        if believed.callers:
            yield f"    called from {', '.join(believed.callers)}"


def _loops(model: Model) -> Iterator[str]:
    from torchlint.semantics.beliefs import of_loops

    for node, what in of_loops(model):
        yield f"{model.place(node)}: {what}"
