"""The language server: diagnostics while typing, quick fixes, fix-all, and a rule's page under the pointer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls import uris
from pygls.lsp.server import LanguageServer

from torchlint import __version__
from torchlint.config import ConfigError
from torchlint.editor.document import Checked, all_fixes, check, suppression
from torchlint.editor.opened import Opened, Places
from torchlint.files.discovery import SUFFIXES
from torchlint.finding import Applicability, Finding, Severity
from torchlint.pages import markdown, page
from torchlint.source import Source, UnreadableSourceError

FIX_ALL = "source.fixAll.torchlint"
FIX_NOTEBOOK = f"notebook.{FIX_ALL}"  # `source.fixAll` is asked of each cell, which is no program of its own
_DELAY = 0.3  # seconds without a key before the text is looked at
_SEVERITY = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFO: lsp.DiagnosticSeverity.Information,
}
_NOTEBOOKS = lsp.NotebookDocumentSyncOptions(
    [lsp.NotebookDocumentFilterWithNotebook("jupyter-notebook", [lsp.NotebookCellLanguage("python")])], save=True
)


@dataclass
class Editor:
    """One connection. What was found last in each open file is kept for fixes and hover, which ask for it."""

    server: LanguageServer = field(
        default_factory=lambda: LanguageServer("torchlint", __version__, notebook_document_sync=_NOTEBOOKS)
    )
    _shown: dict[str, _Shown] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _said: str = ""

    def __post_init__(self) -> None:
        handlers: dict[str, Callable[..., Any]] = {
            lsp.INITIALIZE: self._initialize,
            lsp.TEXT_DOCUMENT_DID_OPEN: self._opened,
            lsp.TEXT_DOCUMENT_DID_CHANGE: self._typed,
            lsp.TEXT_DOCUMENT_DID_SAVE: self._opened,
            lsp.TEXT_DOCUMENT_DID_CLOSE: self._closed,
            lsp.NOTEBOOK_DOCUMENT_DID_OPEN: self._opened_notebook,
            lsp.NOTEBOOK_DOCUMENT_DID_CHANGE: self._typed_in_notebook,
            lsp.NOTEBOOK_DOCUMENT_DID_SAVE: self._opened_notebook,
            lsp.NOTEBOOK_DOCUMENT_DID_CLOSE: self._closed_notebook,
            lsp.TEXT_DOCUMENT_CODE_ACTION: self._actions,
            lsp.CODE_ACTION_RESOLVE: self._resolved,
            lsp.TEXT_DOCUMENT_HOVER: self._hover,
        }
        kinds = [lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll, "notebook.source.fixAll"]
        options = {lsp.TEXT_DOCUMENT_CODE_ACTION: lsp.CodeActionOptions(code_action_kinds=kinds, resolve_provider=True)}
        for name, handler in handlers.items():
            self.server.feature(name, options.get(name))(partial(handler))  # pygls marks it, which no method takes

    def _initialize(self, params: lsp.InitializeParams) -> None:
        """Paths are relative to the project, as on the command line."""
        root = params.root_uri and uris.to_fs_path(params.root_uri)
        if root and os.path.isdir(root):
            os.chdir(root)

    async def _opened(self, params: lsp.DidOpenTextDocumentParams | lsp.DidSaveTextDocumentParams) -> None:
        await self._check(params.text_document.uri)

    async def _typed(self, params: lsp.DidChangeTextDocumentParams) -> None:
        await self._check_at_rest(params.text_document.uri)

    def _closed(self, params: lsp.DidCloseTextDocumentParams) -> None:
        self._forget(params.text_document.uri)

    async def _opened_notebook(
        self, params: lsp.DidOpenNotebookDocumentParams | lsp.DidSaveNotebookDocumentParams
    ) -> None:
        await self._check(params.notebook_document.uri)

    async def _typed_in_notebook(self, params: lsp.DidChangeNotebookDocumentParams) -> None:
        await self._check_at_rest(params.notebook_document.uri)

    def _closed_notebook(self, params: lsp.DidCloseNotebookDocumentParams) -> None:
        self._forget(params.notebook_document.uri)

    async def _check_at_rest(self, uri: str) -> None:
        before = self._find(uri)
        await asyncio.sleep(_DELAY)
        if before == self._find(uri):
            await self._check(uri)

    def _find(self, uri: str) -> Opened | None:
        return Opened.find(uri, self.server.workspace)

    def _forget(self, uri: str) -> None:
        if uri in self._shown:
            self._publish(self._shown.pop(uri).opened, [])

    async def _check(self, uri: str) -> None:
        """Checks one document at a time, and says nothing of a text that is no longer there."""
        path = uris.to_fs_path(uri)
        if path is None or not path.endswith(SUFFIXES):
            return
        async with self._lock:
            opened = self._find(uri)
            if opened is None:
                return
            try:
                checked = await asyncio.to_thread(check, Path(path), opened.text)
            except (ConfigError, UnreadableSourceError) as error:
                self._say(str(error))
                return
        self._said = ""
        if self._find(uri) == opened:
            self._show(_Shown(opened, checked, self._places(checked.source, opened)))

    def _places(self, source: Source, opened: Opened) -> Places:
        return Places(source, tuple(uri for uri, _ in opened.documents), self.server.workspace.position_codec)

    def _show(self, shown: _Shown) -> None:
        before = self._shown.get(shown.opened.uri)
        self._shown[shown.opened.uri] = shown
        left = {uri for uri, _ in shown.opened.documents}
        for uri, _ in before.opened.documents if before is not None else ():
            if uri not in left:
                self._publish_one(uri, [], None)
        self._publish(shown.opened, [shown.diagnostic(finding) for finding in shown.checked.findings])

    def _publish(self, opened: Opened, diagnostics: Sequence[tuple[str, lsp.Diagnostic]]) -> None:
        """To each document its own, those without any included."""
        for uri, version in opened.documents:
            self._publish_one(uri, [diagnostic for place, diagnostic in diagnostics if place == uri], version)

    def _publish_one(self, uri: str, diagnostics: list[lsp.Diagnostic], version: int | None) -> None:
        params = lsp.PublishDiagnosticsParams(uri, diagnostics, version)
        self.server.text_document_publish_diagnostics(params)

    def _current(self, uri: str) -> _Shown | None:
        """What was found in the text that a document, or the notebook that it is a cell of, has now."""
        opened = self._find(uri)
        shown = self._shown.get(opened.uri) if opened is not None else None
        return shown if shown is not None and shown.opened == opened else None

    def _say(self, message: str) -> None:
        """A mistake in the settings, once and not at every key."""
        if message != self._said:
            self._said = message
            self.server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, f"torchlint: {message}"))

    def _actions(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri, only = params.text_document.uri, params.context.only
        shown = self._current(uri)
        if shown is None:
            return []
        actions: list[lsp.CodeAction] = []
        if _asks_for(only, lsp.CodeActionKind.QuickFix):
            for finding in shown.found_at(uri, params.range):
                actions += self._quick_fixes(finding, shown)
        is_fixable = any(finding.fix is not None for finding in shown.checked.findings)
        kind = FIX_NOTEBOOK if shown.checked.source.is_notebook else FIX_ALL
        if is_fixable and _asks_for(only, kind):
            fix_all = lsp.CodeAction("torchlint: fix all", kind, data=uri)
            actions.append(fix_all if only is None else self._resolved(fix_all))
        return actions

    def _quick_fixes(self, finding: Finding, shown: _Shown) -> Iterator[lsp.CodeAction]:
        _, about = shown.diagnostic(finding)

        def action(title: str, changes: dict[str, list[lsp.TextEdit]], is_preferred: bool = False) -> lsp.CodeAction:
            edit = lsp.WorkspaceEdit(changes=changes)
            kind = lsp.CodeActionKind.QuickFix
            return lsp.CodeAction(title, kind, diagnostics=[about], is_preferred=is_preferred, edit=edit)

        fix = finding.fix
        is_offered = fix is not None and fix.applicability is not Applicability.DISPLAY
        if fix is not None and is_offered and all(self._is_saved(other.source) for other in fix.elsewhere):
            made = shown.places.changes(fix.edits)
            for other in fix.elsewhere:
                elsewhere = Places(other.source, (_uri(other.source.path),), shown.places.codec)
                made |= elsewhere.changes(other.edits)
            is_safe = fix.applicability is Applicability.SAFE
            note = "" if is_safe else f" (unsafe: {fix.why.rstrip('.')})"
            yield action(f"Fix {finding.code} {finding.name}{note}", made, is_safe)
        comment = suppression(shown.checked, finding)
        if comment:
            yield action(f"Suppress {finding.code} here", shown.places.changes(comment))

    def _is_saved(self, source: Source) -> bool:
        """Whether another file has no text in the editor that a fix would not know of."""
        opened = self._find(_uri(source.path))
        return opened is None or opened.text == source.text

    def _resolved(self, action: lsp.CodeAction) -> lsp.CodeAction:
        """Fix-all with its edit, which is made only once it is wanted."""
        shown = self._current(str(action.data))
        if shown is not None:
            action.edit = lsp.WorkspaceEdit(changes=shown.places.changes(all_fixes(shown.checked)))
        return action

    def _hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        uri = params.text_document.uri
        shown = self._current(uri)
        found = list(shown.found_at(uri, lsp.Range(params.position, params.position))) if shown is not None else []
        if shown is None or not found:
            return None
        text = "\n\n---\n\n".join(markdown(page(code)) for code in dict.fromkeys(f.code for f in found))
        where = shown.places.location(found[0].start, found[0].end).range
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), where)


@dataclass(frozen=True)
class _Shown:
    """What was found in a file or a notebook, and where the editor shows it."""

    opened: Opened
    checked: Checked
    places: Places

    def diagnostic(self, finding: Finding) -> tuple[str, lsp.Diagnostic]:
        """With the address of the document that it belongs to."""
        where = self.places.location(finding.start, finding.end)
        chain = [
            lsp.DiagnosticRelatedInformation(self.places.location(step.start, step.end), step.message)
            for step in finding.chain
        ]
        return where.uri, lsp.Diagnostic(
            range=where.range,
            message=finding.message,
            severity=_SEVERITY[finding.severity],
            code=finding.code,
            source="torchlint",
            related_information=chain,
        )

    def found_at(self, uri: str, place: lsp.Range) -> Iterator[Finding]:
        for finding in self.checked.findings:
            own = self.places.location(finding.start, finding.end)
            if own.uri == uri and own.range.start <= place.end and place.start <= own.range.end:
                yield finding


def _uri(path: Path) -> str:
    return uris.from_fs_path(os.path.abspath(path)) or ""


def _asks_for(only: Sequence[lsp.CodeActionKind | str] | None, kind: str) -> bool:
    """Whether a client that wants some kinds of actions only, or those below them, wants this one."""
    return only is None or any(kind == wanted or kind.startswith(f"{wanted}.") for wanted in map(_value, only))


def _value(kind: lsp.CodeActionKind | str) -> str:
    return str(getattr(kind, "value", kind))


def serve() -> None:
    """Until the client says exit, over stdin and stdout."""
    Editor().server.start_io()
