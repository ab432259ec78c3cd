"""Which files hold a project's own tests, whose time and memory nobody waits for."""

from __future__ import annotations

import re
from pathlib import Path

_SUITES = frozenset({"tests", "unittests", "unit_tests"})
_FOLDERS = _SUITES | {"test", "testing"}
_NAME = re.compile(r"(test_\w+|\w+_test|conftest)\.(py|ipynb)")
_FRAMEWORK = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+(?:pytest|unittest|absl\.testing|torch\.testing\._internal)\b", re.M
)
_TEST = re.compile(r"^(?:async )?def test_\w+\(|^class (?:Test\w+|\w*Test(?:Case)?\(\w*Test(?:Case)?\))", re.M)
_TEST_ALONE = re.compile(r"^(?:async )?def test_\w+\(\)", re.M)
_ASSERT = re.compile(r"^[ \t]+assert\b", re.M)
_ASSERTING_TEST = re.compile(
    r"^(?:(?:async )?def test_\w+\(.*|class Test\w+.*)\n(?:(?:[ \t].*)?\n)*?[ \t]+assert\b", re.M
)


def is_test_code(path: Path, text: str) -> bool:
    """Whether the name or the folder of a file says tests, and its text too: a script such as `test_net.py`, which
    evaluates a network, holds none. Where the name alone says so, a test has to assert something itself; where the
    folder says so as well, it need not, and may be run as a script, too: outside of a suite if it takes nothing."""
    folders = {part.lower() for part in path.parts[:-1]}
    is_in_folder, is_named = not _FOLDERS.isdisjoint(folders), _NAME.fullmatch(path.name) is not None
    if not is_in_folder and not is_named:
        return False
    if _FRAMEWORK.search(text):
        return True
    is_in_suite = not _SUITES.isdisjoint(folders)
    if is_named and is_in_folder and (_TEST if is_in_suite else _TEST_ALONE).search(text):
        return True
    if "__main__" in text:
        return False
    if is_in_folder:
        return _TEST.search(text) is not None and _ASSERT.search(text) is not None
    return _ASSERTING_TEST.search(text) is not None
