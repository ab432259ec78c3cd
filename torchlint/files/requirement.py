"""The oldest torch that a project says it runs with, read as text from its lists of dependencies, its README, and what
installs it; and the newest that a file can run with."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

_FILES = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "requirements.txt",
    "requirements/base.txt",
    "environment.yml",
    "environment.yaml",
    "cog.yaml",
)
# `requirements-cpu.txt`, `old_requirements.txt`, `environment_gpu.yml`
_OTHER_LIST = re.compile(r"[\w.-]*requirements?[\w.-]*\.txt|(?i:[\w.-]*(?:env|conda)[\w.-]*\.ya?ml)")
_INSTALLER = re.compile(r"(?i)(?:[\w-]+\.)?dockerfile(?:[._-][\w.-]+)?|[\w.-]+\.(?:sh|def)|jenkinsfile")
_GUIDE = re.compile(r"(?i)(?:readme|[\w-]*(?:install|set_?up|requirement|get(?:ting)?_?started)[\w-]*)\.(?:md|rst|txt)")
_READMES = ("README.md", "README.rst", "README.txt", "readme.md")
_MOST_BYTES = 200_000
_MOST_PROGRAMS = 400
_Release = tuple[int, ...]
_STATEMENTS = frozenset(name.rpartition("/")[2] for name in (*_FILES, *_READMES))
_TORCH, _LIBRARY = "(?:py)?torch", "(?P<library>torchvision|torchaudio)"


def _required(name: str) -> re.Pattern[str]:
    """`torch==1.9.0`, `pytorch=1.7`, `torch>=1.6,<2`, `torch = "^1.10"`; not `torch<2`, which names no oldest
    release."""
    return re.compile(
        rf"""(?<![\w./-]){name}(?:\[\w+\])?["']?\s*(?:==?=?|>=|~=)\s*["']?[\^~>=]*\s*v?(?P<version>\d\d?(?!\d)(?:\.\d+)*)"""
    )


def _mentioned(name: str) -> re.Pattern[str]:
    """`PyTorch 1.3`, `pytorch version ≥ 1.7.1`, `Pytorch0.4.1`, `PyTorch (tested with 1.2)`, the link
    `[PyTorch](https://pytorch.org) (>= 1.2)` and the badge `https://img.shields.io/badge/pytorch-1.8-red`; of other
    words the name of another package may be made: `PyTorch Lightning 1.9`."""
    return re.compile(
        rf"""(?i)(?:(?<![\w./-])|(?<=/badge/)){name}(?:\]\([^)\s]*\))?[ \t`*:(_-]*"""
        r"""(?:(?:version|release|install|tested (?:with|on))[ \t`*:]*){0,2}"""
        r"""(?:[=<>~v≥]|%3[DE]){0,2}[ \t`*]*(?P<version>\d\.\d+(?:\.\d+)*)"""
    )


