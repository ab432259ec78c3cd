"""Files that nobody meant to write: damaged, cut short, in mixed encodings, of monstrous size or depth.

The seeds are the examples of the rules' own pages, so that damaged files still have findings and fixes.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from torchlint.rule import all_rules

Damage = Callable[[bytes, Random], bytes]


@dataclass(frozen=True)
class Hostile:
    name: str
    data: bytes


def examples() -> list[bytes]:
    """The code of every rule's page that has its problem."""
    pages = (rule.page().partition("## Example")[2] for rule in all_rules().values())
    return [re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0].encode() for page in pages]


def hostile_files(number: int, seed: int) -> Iterator[Hostile]:
    """The same files for the same seed; every kind of damage in turn."""
    random, seeds = Random(seed), examples()
    kinds = [*_DAMAGES, *_NOTEBOOK_DAMAGES]
    for index in range(number):
        damage = kinds[index % len(kinds)]
        data = random.choice(seeds)
        is_notebook = damage in _NOTEBOOK_DAMAGES
        if is_notebook:
            data = damage(_notebook([data, *random.sample(seeds, 2)]), random)
        else:
            data = damage(data, random)
            if random.random() < 0.15:
                data, is_notebook = _notebook([data, *random.sample(seeds, 2)]), True
        if data and random.random() < 0.15:
            data = random.choice(_DAMAGES[:5])(data, random)
        yield Hostile(f"{index:03}_{damage.__name__.strip('_')}.{'ipynb' if is_notebook else 'py'}", data)


def _notebook(cells: list[bytes]) -> bytes:
    sources = (cell.decode("utf-8", "surrogateescape").splitlines(keepends=True) for cell in cells)
    entries = [
        {"cell_type": "code", "source": lines, "metadata": {}, "outputs": [], "execution_count": None}
        for lines in sources
    ]
    return json.dumps({"cells": entries, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1).encode()


def _place(data: bytes, random: Random) -> int:
    return random.randrange(len(data) + 1)


def _line_place(data: bytes, random: Random) -> int:
    """The start of some line."""
    return random.choice([0, *(match.end() for match in re.finditer(b"\n", data))])


def _inserted(data: bytes, text: bytes, place: int) -> bytes:
    return data[:place] + text + data[place:]


def _flipped_bytes(data: bytes, random: Random) -> bytes:
    flipped = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8, 64))):
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
    return bytes(flipped)


def _cut_short(data: bytes, random: Random) -> bytes:
    return data[: _place(data, random)]


def _without_a_piece(data: bytes, random: Random) -> bytes:
    start, end = sorted((_place(data, random), _place(data, random)))
    return data[:start] + data[min(end, start + 40) :]


def _repeated_piece(data: bytes, random: Random) -> bytes:
    start, end = sorted((_place(data, random), _place(data, random)))
    return _inserted(data, data[start:end] * random.choice((1, 3, 50)), _place(data, random))


