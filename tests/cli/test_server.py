"""`torchlint server`, driven by a client of its own kind over stdin and stdout."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

LEAK = """import torch

def train(model, loader, optimizer, criterion):
    größe = "😀"; total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        "😀"; total += loss
    return total
"""
FIXED = LEAK.replace("total += loss", "total += loss.detach()")
_PATIENCE = 60  # seconds


class Client:
    """An editor with one open file. Positions count UTF-16 units, as an editor's do that says nothing else."""

    def __init__(self, folder: Path) -> None:
        self.uri, self.folder = (folder / "a.py").as_uri(), folder
        self.text, self.version = "", 0
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self.messages: asyncio.Queue[str] = asyncio.Queue()
        self.editor = LanguageClient("test", "1")
        self.editor.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.published.put_nowait(params))
        self.editor.feature(lsp.WINDOW_SHOW_MESSAGE)(lambda params: self.messages.put_nowait(params.message))

    async def start(self) -> lsp.InitializeResult:
        await self.editor.start_io(sys.executable, "-m", "torchlint", "server")
        notebooks = lsp.NotebookDocumentClientCapabilities(lsp.NotebookDocumentSyncClientCapabilities())
        capabilities = lsp.ClientCapabilities(notebook_document=notebooks)
        params = lsp.InitializeParams(capabilities, root_uri=self.folder.as_uri())
        result = await self.editor.initialize_async(params)
        self.editor.initialized(lsp.InitializedParams())
        return result

    def open(self, text: str) -> None:
        self.text = text
        item = lsp.TextDocumentItem(self.uri, "python", self.version, text)
        self.editor.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def type(self, text: str) -> None:
        self.text, self.version = text, self.version + 1
        document = lsp.VersionedTextDocumentIdentifier(self.version, self.uri)
        whole = lsp.TextDocumentContentChangeWholeDocument(text)
        self.editor.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [whole]))

    def save(self) -> None:
        document = lsp.TextDocumentIdentifier(self.uri)
        self.editor.text_document_did_save(lsp.DidSaveTextDocumentParams(document))

    async def diagnostics(self) -> list[lsp.Diagnostic]:
        return list((await asyncio.wait_for(self.published.get(), _PATIENCE)).diagnostics)

    async def actions(self, place: lsp.Range, *only: str, uri: str = "") -> list[lsp.CodeAction]:
        context = lsp.CodeActionContext([], only or None)
        document = lsp.TextDocumentIdentifier(uri or self.uri)
        found = await self.editor.text_document_code_action_async(lsp.CodeActionParams(document, place, context))
        return [action for action in found or () if isinstance(action, lsp.CodeAction)]

    def after(self, action: lsp.CodeAction) -> str:
        """The text once an editor has made the edits of an action."""
        assert action.edit is not None
        assert action.edit.changes is not None
        return edited(self.text, action.edit.changes[self.uri])


