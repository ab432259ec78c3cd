"""Edits from LibCST nodes: a fixer says what to change, and the edits follow how the text around it is laid out.

Those of expressions, those of statements and the layout itself have modules of their own; names and imports are here.
"""

from __future__ import annotations

import libcst as cst

from torchlint.edits import spelling
from torchlint.edits.expressions import ExpressionEdits
from torchlint.edits.statements import StatementEdits, is_docstring
from torchlint.finding import Edit
from torchlint.rule import NoFixError


class Rewriter(ExpressionEdits, StatementEdits):
    """Builds edits for one file. Offsets count characters of `model.source.text`."""

    def name_for(self, qualified: str, at: cst.CSTNode) -> tuple[str, list[Edit]]:
        """How `torch.no_grad` is written at a place, and the import that this needs, if any.

        Raises NoFixError where the names that could be used mean something else at that place.
        """
        name = self.known_name(qualified, at)
        if name is not None:
            return name, []
        package = qualified.partition(".")[0]
        if not spelling.is_free(self._model, package, at):
            raise NoFixError(f"`{package}` is not imported there, and its name is taken")
        return qualified, [self._import(package)]

    def known_name(self, qualified: str, at: cst.CSTNode) -> str | None:
        """How `torch.no_grad` is written at a place without another import."""
        return spelling.spelled(self._model, qualified, at)

    def _import(self, package: str) -> Edit:
        line = f"import {package}"
        before, after = spelling.neighbours_of_import(self._model.module, package)
        if before is not None:
            return self.insert_after(before, line)
        if after is not None:
            beside = spelling.is_of_standard_library(after) or spelling.is_part(after, package)
            return self.insert_before(after, line, *([] if beside else [""]))
        last = spelling.last_import(self._model.module)
        if last is not None:
            return self.insert_after(last, line)
        body = self._model.module.body
        first = body[0] if body else None
        if isinstance(first, cst.SimpleStatementLine) and is_docstring(first.body[0]):
            return self._insert_among(first, 1, ["", line])
        if first is None:
            return self.insert(len(self._text), line + self.newline)
        return self.insert_before(first, line, "")
