#!/usr/bin/env python3
"""Run torchlint over a folder of checked-out repositories and hold every rewrite to the promises of a fix.

usage: sweep.py CORPUS [--only NAME ...] [--keep FOLDER] [--torchlint "COMMAND"]

Every sub-folder of CORPUS is one repository; nothing in it is changed, its Python files and notebooks are copied first,
with what says which torch they are for.
`check` must not crash, must not write, and must analyse every file that compiles. After `--fix`, and from a fresh copy
after `--fix --unsafe-fixes`, every file that compiled still compiles, no comment is gone, ruff sees no new undefined or
unused name, only lines that a finding speaks of have changed, and a second run changes nothing. One line per
repository, then the defects; exit 1 if there are any.
`--keep` leaves the rewritten copies there, as safe/NAME and unsafe/NAME, for reading the diffs.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SUFFIXES = {".py", ".pyi", ".ipynb"}
SAYS_WHICH_TORCH = re.compile(r"(?i)(readme.*|.*requirements.*\.txt|environment.*\.ya?ml|pyproject\.toml|setup\.cfg)$")
FAILURES = {"LINT02", "LINT04", "LINT06"}
LEFT_ALONE = {"LINT01", "LINT05"}
MODES = {"safe": ["--fix"], "unsafe": ["--fix", "--unsafe-fixes"]}

Tree = dict[str, bytes]


@dataclass
class Outcome:
    """What the sweep saw in one repository."""

    name: str
    files: int = 0
    findings: int = 0
    seconds: float = 0.0
    changed: dict[str, list[str]] = field(default_factory=dict)
    defects: list[str] = field(default_factory=list)


def read(root: Path) -> Tree:
    """The code files below `root`, by relative path, and those that say which torch they need; links are left out."""
    wanted = (path for path in sorted(root.rglob("*")) if ".git" not in path.parts)
    found = (path for path in wanted if path.suffix in SUFFIXES or SAYS_WHICH_TORCH.match(path.name))
    plain = (path for path in found if path.is_file() and not path.is_symlink())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in plain}


def write(tree: Tree, root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for name, content in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def cells(name: str, content: bytes) -> list[str]:
    """The source of a file as one text, or of a notebook as one text per code cell."""
    if not name.endswith(".ipynb"):
        return [decoded(content)]
    try:
        notebook = json.loads(content)
        return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError):
        return []


def decoded(content: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError):
        return content.decode("latin-1")


def compiles(source: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(source.removeprefix("\ufeff"), "swept", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def comments(source: str) -> Counter[str]:
    found: Counter[str] = Counter()
    try:
        for token in tokenize.generate_tokens(io.StringIO(source.removeprefix("\ufeff")).readline):
            if token.type == tokenize.COMMENT:
                found[token.string] += 1
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


def changed_lines(before: str, after: str) -> Iterator[int]:
    """1-based lines of `before` that are gone or different; an insertion counts as the line it stands before."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    for tag, start, end, _, _ in matcher.get_opcodes():
        if tag != "equal":
            yield from range(start + 1, max(end, start + 1) + 1)


def spoken_of(findings: list[dict[str, Any]]) -> set[int]:
    """Lines of the findings and of the edits of their fixes, one line of grace on either side."""
    lines: set[int] = set()
    for finding in findings:
        for place in (finding, *(finding["fix"]["edits"] if finding["fix"] else [])):
            lines.update(range(place["line"] - 1, place["end_line"] + 2))
    return lines


def imports(code: str) -> set[int]:
    """Lines that import something, and blank ones beside them: a later pass takes one away with the last use of its
    name."""
    lines = [line.strip() for line in code.splitlines()]
    found = {number for number, line in enumerate(lines, 1) if line.startswith(("import ", "from "))}
    around = {number + step for number in found for step in (-2, -1, 1, 2)}
    return found | {number for number in around if 0 < number <= len(lines) and not lines[number - 1]}


def compare(name: str, before: bytes, after: bytes, findings: list[dict[str, Any]]) -> Iterator[str]:
    """What is wrong with the rewrite of one file."""
    old_cells, new_cells = cells(name, before), cells(name, after)
    if len(old_cells) != len(new_cells):
        yield "the notebook lost or gained code cells"
        return
    for number, (old, new) in enumerate(zip(old_cells, new_cells, strict=True)):
        place = f"code cell {number}: " if len(old_cells) > 1 else ""
        if compiles(old) and not compiles(new):
            yield f"{place}no longer compiles"
        if lost := comments(old) - comments(new):
            yield f"{place}comments lost: {sorted(lost)}"
        stray = sorted(set(changed_lines(old, new)) - spoken_of(findings) - imports(old))
        if stray and not name.endswith(".ipynb"):
            yield f"lines {stray} changed, but no finding speaks of them"


def run(command: list[str], root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=3600)