def edited(text: str, edits: Sequence[lsp.TextEdit]) -> str:
    lines = text.splitlines(keepends=True)

    def offset(position: lsp.Position) -> int:
        units = (lines[position.line] if position.line < len(lines) else "").encode("utf-16-le")
        return sum(map(len, lines[: position.line])) + len(units[: 2 * position.character].decode("utf-16-le"))

    for edit in sorted(edits, key=lambda edit: edit.range.start, reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


class Notebook:
    """An open notebook; `cells` are the addresses and texts of its cells of code."""

    def __init__(self, client: Client, **cells: str) -> None:
        self.client, self.version = client, 0
        self.uri = (client.folder / "a.ipynb").as_uri()
        self.cells = {self.address(name): text for name, text in cells.items()}
        self.shown: dict[str, list[lsp.Diagnostic]] = {}
        notebook = lsp.NotebookDocument(self.uri, "jupyter-notebook", 0, list(map(self._cell, self.cells)))
        items = [lsp.TextDocumentItem(uri, "python", 0, text) for uri, text in self.cells.items()]
        client.editor.notebook_document_did_open(lsp.DidOpenNotebookDocumentParams(notebook, items))

    def address(self, name: str) -> str:
        return self.uri.replace("file:", "vscode-notebook-cell:") + "#" + name

    def _cell(self, uri: str) -> lsp.NotebookCell:
        return lsp.NotebookCell(lsp.NotebookCellKind.Code, uri)

    def _change(self, change: lsp.NotebookDocumentCellChanges) -> None:
        identifier = lsp.VersionedNotebookDocumentIdentifier(self.version, self.uri)
        event = lsp.NotebookDocumentChangeEvent(cells=change)
        self.client.editor.notebook_document_did_change(lsp.DidChangeNotebookDocumentParams(identifier, event))

    def type(self, uri: str, text: str) -> None:
        self.version += 1
        self.cells[uri] = text
        document = lsp.VersionedTextDocumentIdentifier(self.version, uri)
        content = lsp.NotebookDocumentCellContentChanges(document, [lsp.TextDocumentContentChangeWholeDocument(text)])
        self._change(lsp.NotebookDocumentCellChanges(text_content=[content]))

    def remove(self, uri: str) -> None:
        self.version += 1
        place = list(self.cells).index(uri)
        del self.cells[uri]
        array = lsp.NotebookCellArrayChange(place, 1)
        structure = lsp.NotebookDocumentCellChangeStructure(array, did_close=[lsp.TextDocumentIdentifier(uri)])
        self._change(lsp.NotebookDocumentCellChanges(structure=structure))

    def close(self) -> None:
        documents = [lsp.TextDocumentIdentifier(uri) for uri in self.cells]
        identifier = lsp.NotebookDocumentIdentifier(self.uri)
        self.client.editor.notebook_document_did_close(lsp.DidCloseNotebookDocumentParams(identifier, documents))

    async def diagnostics(self, number: int | None = None) -> dict[str, list[lsp.Diagnostic]]:
        """Once as many cells as there are, or as many as said, have been told what is found in them."""
        for _ in range(len(self.cells) if number is None else number):
            told = await asyncio.wait_for(self.client.published.get(), _PATIENCE)
            self.shown[told.uri] = list(told.diagnostics)
        return self.shown


def conversation(folder: Path, talk: Callable[[Client], Awaitable[None]]) -> None:
    async def run() -> None:
        client = Client(folder)
        try:
            await client.start()
            await talk(client)
            await client.editor.shutdown_async(None)
        finally:
            client.editor.exit(None)
            await client.editor.stop()

    asyncio.run(asyncio.wait_for(run(), 2 * _PATIENCE))


def test_a_finding_is_shown_explained_and_fixed_where_it_stands(project: Path) -> None:
    async def talk(client: Client) -> None:
        client.open(LEAK)
        (found,) = await client.diagnostics()
        assert (found.code, found.severity, found.source) == ("MEM02", lsp.DiagnosticSeverity.Warning, "torchlint")
        assert found.range.start == lsp.Position(9, 14)  # two units for the character in the string before
        assert found.related_information
        hover = await client.editor.text_document_hover_async(
            lsp.HoverParams(lsp.TextDocumentIdentifier(client.uri), found.range.start)
        )
        assert hover is not None
        assert isinstance(hover.contents, lsp.MarkupContent)
        assert hover.contents.value.startswith("# MEM02 accumulate-graph-tensor")
        fix, ignore, everything = await client.actions(found.range)
        assert fix.title == "Fix MEM02 accumulate-graph-tensor"
        assert fix.is_preferred
        assert client.after(fix) == FIXED
        assert client.after(ignore) == LEAK.replace("+= loss\n", "+= loss  # torchlint: ignore[MEM02]\n")
        assert everything.edit is None
        assert client.after(await client.editor.code_action_resolve_async(everything)) == FIXED
        client.type(FIXED)
        assert await client.diagnostics() == []
        assert await client.actions(found.range) == []

    conversation(project, talk)


def test_fix_all_on_save_comes_with_its_edit(project: Path) -> None:
    async def talk(client: Client) -> None:
        client.open(LEAK)
        await client.diagnostics()
        top = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
        (fix_all,) = await client.actions(top, "source.fixAll")
        assert client.after(fix_all) == FIXED
        assert await client.actions(top, "refactor") == []

    conversation(project, talk)


def test_settings_count_and_a_mistake_in_them_is_said_once(project: Path) -> None:
    (project / "torchlint.toml").write_text('ignore = ["MEM02"]\n')

    async def talk(client: Client) -> None:
        client.open(LEAK)
        assert await client.diagnostics() == []
        (project / "torchlint.toml").write_text('ignroe = ["MEM02"]\n')
        for _ in range(2):
            client.save()
        message = await asyncio.wait_for(client.messages.get(), _PATIENCE)
        assert "did you mean `ignore`?" in message
        (project / "torchlint.toml").write_text("")
        client.save()
        assert [found.code for found in await client.diagnostics()] == ["MEM02"]
        assert client.messages.empty()

    conversation(project, talk)


def test_what_is_half_typed_is_a_finding_and_no_end(project: Path) -> None:
    async def talk(client: Client) -> None:
        client.open(LEAK)
        await client.diagnostics()
        client.type(LEAK + "def (\n")
        assert [found.code for found in await client.diagnostics()] == ["LINT01"]
        client.type(LEAK)
        assert [found.code for found in await client.diagnostics()] == ["MEM02"]

    conversation(project, talk)


SETUP = "%matplotlib inline\nimport torch\n"
STEP = """def train(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        "😀"; total += loss
    return total"""


def test_a_notebook_is_one_program_whose_cells_show_what_is_found_in_them(project: Path) -> None:
    async def talk(client: Client) -> None:
        book = Notebook(client, setup=SETUP, step=STEP, last="!ls")
        setup, step, last = book.cells
        shown = await book.diagnostics()
        assert (shown[setup], shown[last]) == ([], [])
        (found,) = shown[step]
        assert (found.code, found.range.start) == ("MEM02", lsp.Position(7, 14))
        assert {related.location.uri for related in found.related_information or ()} == {step}
        assert await client.actions(found.range, "quickfix", uri=setup) == []
        hover = await client.editor.text_document_hover_async(
            lsp.HoverParams(lsp.TextDocumentIdentifier(step), found.range.start)
        )
        assert hover is not None
        fix, ignore, everything = await client.actions(found.range, uri=step)
        fixed = STEP.replace("+= loss", "+= loss.detach()")
        for action in (fix, await client.editor.code_action_resolve_async(everything)):
            assert action.edit is not None
            assert {uri: edited(book.cells[uri], edits) for uri, edits in (action.edit.changes or {}).items()} == {
                step: fixed
            }
        assert ignore.edit is not None
        (comment,) = (ignore.edit.changes or {}).values()
        assert edited(STEP, comment) == STEP.replace("+= loss\n", "+= loss  # torchlint: ignore[MEM02]\n")
        assert await client.actions(found.range, "source.fixAll", uri=step) == []  # it is no program of its own
        (on_save,) = await client.actions(found.range, "notebook.source.fixAll", uri=step)
        assert on_save.edit is not None
        book.type(step, fixed)
        assert (await book.diagnostics())[step] == []

    conversation(project, talk)


def test_cells_of_a_notebook_come_and_go(project: Path) -> None:
    async def talk(client: Client) -> None:
        book = Notebook(client, setup=SETUP, step=STEP, broken="def (")
        setup, step, broken = book.cells
        shown = await book.diagnostics()
        assert ([found.code for found in shown[broken]], shown[step]) == (["LINT01"], [])
        book.remove(broken)
        shown = await book.diagnostics(3)
        assert (shown[broken], [found.code for found in shown[step]]) == ([], ["MEM02"])
        book.type(setup, SETUP + "# torchlint: ignore-file[MEM02]\n")
        assert (await book.diagnostics())[step] == []
        book.type(setup, SETUP)
        assert [found.code for found in (await book.diagnostics())[step]] == ["MEM02"]
        book.close()
        assert (await book.diagnostics())[step] == []

    conversation(project, talk)


def test_a_file_whose_address_is_quoted_is_checked(project: Path) -> None:
    folder = project / "a b ü"
    folder.mkdir()

    async def talk(client: Client) -> None:
        client.open(LEAK)
        (found,) = await client.diagnostics()
        fix, *_ = await client.actions(found.range)
        assert client.after(fix) == FIXED

    conversation(folder, talk)


def test_without_pygls_the_server_says_what_to_install(project: Path) -> None:
    hidden = (
        "import sys; sys.modules['pygls'] = sys.modules['lsprotocol'] = None\nfrom torchlint.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", hidden, "server"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'torchlint[server]' (from a checkout: '.[server]')" in done.stderr