# `* PyTorch 1.11+ (see its page)`, on a line of its own.
_LISTED_IN_GUIDE = re.compile(
    rf"(?im)^[ \t]*[*+-][ \t]+\W*{_TORCH}\W{{0,4}}[=<>~v≥]{{0,2}}[ \t]*(?P<version>\d\.\d+(?:\.\d+)*)"
)
# The channel that had torch until 0.3.
_FIRST_CHANNEL = re.compile(r"conda install\b[^\n]* -c soumith\b")
_LONG_TERM_CHANNEL = re.compile(r"(?<![\w/-])pytorch-lts\b")
_IMAGE = re.compile(r"\bpytorch/pytorch:(?P<version>\d\.\d+(?:\.\d+)*)")
_NVIDIA_IMAGE = re.compile(
    r"(?i)(?:nvidia/pytorch:|pytorch-release-notes/rel_"
    r"|\b(?:nvidia|pytorch|ngc)(?: docker)? (?:container|image),?(?: version| release)?[ \t:(`]*)"
    r"(?P<year>\d\d)[.-]\d\d\b"
)
_OLDEST_OF_YEAR = {18: (0, 4), 19: (1, 0), 20: (1, 4), 21: (1, 8), 22: (1, 11), 23: (1, 13), 24: (2, 2), 25: (2, 6)}
# `conda install pytorch torchvision cudatoolkit=10.0 -c pytorch`; not what else is in that channel.
_TOOLKIT = re.compile(
    r"conda install\b(?=[^\n]* (?<!-c )pytorch(?:\s|$))[^\n]*\bcudatoolkit==?(?P<toolkit>\d+\.\d)[^\n`]*"
)
_TOOLKIT_LISTED = re.compile(r"(?m)^\s*-\s*[\"']?cudatoolkit\s*==?\s*(?P<toolkit>\d+\.\d)")
# `--extra-index-url https://download.pytorch.org/whl/cu113`
_INDEX = re.compile(r"download\.pytorch\.org/whl/cu(?P<major>9|1[01])(?P<minor>\d)\b")
# With the packages of CUDA that came after `cudatoolkit`, torch has been built since 1.13 only.
_NEWEST_WITH_TOOLKIT = {
    "9.0": (1, 1),
    "9.2": (1, 7),
    "10.0": (1, 4),
    "10.1": (1, 8),
    "10.2": (1, 12),
    "11.0": (1, 7),
    "11.1": (1, 10),
    "11.3": (1, 12),
    "11.5": (1, 11),
    "11.6": (1, 12),
}
# `.../torch-1.7.1-cp37-cp37m-linux_x86_64.whl`, `https://data.pyg.org/whl/torch-1.10.0+cu113.html`
_WHEEL = re.compile(r"/torch-(?P<version>\d+\.\d+(?:\.\d+)?)(?=[-+%]|\.html|\.post)")
_VARIABLE = re.compile(
    r"(?i)\b(?:ARG|ENV|export)\s+(?:py)?torch(?:_?ver(?:sion)?)?\s*[=\s]\s*[\"']?(?P<version>\d+\.\d+(?:\.\d+)*)"
)
_COMMENT = re.compile(r"#.*")
_ITERATOR = re.compile(r"(?<![\w.])([\w.]+)\s*=\s*iter\(")
_NEXT = re.compile(r"(?<![\w.])iter\([\w.]+\)\.next\(\)")
# Its `forward` is called on an instance, which has raised since torch 1.5.
_OLD_FUNCTION = re.compile(
    r"^(?P<head>class \w+\((?:\w+\.)*Function\)):.*\n(?:(?:[ \t].*)?\n)*?(?<!@staticmethod\n)[ \t]+def forward\(self\b",
    re.MULTILINE,
)
_FUNCTION_OF_TORCH = re.compile(r"from torch\.autograd(?:\.function)? import [^\n]*\bFunction\b|\bautograd\.Function\b")
_FOREIGN_FUNCTIONS = re.compile(r"^from torch\.utils\.ffi import", re.MULTILINE)  # gone since torch 1.0
_ASYNC = re.compile(r"\.cuda\((?:[^()\n]*,)?\s*async\s*=\s*True")  # no Python since 3.7 reads it
# A number had one dimension until torch 0.4, which still warns.
_OLD_NUMBER = re.compile(r"\b\w*loss\.data\[0\]|\b\w+\.data\.squeeze\(\)\[0\](?!\[|\.)")
_OLD_CALLS = (".next()", "Function):", "torch.utils.ffi", "async=True", "async = True")
_OLD_WORDS = (*_OLD_CALLS, "xrange(", "raw_input(", ".data[0]", ".data.squeeze()[0]")
_PYTHON_2 = re.compile(r"(?<![\w.])(?:xrange|raw_input)\(")
_BOTH_PYTHONS = re.compile(
    r"(?:xrange|raw_input)\s*=|import [^\n]*(?:xrange|raw_input|six|builtins)|def (?:xrange|raw_input)\b|builtins"
)
_LAST_MINOR = {0: 4, 1: 13}  # of the release series that are closed


