"""Narrowing the files to lint to those that changed, and what counts in them to the lines that did."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from torchlint.config import ConfigError
from torchlint.files.discovery import Target
from torchlint.files.git import Repository
from torchlint.filters.scope import Changes, Scope


def since(targets: Sequence[Target], revision: str) -> list[Target]:
    """The targets that differ from what they were where HEAD left `revision`, those that git does not know included.

    Raises ConfigError.
    """
    found = []
    for repository, members in _by_repository(targets, "--diff-base"):
        base = repository.fork_point(revision)
        if base is None:
            found += [_narrowed(target, None) for target, _ in members]
            continue
        changes = repository.changes(base)
        changed = [
            (target, changes.get(name)) for target, name in members if name in changes or name not in repository.tracked
        ]
        contents = repository.blobs(change.before for _, change in changed if change is not None and change.before)
        found += [
            _narrowed(target, contents.get(change.before or "") if change else None) for target, change in changed
        ]
    return _in_order(found)


def staged(targets: Sequence[Target]) -> list[Target]:
    """The targets that the next commit changes, with what it holds of them: the bytes of the index where those of the
    working tree are others. Raises ConfigError."""
    here = _repository(Path.cwd())
    found = []
    for repository, members in _by_repository(targets, "--staged"):
        if repository != here:
            continue
        changed = [(target, name, repository.staged[name]) for target, name in members if name in repository.staged]
        wanted = [change.before for _, _, change in changed if change.before is not None]
        wanted += [change.after for _, name, change in changed if name in repository.unstaged]
        contents = repository.blobs(wanted)
        for target, name, change in changed:
            if name in repository.unstaged:
                target = replace(target, data=contents.get(change.after, b""), is_staged=True)
            found.append(_narrowed(target, contents.get(change.before or "")))
    return _in_order(found)


def _by_repository(targets: Sequence[Target], option: str) -> Iterator[tuple[Repository, list[tuple[Target, str]]]]:
    """Targets with their paths from the root of the repository or submodule that they are in."""
    groups: dict[str, list[tuple[Target, str]]] = {}
    roots: dict[str, Repository | None] = {}
    for target in targets:
        real = os.path.realpath(target.path)
        folder = os.path.dirname(real)
        if folder not in roots:
            roots[folder] = Repository.around(folder)
        repository = roots[folder]
        if repository is None:
            raise ConfigError(f"{option}: {target.path} is in no git repository")
        groups.setdefault(repository.root, []).append((target, os.path.relpath(real, repository.root)))
    for root, members in groups.items():
        yield Repository(root), members


def _repository(folder: Path) -> Repository | None:
    return Repository.around(os.path.realpath(folder))


def _narrowed(target: Target, base: bytes | None) -> Target:
    """A file that cannot be read stays as it is: the run says what is wrong with it."""
    try:
        data = target.path.read_bytes() if target.data is None else target.data
    except OSError:
        return target
    scope = replace(target.settings.scope or Scope(), changes=Changes(data, base))
    return replace(target, data=data, settings=replace(target.settings, scope=scope))


def _in_order(targets: list[Target]) -> list[Target]:
    return sorted(targets, key=lambda target: target.path.parts)
