"""What an editor has open: a file, or a notebook with a document for each cell, as one source and back again."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

from lsprotocol import types as lsp
from pygls.workspace import PositionCodec, Workspace

from torchlint.finding import Edit
from torchlint.source import Source


@dataclass(frozen=True)
class Opened:
    """A file or a notebook as it is now. `documents` are those that the editor shows of it, with their versions: the
    file, or the cells. `text` is what would be saved; of a notebook, as far as it matters."""

    uri: str
    documents: tuple[tuple[str, int | None], ...]
    text: str

    @classmethod
    def find(cls, uri: str, workspace: Workspace) -> Opened | None:
        """What has the address, of a file, a notebook or a cell, if it is open."""
        notebook = workspace.get_notebook_document(notebook_uri=uri) or workspace.get_notebook_document(cell_uri=uri)
        if notebook is not None:
            return cls._of_notebook(notebook, workspace)
        document = workspace.text_documents.get(unquote(uri))  # as pygls files them
        return None if document is None else cls(uri, ((uri, document.version),), document.source)

    @classmethod
    def _of_notebook(cls, notebook: lsp.NotebookDocument, workspace: Workspace) -> Opened:
        documents, cells = [], []
        for cell in notebook.cells:
            document = workspace.text_documents.get(unquote(cell.document))
            is_code = cell.kind == lsp.NotebookCellKind.Code and document is not None
            is_python = document is not None and document.language_id in (None, "python")
            documents.append((cell.document, document.version if document is not None else None))
            kind = "code" if is_code and is_python else "markdown"
            cells.append({"cell_type": kind, "source": document.source if document is not None else ""})
        return cls(notebook.uri, tuple(documents), json.dumps({"cells": cells}))


@dataclass(frozen=True)
class Places:
    """Where the offsets of a source lie in the documents of an editor. Columns count in the units that it asked for."""

    source: Source
    uris: tuple[str, ...]
    codec: PositionCodec

    def location(self, start: int, end: int) -> lsp.Location:
        uri, begin, text = self._document(start)
        end = min(end, begin + len(text))
        return lsp.Location(uri, lsp.Range(self._position(start, begin, text), self._position(end, begin, text)))

    def changes(self, edits: Iterable[Edit]) -> dict[str, list[lsp.TextEdit]]:
        found: dict[str, list[lsp.TextEdit]] = {}
        for edit in edits:
            where = self.location(edit.start, edit.end)
            found.setdefault(where.uri, []).append(lsp.TextEdit(where.range, edit.text))
        return found

    def _document(self, offset: int) -> tuple[str, int, str]:
        """The address, the offset in the source and the text of the document that an offset lies in."""
        if not self.source.cells:
            return self.uris[0], 0, self.source.text
        starts = [cell.start for cell in self.source.cells]
        cell = self.source.cells[max(0, bisect_right(starts, offset) - 1)]
        return self.uris[cell.index], cell.start, cell.text

    def _position(self, offset: int, begin: int, text: str) -> lsp.Position:
        _, line, column = self.source.locate(offset)
        before = text[offset - begin - column + 1 : offset - begin]
        return lsp.Position(line - 1, self.codec.client_num_units(before))
