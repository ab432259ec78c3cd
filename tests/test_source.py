"""Bytes to text and back: encodings, byte order marks, newlines and positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.finding import Edit
from torchlint.source import Source, UnreadableSourceError, splice

PATH = Path("module.py")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"x = 1", id="no final newline"),
        pytest.param(b"x = 1\r\ny = 2\r\n", id="crlf"),
        pytest.param(b"x = 1\r\ny = 2\nz = 3\r", id="mixed newlines"),
        pytest.param(b"\xef\xbb\xbfx = 1\n", id="byte order mark"),
        pytest.param(b"# -*- coding: latin-1 -*-\nx = '\xe4'\n", id="latin-1"),
        pytest.param(b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n", id="cp1252 on line two"),
        pytest.param("x = '\u2028'\n".encode(), id="a line separator inside a string"),
        pytest.param(b"x = 1\x0c\ny = 2\n", id="form feed"),
    ],
)
def test_an_edit_changes_nothing_but_its_own_place(data: bytes) -> None:
    source = Source.from_bytes(data, PATH)
    assert source.apply([]).data == data
    assert source.apply([Edit(0, 0, "y")]).data == source.bom + b"y" + data[len(source.bom) :]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"# coding: klingon\n", "klingon", id="unknown encoding"),
        pytest.param(b"x = '\xff\xfe'\n", "encoding declaration", id="invalid utf-8"),
        pytest.param(b"x = 1\n" * 500 + b"# \xff\n", "utf-8", id="invalid utf-8 far down"),
        pytest.param(b"\xef\xbb\xbf# coding: latin-1\n", "utf-8", id="mark and declaration disagree"),
    ],
)
def test_bytes_that_are_no_text(data: bytes, message: str) -> None:
    with pytest.raises(UnreadableSourceError, match=message):
        Source.from_bytes(data, PATH)


def test_characters_that_the_encoding_lacks_are_refused() -> None:
    source = Source.from_bytes(b"# coding: ascii\nx = 1\n", PATH)
    with pytest.raises(UnicodeEncodeError):
        source.apply([Edit(0, 0, "\u2192")])


def test_lines_and_columns_count_characters() -> None:
    source = Source.from_text("a = 'ä'; b\r\nc\rd\u2028e\n", PATH)
    where = {character: source.locate(source.text.index(character)) for character in "abcde"}
    assert where == {"a": (None, 1, 1), "b": (None, 1, 10), "c": (None, 2, 1), "d": (None, 3, 1), "e": (None, 3, 3)}


def test_the_end_of_the_text_has_a_place() -> None:
    assert Source.from_text("x\n", PATH).locate(2) == (None, 2, 1)
    assert Source.from_text("", PATH).locate(0) == (None, 1, 1)


def test_lines_come_without_their_newlines() -> None:
    source = Source.from_text("a\r\nb\rc", PATH)
    assert [source.line(number) for number in (1, 2, 3)] == ["a", "b", "c"]


def test_edits_at_one_place_keep_their_order() -> None:
    assert splice("ac", [Edit(1, 1, "b"), Edit(1, 1, "B"), Edit(0, 1, "x")]) == "xbBc"
