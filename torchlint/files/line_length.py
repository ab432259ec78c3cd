"""How long the lines of a file may be, as the project tells its formatter or its linter."""

from __future__ import annotations

import configparser
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FORMATTERS_DEFAULT = 88  # of Black and of Ruff
_LIMITS = (79, _FORMATTERS_DEFAULT, 100, 120)
_SMALL = 100  # lines: fewer do not show a limit
_INI_FILES = ("setup.cfg", "tox.ini", ".flake8")
_TOML_FILES = ("pyproject.toml", "ruff.toml", ".ruff.toml")
SETTINGS = (*_TOML_FILES, *_INI_FILES)
_INI_SECTIONS = ("flake8", "pycodestyle")


def customary(lines: Iterable[str]) -> int:
    """Characters, where nothing is said: the least of the customary limits that all lines of the file keep to, if there
    are enough of them to tell; otherwise 100, or as many as the file's own lines have, but no more than 120."""
    lengths = [len(line) for line in lines]
    longest = max(lengths, default=0)
    kept = _LIMITS if len(lengths) > _SMALL else _LIMITS[2:]
    if longest > _LIMITS[-2]:
        return min(longest, _LIMITS[-1])
    return next(limit for limit in kept if longest <= limit)


def configured(folder: Path) -> int | None:
    """Characters, where a file of settings in the folder says so; a formatter that is set up without has its own."""
    project, *own = (_toml(folder / name) for name in _TOML_FILES)
    tools = _table(project or {}, "tool") or {}
    sections = [*own, _table(tools, "ruff"), _table(tools, "black")]
    tables = [section for section in sections if section is not None]
    given = [section["line-length"] for section in tables if "line-length" in section]
    given += [text for name in _INI_FILES for text in _ini(folder / name)]
    given += [_FORMATTERS_DEFAULT for section in tables if "line-length" not in section]
    return next((length for length in map(_number, given) if length is not None), None)


def _toml(path: Path) -> Mapping[str, Any] | None:
    try:
        document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document


def _table(document: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    found = document.get(name)
    return found if isinstance(found, Mapping) else None


def _ini(path: Path) -> list[str]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, configparser.Error):
        return []
    keys = ("max-line-length", "max_line_length")
    return [parser[section][key] for section in _INI_SECTIONS for key in keys if parser.has_option(section, key)]


def _number(given: object) -> int | None:
    try:
        length = int(str(given))
    except ValueError:
        return None
    return length if length > 0 else None
