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
from torchlint.finding import Applicability, Edit, Finding, Severity
from torchlint.pages import markdown, page
from torchlint.source import Source, UnreadableSourceError

FIX_ALL = "source.fixAll.torchlint"
_DELAY = 0.3  # seconds without a key before the text is looked at
_SEVERITY = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFO: lsp.DiagnosticSeverity.Information,
}
_PYTHON = (".py", ".pyi")


@dataclass
class Editor:
    """One connection. What was found last in each open document is kept for fixes and hover, which ask for it."""

    server: LanguageServer = field(default_factory=lambda: LanguageServer("torchlint", __version__))
    _checked: dict[str, tuple[int | None, Checked]] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _said: str = ""

    def __post_init__(self) -> None:
        handlers: dict[str, Callable[..., Any]] = {
            lsp.INITIALIZE: self._initialize,
            lsp.TEXT_DOCUMENT_DID_OPEN: self._opened,
            lsp.TEXT_DOCUMENT_DID_CHANGE: self._typed,
            lsp.TEXT_DOCUMENT_DID_SAVE: self._saved,
            lsp.TEXT_DOCUMENT_DID_CLOSE: self._closed,
            lsp.TEXT_DOCUMENT_CODE_ACTION: self._actions,
            lsp.CODE_ACTION_RESOLVE: self._resolved,
            lsp.TEXT_DOCUMENT_HOVER: self._hover,
        }
        kinds = [lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll]
        options = {lsp.TEXT_DOCUMENT_CODE_ACTION: lsp.CodeActionOptions(code_action_kinds=kinds, resolve_provider=True)}
        for name, handler in handlers.items():
            self.server.feature(name, options.get(name))(partial(handler))  # pygls marks it, which no method takes

    def _initialize(self, params: lsp.InitializeParams) -> None:
        """Paths are relative to the project, as on the command line."""
        root = params.root_uri and uris.to_fs_path(params.root_uri)
        if root and os.path.isdir(root):
            os.chdir(root)

    async def _opened(self, params: lsp.DidOpenTextDocumentParams) -> None:
        await self._check(params.text_document.uri)

    async def _saved(self, params: lsp.DidSaveTextDocumentParams) -> None:
        await self._check(params.text_document.uri)

    async def _typed(self, params: lsp.DidChangeTextDocumentParams) -> None:
        await asyncio.sleep(_DELAY)
        if self._version(params.text_document.uri) == params.text_document.version:
            await self._check(params.text_document.uri)

    def _closed(self, params: lsp.DidCloseTextDocumentParams) -> None:
        self._checked.pop(params.text_document.uri, None)
        self._publish(params.text_document.uri, [])

    async def _check(self, uri: str) -> None:
        """Checks one document at a time, and says nothing of a text that is no longer there."""
        path = uris.to_fs_path(uri)
        if path is None or not path.endswith(_PYTHON):
            return
        async with self._lock:
            document = self.server.workspace.get_text_document(uri)
            version, text = document.version, document.source
            try:
                checked = await asyncio.to_thread(check, Path(path), text)
            except (ConfigError, UnreadableSourceError) as error:
                self._say(str(error))
                return
        self._said = ""
        if self._version(uri) == version:
            self._checked[uri] = version, checked
            self._publish(uri, [self._diagnostic(finding, uri, checked.source) for finding in checked.findings])

    def _version(self, uri: str) -> int | None:
        document = self.server.workspace.text_documents.get(uri)
        return None if document is None else document.version

    def _current(self, uri: str) -> Checked | None:
        """What was found in the text that the document has now."""
        version, checked = self._checked.get(uri, (None, None))
        return checked if checked is not None and version == self._version(uri) else None

    def _say(self, message: str) -> None:
        """A mistake in the settings, once and not at every key."""
        if message != self._said:
            self._said = message
            self.server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, f"torchlint: {message}"))

    def _publish(self, uri: str, diagnostics: Sequence[lsp.Diagnostic]) -> None:
        self.server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, list(diagnostics), self._version(uri))
        )

    def _diagnostic(self, finding: Finding, uri: str, source: Source) -> lsp.Diagnostic:
        chain = [
            lsp.DiagnosticRelatedInformation(lsp.Location(uri, self._range(source, step.start, step.end)), step.message)
            for step in finding.chain
        ]
        return lsp.Diagnostic(
            range=self._range(source, finding.start, finding.end),
            message=finding.message,
            severity=_SEVERITY[finding.severity],
            code=finding.code,
            source="torchlint",
            related_information=chain,
        )

    def _range(self, source: Source, start: int, end: int) -> lsp.Range:
        return lsp.Range(self._position(source, start), self._position(source, end))

    def _position(self, source: Source, offset: int) -> lsp.Position:
        """Columns count in the units that the client has asked for."""
        line = source.line_number(offset)
        before = source.text[source.line_starts[line - 1] : offset]
        return lsp.Position(line - 1, self.server.workspace.position_codec.client_num_units(before))

    def _edits(self, source: Source, edits: Sequence[Edit]) -> list[lsp.TextEdit]:
        return [lsp.TextEdit(self._range(source, edit.start, edit.end), edit.text) for edit in edits]

    def _actions(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        checked, only = self._current(uri), params.context.only
        if checked is None:
            return []
        actions: list[lsp.CodeAction] = []
        if _asks_for(only, lsp.CodeActionKind.QuickFix):
            for finding in self._found_at(checked, params.range):
                actions += self._quick_fixes(finding, checked, uri)
        is_fixable = any(finding.fix is not None for finding in checked.findings)
        if is_fixable and _asks_for(only, FIX_ALL):
            fix_all = lsp.CodeAction("torchlint: fix all", FIX_ALL, data=uri)
            actions.append(fix_all if only is None else self._resolved(fix_all))
        return actions

    def _found_at(self, checked: Checked, place: lsp.Range) -> Iterator[Finding]:
        for finding in checked.findings:
            own = self._range(checked.source, finding.start, finding.end)
            if own.start <= place.end and place.start <= own.end:
                yield finding

    def _quick_fixes(self, finding: Finding, checked: Checked, uri: str) -> Iterator[lsp.CodeAction]:
        about = self._diagnostic(finding, uri, checked.source)

        def action(title: str, changes: dict[str, list[lsp.TextEdit]], is_preferred: bool = False) -> lsp.CodeAction:
            edit = lsp.WorkspaceEdit(changes=changes)
            kind = lsp.CodeActionKind.QuickFix
            return lsp.CodeAction(title, kind, diagnostics=[about], is_preferred=is_preferred, edit=edit)

        fix = finding.fix
        is_offered = fix is not None and fix.applicability is not Applicability.DISPLAY
        if fix is not None and is_offered and all(self._is_saved(other.source) for other in fix.elsewhere):
            made = {_uri(other.source.path): self._edits(other.source, other.edits) for other in fix.elsewhere}
            made |= {uri: self._edits(checked.source, fix.edits)} if fix.edits else {}
            is_safe = fix.applicability is Applicability.SAFE
            note = "" if is_safe else f" (unsafe: {fix.why.rstrip('.')})"
            yield action(f"Fix {finding.code} {finding.name}{note}", made, is_safe)
        comment = suppression(checked, finding)
        if comment:
            yield action(f"Suppress {finding.code} here", {uri: self._edits(checked.source, comment)})

    def _is_saved(self, source: Source) -> bool:
        """Whether another file has no text in the editor that a fix would not know of."""
        document = self.server.workspace.text_documents.get(_uri(source.path))
        return document is None or document.source == source.text

    def _resolved(self, action: lsp.CodeAction) -> lsp.CodeAction:
        """Fix-all with its edit, which is made only once it is wanted."""
        checked = self._current(str(action.data))
        if checked is not None:
            edits = self._edits(checked.source, all_fixes(checked))
            action.edit = lsp.WorkspaceEdit(changes={str(action.data): edits})
        return action

    def _hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        checked = self._current(params.text_document.uri)
        if checked is None:
            return None
        found = list(self._found_at(checked, lsp.Range(params.position, params.position)))
        if not found:
            return None
        text = "\n\n---\n\n".join(markdown(page(code)) for code in dict.fromkeys(f.code for f in found))
        first = found[0]
        where = self._range(checked.source, first.start, first.end)
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), where)


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