@dataclass(frozen=True, slots=True)
class TorchRequirement:
    """`file` is relative to the folder of the project, `text` what it says. `is_declared`: a list of dependencies says
    so, and none older is installed."""

    oldest: _Release
    file: str
    text: str
    is_declared: bool = False


def torch_requirement(folder: Path) -> TorchRequirement | None:
    """What the lists of the folder say of an oldest release of torch, or of what goes with one only; None where nothing
    does. A README counts where no list says it."""
    names = dict.fromkeys([*_FILES, *_other_lists(folder)])
    lists = {name: _COMMENT.sub("", text) for name, text in _texts(folder, names)}
    listed = _first(lists, _IN_LISTS)
    if listed is not None:
        return replace(listed, is_declared=not _is_installer(os.path.basename(listed.file)))
    return _first(dict(_texts(folder, _READMES)), _IN_READMES)


def torch_installed(root: Path, files: Iterable[str]) -> TorchRequirement | None:
    """What the files that install a project say, wherever below its root they are: Dockerfiles, shell scripts, lists of
    their own. A guide counts where no Python lies beside it that it may be about alone, a program last."""
    names = [os.path.relpath(file, root) for file in files]
    with_code = {os.path.dirname(name) for name in names if name.endswith(".py")}
    scripts = [name for name in names if _is_installer(os.path.basename(name))]
    guides = [
        name
        for name in names
        if _GUIDE.fullmatch(os.path.basename(name)) and os.path.dirname(name) not in with_code - {""}
    ]
    lists = {name: _COMMENT.sub("", text) for name, text in _texts(root, scripts)}
    programs = [name for name in names if name.endswith(".py")]
    said = _first(lists, _IN_LISTS) or _first(dict(_texts(root, guides)), _IN_GUIDES)
    return said or _first_of_code(root, programs if len(programs) <= _MOST_PROGRAMS else [])


def _first_of_code(root: Path, programs: Iterable[str]) -> TorchRequirement | None:
    for name, text in _texts(root, programs):
        newest = _torch_of_calls(_COMMENT.sub("", text)) if any(word in text for word in _OLD_CALLS) else None
        if newest is not None:
            return TorchRequirement(newest[0], name, newest[1])
    return None


def _first(texts: dict[str, str], readings: Iterable[_Reading]) -> TorchRequirement | None:
    for pattern, release in readings:
        for name, text in texts.items():
            for found in pattern.finditer(text):
                oldest = release(found)
                if oldest is not None:
                    return TorchRequirement(oldest, name, " ".join(found[0].split()))
    return None


def torch_of_code(code: str) -> tuple[_Release, str] | None:
    """The newest torch that a program can run with, and the words that say so: a loss has no first element since 0.5,
    iterators of loaders have no `next()` since 1.13, functions of autograd are no longer called as instances since 1.5,
    and Python 2 has no torch since 1.5."""
    if not any(word in code for word in _OLD_WORDS):
        return None
    code = _COMMENT.sub("", code)
    if (number := _OLD_NUMBER.search(code)) is not None:
        return (0, 4, 1), number[0]
    said = _torch_of_calls(code)
    if said is not None:
        return said
    found = _PYTHON_2.search(code)
    return ((1, 4), found[0]) if found is not None and _BOTH_PYTHONS.search(code) is None else None


def _torch_of_calls(code: str) -> tuple[_Release, str] | None:
    """What calls of torch say of it, in code without its comments."""
    if (ffi := _FOREIGN_FUNCTIONS.search(code)) is not None:
        return (0, 4, 1), ffi[0]
    old = _OLD_FUNCTION.search(code) if _FUNCTION_OF_TORCH.search(code) else None
    if old is not None:
        return (1, 4), old["head"]
    if (copied := _ASYNC.search(code)) is not None:
        return (1, 10), copied[0]
    if ".next()" not in code or "def next(" in code:
        return None
    iterators = sorted({found[1] for found in _ITERATOR.finditer(code)})
    names = "|".join(map(re.escape, iterators))
    found = re.search(rf"(?<![\w.])(?:{names})\.next\(\)" if names else r"(?!)", code) or _NEXT.search(code)
    return ((1, 12), found[0]) if found is not None else None


