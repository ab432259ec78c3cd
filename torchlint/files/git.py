"""The questions that torchlint has for git.

Git is called by its arguments, never through a shell. Objects go to it on standard input and names come back between
null bytes, so that no name of a file or a branch can be taken for anything else.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from torchlint.config import ConfigError, nearest

_FILE_MODES = ("100644", "100755")
_SUBMODULE_MODE = "160000"
_OF_A_REPOSITORY = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE")
_DEEPEN = (
    "the clone is shallow: fetch its whole history, with `git fetch --unshallow`, with `fetch-depth: 0` at the "
    "checkout step of a GitHub workflow, or with `GIT_DEPTH: 0` on GitLab"
)


@dataclass(frozen=True)
class Change:
    """`before` is the blob that a file was, None where it is new or was no file, and `after` the one that it is; for a
    file of the working tree that is no object yet."""

    path: str
    before: str | None
    after: str


@dataclass(frozen=True)
class Repository:
    """`root` is the absolute path, without symbolic links, of the top folder of the working tree."""

    root: str

    @classmethod
    def around(cls, folder: str) -> Repository | None:
        """The innermost repository or submodule that has the absolute path of a folder."""
        while not os.path.lexists(os.path.join(folder, ".git")):
            if folder == os.path.dirname(folder):
                return None
            folder = os.path.dirname(folder)
        return cls(folder)

    def ask(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Raises ConfigError where git fails."""
        answer = self._run(arguments, stdin)
        if answer.returncode != 0:
            said = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
            raise ConfigError(f"git {arguments[0]} fails in {self.root}: {said[0].removeprefix('fatal: ')}")
        return answer.stdout

    def _run(self, arguments: Iterable[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = ["git", *arguments]
        try:
            return subprocess.run(
                command, cwd=self.root, env=self._environment, input=stdin, capture_output=True, check=False
            )
        except FileNotFoundError as error:
            raise ConfigError("git is not installed, or not in one of the folders of PATH") from error

    @cached_property
    def _environment(self) -> dict[str, str]:
        """In a hook, variables name the repository that the hook is of and the index that is to be committed."""
        environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
        here = Repository.around(os.path.realpath(os.getcwd()))
        for name in set(environment).intersection(_OF_A_REPOSITORY):
            if here == self:
                environment[name] = os.path.abspath(environment[name])
            else:
                del environment[name]
        return environment

    @cached_property
    def superproject(self) -> Repository | None:
        root = _line(self.ask("rev-parse", "--show-superproject-working-tree"))
        return Repository(os.path.realpath(root)) if root else None

    def fork_point(self, revision: str) -> str | None:
        """The commit at which HEAD left a revision; in a submodule, the commit that its project had there, None where
        that had no such submodule. Raises ConfigError."""
        if self.superproject is None:
            return self._merge_base(revision)
        base, name = self.superproject.fork_point(revision), os.path.relpath(self.root, self.superproject.root)
        listed = b"" if base is None else self.superproject.ask("ls-tree", "-z", base, "--", name)
        mode, _, commit = listed.partition(b"\t")[0].decode().partition(" commit ")
        if mode != _SUBMODULE_MODE:
            return None
        if self._commit(commit) is None:
            raise ConfigError(f"the submodule {name} has no commit {commit}{self._shallow_hint()}")
        return commit

    def _merge_base(self, revision: str) -> str:
        if self._commit(revision) is None:
            known = self.ask("for-each-ref", "--format=%(refname:short)").decode("utf-8", "replace").split("\n")
            same = next((name for name in known if name.endswith("/" + revision)), "")
            hint = f"; did you mean `{same}`?" if same else nearest(revision, filter(None, known))
            raise ConfigError(f"there is no commit `{revision}` in {self.root}{hint or self._shallow_hint()}")
        if self._commit("HEAD") is None:
            raise ConfigError(f"there is no commit yet in {self.root}")
        found = self._run(("merge-base", revision, "HEAD"))
        if found.returncode != 0:
            raise ConfigError(f"`{revision}` and HEAD have no commit in common{self._shallow_hint()}")
        return _line(found.stdout)

    def _commit(self, revision: str) -> str | None:
        if revision.startswith("-"):
            return None
        found = self._run(("rev-parse", "--verify", "--quiet", revision + "^{commit}"))
        return _line(found.stdout) if found.returncode == 0 else None

    def _shallow_hint(self) -> str:
        is_shallow = _line(self.ask("rev-parse", "--is-shallow-repository")) == "true"
        return f"; {_DEEPEN}" if is_shallow else ""

    def changes(self, base: str) -> dict[str, Change]:
        """Between a commit and the working tree, by path from `root`; what git does not track is not among them."""
        return {change.path: change for change in _changes(self.ask(*_DIFF, base, "--"))}

    @cached_property
    def staged(self) -> dict[str, Change]:
        """Between HEAD, if there is one, and the index."""
        return {change.path: change for change in _changes(self.ask(*_DIFF, "--cached", "--"))}

    @cached_property
    def unstaged(self) -> frozenset[str]:
        """Paths that differ between the index and the working tree."""
        return frozenset(change.path for change in _changes(self.ask(*_DIFF, "--")))

    @cached_property
    def tracked(self) -> frozenset[str]:
        return frozenset(map(os.fsdecode, self.ask("ls-files", "-z").split(b"\0")))

    def blobs(self, names: Iterable[str]) -> Mapping[str, bytes]:
        """Contents of objects; those that are missing are left out."""
        wanted = list(dict.fromkeys(names))
        answer = self.ask("cat-file", "--batch", stdin="".join(f"{name}\n" for name in wanted).encode())
        found: dict[str, bytes] = {}
        position = 0
        for name in wanted:
            end = answer.index(b"\n", position)
            kind, _, size = answer[position:end].decode().removeprefix(f"{name} ").partition(" ")
            position = end + 1
            if kind == "blob":
                found[name] = answer[position : position + int(size)]
                position += int(size) + 1
        return found


_DIFF = ("diff", "--raw", "-z", "--no-abbrev", "--find-renames", "--ignore-submodules=all")


def _changes(raw: bytes) -> Iterator[Change]:
    """Of `git diff --raw -z`: modes, objects and a letter, then the path, for renames the old one and the new one."""
    parts = iter(raw.split(b"\0"))
    for header in filter(None, parts):
        old_mode, mode, before, after, status = header.decode().removeprefix(":").split(" ")
        path = next(parts)
        if status[0] in "RC":
            path = next(parts)
        if mode in _FILE_MODES:
            was_file = old_mode in _FILE_MODES and status[0] != "U"
            yield Change(os.fsdecode(path), before if was_file else None, after)


def _line(output: bytes) -> str:
    return os.fsdecode(output.removesuffix(b"\n"))