def _foreign_bytes(data: bytes, random: Random) -> bytes:
    foreign = (b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x1a", b"\x0c", b"\x1b[31m", b"\xe2\x80\xa8")
    for _ in range(random.choice((1, 2, 5))):
        data = _inserted(data, random.choice(foreign), _place(data, random))
    return data


def _swapped_lines(data: bytes, random: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    for _ in range(random.choice((1, 3, 10))):
        a, b = random.randrange(len(lines)), random.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def _shifted_indentation(data: bytes, random: Random) -> bytes:
    blanks = (b" ", b"\t", b"  ", b"\x0c", b" \t ", b"")
    lines = (random.choice(blanks) + line if random.random() < 0.2 else line for line in data.splitlines(keepends=True))
    return b"".join(lines)


def _mixed_newlines(data: bytes, random: Random) -> bytes:
    return b"".join(line + random.choice((b"\n", b"\r", b"\r\n", b"\n\r")) for line in data.split(b"\n"))


def _mixed_encodings(data: bytes, random: Random) -> bytes:
    half = _line_place(data, random)
    other = (data[half:] + "x = 'grün, 学习, 🔥'\n".encode()).decode()
    codec = random.choice(("utf-16", "utf-32", "latin-1", "cp1252", "shift-jis", "utf-8-sig", "utf-7"))
    return data[:half] + other.encode(codec, "replace")


def _declared_encoding(data: bytes, random: Random) -> bytes:
    names = ("latin-1", "utf-16", "ascii", "rot13", "utf-7", "cp037", "no-such", "hex", "idna", "mbcs", "big5", "\xff")
    mark = random.choice((b"", b"", b"\xef\xbb\xbf"))
    cookie = f"# -*- coding: {random.choice(names)} -*-\n".encode("latin-1")
    return mark + cookie + data + "note = 'grün'\n".encode(random.choice(("utf-8", "latin-1")))


def _other_encoding(data: bytes, random: Random) -> bytes:
    return data.decode().encode(random.choice(("utf-16", "utf-32-be", "utf-7", "cp037")))


def _deep_nesting(data: bytes, random: Random) -> bytes:
    depth = random.choice((90, 150, 250, 1000, 20_000))
    deep = random.choice((
        "x = " + "(" * depth + "torch.ones(1)" + ")" * depth,
        "x = " + "[" * depth,
        "x = " + "-" * depth + "1",
        "x = " + "not " * depth + "1",
        "x = " + "lambda: " * depth + "1",
        "x = y" + ".relu()" * depth,
        "x = " + "y if z else " * depth + "w",
        "x = y" + "[0]" * depth,
        "x = " + "f'{" * min(depth, 500) + "1" + "}'" * min(depth, 500),
        "x = 1" + " + 1" * depth,
        "x = " + "{1: " * depth + "2" + "}" * depth,
    ))  # fmt: skip
    return _inserted(data, deep.encode() + b"\n", _line_place(data, random))


def _deep_blocks(data: bytes, random: Random) -> bytes:
    depth = random.choice((20, 60, 99, 101, 400))
    word = random.choice(("if x:", "for x in y:", "while x:", "def f(x):", "class C:", "try:", "with x:"))
    blocks = "".join(" " * level + word + "\n" for level in range(depth)) + " " * depth + "pass\n"
    return _inserted(data, blocks.encode(), _line_place(data, random))


def _enormous_line(data: bytes, random: Random) -> bytes:
    size = random.choice((5_000, 100_000, 1_000_000))
    line = random.choice((
        "x = '" + "a" * size + "'",
        "x = [" + "1, " * (size // 30) + "]",
        "# torchlint: ignore[" + "MEM01, " * (size // 8) + "]",
        "x = 1 # noqa: " + "MEM01," * (size // 8),
        "x = " + "9" * min(size, 100_000),
        "a" * size + " = torch.ones(1)",
        "x = torch.ones(1)" + "; x = x + 1" * (size // 1000),
        "#" + " " * size,
    ))  # fmt: skip
    return _inserted(data, line.encode() + b"\n", _line_place(data, random))


def _odd_suppressions(data: bytes, random: Random) -> bytes:
    comments = (
        "# torchlint: ignore[",
        "# torchlint: ignore[]]]",
        "# torchlint: ignore-file",
        "# torchlint: ignore[\x00]",
        "# torchlint: ignore[LINT03]",
        "# torchlint: ignore[" + "[" * 2000,
        "# noqa: :,:,",
        "# torchlint: ignore[ＭＥＭ01] ｗｉｄｅ",
        "# torchlint: ignore[MEM01] \u202e reversed",
    )
    lines = data.decode().split("\n")
    for _ in range(4):
        index = random.randrange(len(lines))
        lines[index] += random.choice(("", "  ", "\t", "\\")) + random.choice(comments)
    return "\n".join(lines).encode()


def _continued_lines(data: bytes, random: Random) -> bytes:
    return b"".join(
        line.replace(b" ", b" \\\n", 1) if random.random() < 0.3 else line for line in data.splitlines(keepends=True)
    )


def _odd_syntax(data: bytes, random: Random) -> bytes:
    pieces = (
        "print 'python 2', x\n",
        "exec 'x = 1' in {}\n",
        "async = 1\n",
        "match x:\n    case {'a': [1, *_]} | C(y=1) as z if z:\n        pass\n",
        "type X[T] = list[T]\n",
        "def f[T: int](x: T, /, *, y) -> T: ...\n",
        "try:\n    pass\nexcept* ValueError:\n    pass\n",
        "x = f'{y!r:>{w}} {z=}'\n",
        "x = t'{y}'\n",
        "with (open('a') as a, open('b') as b,):\n    pass\n",
        "x = (yield)\n",
        "𝒙 = ｘ = 1; del 𝒙\n",
        "return 1\n",
        "nonlocal x\n",
        "*a, = b; (c) = d; e[f], g.h = i\n",
        "for x in *a, *b: pass\n",
        "del ()\n",
        "break\n",
        "class C(metaclass=M, **k): x: int; (y): int = 1\n",
        "@(lambda f: f)\ndef g(): global torch; torch = 0\n",
        "lambda *, x=(yield): (x := 1)\n",
        "raise E from None; assert 0, (await x)\n",
        "import torch as torch, torch.nn as torch\n",
        "from . import *; from .... import torch\n",
        "def f():\n\tif x:\n        pass\n",
    )
    for piece in random.sample(pieces, 3):
        data = _inserted(data, piece.encode(), _line_place(data, random))
    return data


def _no_code_at_all(data: bytes, random: Random) -> bytes:
    return random.choice((
        b"torch",
        b"torch\0" * 1000,
        b"\xef\xbb\xbftorch",
        bytes(random.randrange(256) for _ in range(2000)) + b"torch",
        b"#torch\r",
        b"'''torch",
        b"\\\n" * 500 + b"torch",
        b"\x80\x04\x95 torch pickle",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:torch\n",
        b"<<<<<<< HEAD\nimport torch\n=======\nimport torch as t\n>>>>>>> branch\n",
    ))  # fmt: skip


def _half_notebook(data: bytes, random: Random) -> bytes:
    return data[: _place(data, random)] + random.choice((b"", b"]}", b'"]}]}', b"\0"))


def _odd_notebook(data: bytes, random: Random) -> bytes:
    notebook = json.loads(data)
    cell = random.choice(notebook["cells"])
    odd = random.choice(("a list", None, 7, {"torch": 1}, [], [[]], [1], "", {"a": {"b": []}}, ["x\n", None], True))
    place = random.choice(("cells", "cell", "source", "cell_type", "metadata", "document", "language", "twice"))
    if place == "cells":
        notebook["cells"] = odd
    elif place == "cell":
        notebook["cells"].insert(random.randrange(3), odd)
    elif place in ("source", "cell_type"):
        cell[place] = odd
    elif place == "metadata":
        notebook["metadata"] = odd
    elif place == "language":
        notebook["metadata"] = {"language_info": odd, "kernelspec": {"language": odd}}
    elif place == "document":
        notebook = [notebook, odd]
    text = json.dumps(notebook, indent=random.choice((None, 1, "\t")), ensure_ascii=random.random() < 0.5)
    if place == "twice":
        text = text.replace('"source":', '"source": ["import torch\\n"], "source":', 2)
    return text.encode()


def _odd_cells(data: bytes, random: Random) -> bytes:
    notebook = json.loads(data)
    for source in (cell["source"] for cell in notebook["cells"]):
        odd = (
            "%%bash\n",
            "%time x = 1\n",
            "!ls {x}\n",
            "?x\n",
            "x = !ls\n",
            "\ud800\n",
            "\u2028\n",
            "'''\n",
            "await f()\n",
        )
        source.insert(random.randrange(len(source) + 1), random.choice(odd))
    return json.dumps(notebook).encode()


def _deep_notebook(data: bytes, random: Random) -> bytes:
    depth = random.choice((500, 5_000, 100_000))
    return data.rstrip()[:-1] + b', "deep": ' + b"[" * depth + b"]" * depth + b"}"


_DAMAGES: tuple[Damage, ...] = (
    *(_flipped_bytes, _cut_short, _without_a_piece, _repeated_piece, _foreign_bytes),
    *(_swapped_lines, _shifted_indentation, _mixed_newlines, _mixed_encodings, _declared_encoding, _other_encoding),
    *(_deep_nesting, _deep_blocks, _enormous_line, _odd_suppressions, _continued_lines, _odd_syntax, _no_code_at_all),
)
_NOTEBOOK_DAMAGES: tuple[Damage, ...] = (_half_notebook, _odd_notebook, _odd_cells, _deep_notebook)


def plant_oddities(folder: Path) -> None:
    """What a folder can hold beside readable files: links in circles, pipes, folders with the names of files."""
    (folder / "circle.py").symlink_to("circle.py")
    (folder / "a_link.py").symlink_to("b_link.py")
    (folder / "b_link.py").symlink_to("a_link.py")
    (folder / "dangling.py").symlink_to("gone.py")
    (folder / "inner").mkdir()
    (folder / "inner" / "up").symlink_to(folder)
    (folder / "folder.py").mkdir()
    (folder / "device.py").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.py")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(os.path.relpath(folder / "socket.py"))
    (folder / os.fsdecode(b"not \xff utf-8.py")).write_bytes(examples()[0])
    (folder / "new\nline \x1b[31m.py").write_bytes(examples()[0])
    (folder / "read_only.py").write_bytes(examples()[0])
    (folder / "read_only.py").chmod(0o444)
