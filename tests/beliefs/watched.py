"""The files of a folder as programs that note what their expressions are, and what the model believes of these."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import libcst as cst

from tests.beliefs.held_against import contradiction
from tests.beliefs.instrumented import Fact, instrumented
from torchlint.parsing import UnparsableError
from torchlint.semantics.model import Model
from torchlint.semantics.project import Project
from torchlint.semantics.values import Value
from torchlint.source import Source, UnreadableSourceError


class Watched:
    """The files of a checkout, with every expression noted."""

    def __init__(self, folder: Path) -> None:
        self.nodes: list[tuple[Model, cst.BaseExpression]] = []
        project = Project()
        texts: dict[Path, str] = {}
        for path in sorted(folder.rglob("*.py")):
            try:
                model = project.model_to_lint(Source.read(path))
                text, nodes = instrumented(model, len(self.nodes))
                compile(text, str(path), "exec", dont_inherit=True)
            except (UnparsableError, UnreadableSourceError, SyntaxError, RecursionError):
                continue
            texts[path] = text
            self.nodes += [(model, node) for node in nodes]
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")

    def value(self, number: int) -> Value:
        """What the model believes of an expression."""
        model, node = self.nodes[number]
        return model.value(node)

    def false_beliefs(self, facts: dict[int, set[Fact]]) -> Iterator[tuple[str, str, str]]:
        """Where, the code, and what the model has wrong."""
        for number, seen in sorted(facts.items()):
            model, node = self.nodes[number]
            enabled = model.grad_enabled(node)
            for fact, gradients in sorted(seen, key=repr):
                wrong = contradiction(self.value(number), fact)
                if wrong is None and enabled is False and gradients:
                    wrong = "with gradients off, and they are on"
                if wrong is not None:
                    yield f"{model.source.path}:{model.line(node)}", model.code(node), wrong
                    break