def is_statement(name: str) -> bool:
    """Whether a file of this name may say what a project runs with."""
    return name in _STATEMENTS or _is_installer(name) or _GUIDE.fullmatch(name) is not None


def _is_installer(name: str) -> bool:
    return _OTHER_LIST.fullmatch(name) is not None or _INSTALLER.fullmatch(name) is not None


def _other_lists(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if _is_installer(name))
    except OSError:
        return []


def _texts(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        try:
            if (folder / name).stat().st_size <= _MOST_BYTES:
                yield name, (folder / name).read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue


def _stated(found: re.Match[str]) -> _Release:
    return _release(found["version"])


def _with_library(found: re.Match[str]) -> _Release | None:
    """The torch that a release of torchvision or torchaudio was made for; None before they were made for one."""
    major, minor, *_ = (*map(int, found["version"].split(".")), 0)
    if found["library"].lower() == "torchaudio":
        return (major or 1, minor) if major or minor >= 4 else None
    if major or minor < 3:
        return None
    if minor >= 15:
        return 2, minor - 15
    return 1, minor - (1 if minor >= 5 else 2)


def _long_term(_: re.Match[str]) -> _Release:
    return 1, 8, 2


def _in_first_channel(_: re.Match[str]) -> _Release:
    return 0, 3


def _in_nvidia_image(found: re.Match[str]) -> _Release | None:
    return _OLDEST_OF_YEAR.get(int(found["year"]))


def _with_toolkit(found: re.Match[str]) -> _Release | None:
    return _NEWEST_WITH_TOOLKIT.get(found["toolkit"])


def _from_index(found: re.Match[str]) -> _Release | None:
    return _NEWEST_WITH_TOOLKIT.get(f"{found['major']}.{found['minor']}")


def _release(said: str) -> _Release:
    """What a version means; `1.81`, which there never was, means 1.8.1."""
    major, *minor = map(int, said.split("."))
    last = _LAST_MINOR.get(major)
    if last is None or not minor or minor[0] <= last:
        return major, *minor
    digits = str(minor[0])
    known = max((end for end in range(1, len(digits)) if int(digits[:end]) <= last), default=len(digits))
    return (major, *(int(part) for part in (digits[:known], digits[known:]) if part))


_Reading = tuple[re.Pattern[str], Callable[[re.Match[str]], _Release | None]]
_IMPLIED: tuple[_Reading, ...] = (
    (_FIRST_CHANNEL, _in_first_channel),
    (_LONG_TERM_CHANNEL, _long_term),
    (_IMAGE, _stated),
    (_NVIDIA_IMAGE, _in_nvidia_image),
    (_TOOLKIT, _with_toolkit),
    (_WHEEL, _stated),
    (_VARIABLE, _stated),
    (_INDEX, _from_index),
)
_IN_LISTS: tuple[_Reading, ...] = (
    (_required(_TORCH), _stated),
    (_required(_LIBRARY), _with_library),
    *_IMPLIED,
    (_TOOLKIT_LISTED, _with_toolkit),
)
_IN_READMES: tuple[_Reading, ...] = ((_mentioned(_TORCH), _stated), (_mentioned(_LIBRARY), _with_library), *_IMPLIED)
# Of other prose than that of the project's own README, only what is to be typed, and the entries of a list.
_IN_GUIDES: tuple[_Reading, ...] = (
    (_required(_TORCH), _stated),
    (_LISTED_IN_GUIDE, _stated),
    (_required(_LIBRARY), _with_library),
    *_IMPLIED,
)