def lint(torchlint: list[str], root: Path, options: list[str], defects: list[str]) -> list[dict[str, Any]]:
    """The findings of one run; a crash, an exit code above 1 and a broken report become defects."""
    done = run([*torchlint, "check", "--output-format", "json", "--no-cache", "--isolated", *options, "."], root)
    label = " ".join(["check", *options])
    findings: list[dict[str, Any]] = []
    try:
        findings = json.loads(done.stdout or "[]")
    except ValueError:
        defects.append(f"{label}: the report is not JSON: {done.stdout[:200]!r}")
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        said = [f"{found['path']}: {found['message']}" for found in findings if found["code"] in FAILURES]
        defects.append(f"{label}: exit {done.returncode}: {said or done.stderr.strip()[-800:]}")
    return findings


def names_reported(root: Path) -> Counter[tuple[str, str, str]]:
    """What ruff says of undefined and unused names below `root`."""
    select = ["--isolated", "--no-cache", "--select", "F401,F811,F821,F822,F823,F841", "--output-format", "json"]
    done = run([sys.executable, "-m", "ruff", "check", *select, "--exit-zero", "."], root)
    found = json.loads(done.stdout or "[]")
    return Counter(
        (Path(item["filename"]).relative_to(root.resolve()).as_posix(), item["code"] or "syntax", item["message"])
        for item in found
    )


def sweep_mode(mode: str, torchlint: list[str], original: Tree, findings: list[dict[str, Any]], root: Path) -> Outcome:
    """Rewrite a fresh copy at `root` and compare it with the original."""
    outcome = Outcome(mode)
    write(original, root)
    known = names_reported(root)
    lint(torchlint, root, MODES[mode], outcome.defects)
    rewritten = read(root)
    changed = [name for name in original if rewritten.get(name) != original[name]]
    outcome.changed[mode] = changed
    if set(rewritten) != set(original):
        outcome.defects.append(f"files appeared or vanished: {sorted(set(rewritten) ^ set(original))}")
    for name in changed:
        spoken = [finding for finding in findings if finding["path"] == name]
        wrong = compare(name, original[name], rewritten.get(name, b""), spoken)
        outcome.defects += [f"{name}: {defect}" for defect in wrong]
    for name, code, message in names_reported(root) - known:
        outcome.defects.append(f"{name}: new {code} {message}")
    if changed:
        lint(torchlint, root, MODES[mode], outcome.defects)
        again = read(root)
        outcome.defects += [
            f"{name}: a second run changed it again" for name in again if again[name] != rewritten[name]
        ]
    return outcome


def sweep(repository: Path, torchlint: list[str], kept: Path) -> Outcome:
    outcome = Outcome(repository.name)
    original = read(repository)
    outcome.files = sum(Path(name).suffix in SUFFIXES for name in original)
    untouched = kept / "checked" / repository.name
    write(original, untouched)
    started = time.perf_counter()
    findings = lint(torchlint, untouched, [], outcome.defects)
    outcome.seconds = time.perf_counter() - started
    outcome.findings = len(findings)
    for found in findings:
        if found["code"] in LEFT_ALONE and found["path"].endswith(".py") and compiles(decoded(original[found["path"]])):
            outcome.defects.append(f"check: {found['path']} compiles, but was left alone: {found['message']}")
    if read(untouched) != original:
        outcome.defects.append("check without --fix wrote to a file")
    shutil.rmtree(untouched)
    for mode in MODES:
        rewritten = sweep_mode(mode, torchlint, original, findings, kept / mode / repository.name)
        outcome.changed |= rewritten.changed
        outcome.defects += [f"{mode}: {defect}" for defect in rewritten.defects]
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--torchlint", default=shlex.quote(str(Path(sys.executable).with_name("torchlint"))))
    args = parser.parse_args()
    repositories = [path for path in sorted(args.corpus.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch:
        for repository in repositories:
            if args.only and repository.name not in args.only:
                continue
            outcome = sweep(repository, shlex.split(args.torchlint), (args.keep or Path(scratch)).resolve())
            outcomes.append(outcome)
            changed = ", ".join(f"{len(names)} changed by {mode} fixes" for mode, names in outcome.changed.items())
            print(
                f"{outcome.name}: {outcome.files} files, {outcome.findings} findings in {outcome.seconds:.1f} s, "
                f"{changed}, {len(outcome.defects)} defects",
                flush=True,
            )
            for defect in outcome.defects:
                print(f"  {defect}", flush=True)
    print(
        f"{len(outcomes)} repositories, {sum(item.files for item in outcomes)} files, "
        f"{sum(item.findings for item in outcomes)} findings, {sum(len(item.defects) for item in outcomes)} defects"
    )
    return int(any(item.defects for item in outcomes))


if __name__ == "__main__":
    sys.exit(main())
