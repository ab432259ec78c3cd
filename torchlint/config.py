"""The settings in force for a file: which rules, with what severity, which files. They are read by
torchlint/settings_file.py from `[tool.torchlint]` and from the command line, or written by hand for `torchlint.lint`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.diagnostics import DIAGNOSTICS, SYNTAX_ERROR, TOO_COMPLEX
from torchlint.finding import Severity
from torchlint.plugins import strangers
from torchlint.rule import FAMILY_SEVERITY, Rule, all_rules

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from torchlint.filters.scope import Scope

DEFAULT_EXCLUDE = (
    *(".bzr", ".direnv", ".eggs", ".git", ".git-rewrite", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox"),
    *(".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".torchlint_cache", ".venv", ".vscode"),
    *("__pycache__", "__pypackages__", "buck-out", "build", "dist", "node_modules", "site-packages", "venv"),
)


DEVICES = ("cuda", "rocm", "cpu")


class ConfigError(Exception):
    """A settings file, or an option, that cannot be used. The message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Rules by code, code prefix, family or name. The more specific of select and ignore wins, ignore on a tie.

    `select` replaces what earlier selections chose; None leaves it. That a file could not be analysed is said whatever
    was selected, unless it is ignored.
    """

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def apply(self, enabled: frozenset[str]) -> frozenset[str]:
        chosen = (self.select or ()) + self.extend_select
        if not chosen and self.select is None and not self.ignore:
            return enabled
        return frozenset(code for code in _names() if self._is_on(code, chosen, code in enabled))

    def _is_on(self, code: str, chosen: tuple[str, ...], before: bool) -> bool:
        selected = max((specificity(selector, code) for selector in chosen), default=-1)
        ignored = max((specificity(selector, code) for selector in self.ignore), default=-1)
        if selected < 0 and ignored < 0:
            return before and (self.select is None or code in (SYNTAX_ERROR.code, TOO_COMPLEX.code))
        return selected > ignored


@dataclass(frozen=True, slots=True)
class Override:
    """`[[tool.torchlint.overrides]]`: a selection and severities for the files that match."""

    files: tuple[str, ...]
    selection: Selection = Selection()
    severity: tuple[tuple[str, Severity], ...] = ()


@dataclass(frozen=True)
class Settings:
    """What is in force for a file. `root` is the folder of the settings file, `glob_root` the one that globs are
    relative to: the same, or one above where another file is extended. `scope` says which findings of the file count;
    None counts all."""

    selection: Selection = Selection()
    command_line: Selection = Selection()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    overrides: tuple[Override, ...] = ()
    severity: tuple[tuple[str, Severity], ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    respect_gitignore: bool = True
    force_exclude: bool = False
    unsafe_fixes: bool = False
    error_on: Severity = Severity.INFO
    baseline: Path | None = None
    target_torch: str | None = None
    target_device: str | None = None
    plugins: tuple[Path, ...] = ()
    root: Path = Path()
    glob_root: Path | None = None
    scope: Scope | None = field(default=None, compare=False)
    file: Path | None = field(default=None, compare=False)
    origins: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @classmethod
    def selecting(cls, *selectors: str, plugins: tuple[Path, ...] = ()) -> Settings:
        """Default settings with only these rules. plugins: absolute paths that `torchlint.plugins.load` has loaded."""
        return cls(selection=Selection(select=check_selectors(selectors, "select")), plugins=plugins)

    @cached_property
    def _base(self) -> frozenset[str]:
        return self.selection.apply(frozenset(_names()))

    @cached_property
    def _everywhere(self) -> frozenset[str]:
        return self._for_target(self.command_line.apply(self._base))

    def codes(self, path: Path) -> frozenset[str]:
        """The rules (and LINT diagnostics) in force for a file."""
        if not self.overrides and not self.per_file_ignores:
            return self._everywhere
        enabled = self._base
        for override in self.overrides:
            if self.matches(path, override.files):
                enabled = override.selection.apply(enabled)
        enabled = self._for_target(self.command_line.apply(enabled))
        for pattern, selectors in self.per_file_ignores:
            if self.matches(path, (pattern,)):
                enabled = frozenset(c for c in enabled if all(specificity(s, c) < 0 for s in selectors))
        return enabled

    def _for_target(self, codes: frozenset[str]) -> frozenset[str]:
        rules = all_rules()
        codes -= strangers(rules, self.plugins)
        if self.target_torch is not None:
            target = version(self.target_torch)
            codes = frozenset(c for c in codes if c not in rules or _concerns(rules[c], target))
        if self.target_device == "cpu":
            codes = frozenset(c for c in codes if c not in rules or not rules[c].needs_accelerator())
        return codes

    def severity_of(self, code: str, path: Path, of_finding: Severity | None = None) -> Severity:
        """The severity configured for a rule, the most specific entry first, else that of the finding, else the rule's
        own."""
        entries = list(self.severity)
        for override in self.overrides:
            if override.severity and self.matches(path, override.files):
                entries += override.severity
        ranked = [(specificity(s, code), i, severity) for i, (s, severity) in enumerate(entries)]
        best = max((entry for entry in ranked if entry[0] >= 0), default=None)
        return best[2] if best else of_finding or default_severity(code)

    def matches(self, path: Path, patterns: tuple[str, ...]) -> bool:
        """Whether a file matches one of the globs, which are gitignore patterns."""
        return glob_spec(patterns).match_file(self._name(path))

    def _name(self, path: Path) -> str:
        return relative_to_root(path, self.glob_root or self.root)

    def glob_from_root(self, pattern: str) -> str:
        """A glob that is relative to `root`, as it is compared."""
        below = None if self.glob_root is None else self.root.relative_to(self.glob_root).as_posix()
        return pattern if below in (None, ".") else glob_below(str(below), pattern)

    def is_excluded(self, path: Path, is_directory: bool = False) -> bool:
        name = self._name(path)
        return glob_spec(self.exclude + self.extend_exclude).match_file(name + "/" if is_directory else name)

    def fingerprint(self) -> str:
        """Changes whenever a finding could change."""
        relevant = (self.selection, self.command_line, self.per_file_ignores, self.overrides, self.severity)
        return repr((relevant, self.target_torch, self.target_device, str(self.root), str(self.glob_root)))


def default_severity(code: str) -> Severity:
    """That of the rule or diagnostic itself."""
    return DIAGNOSTICS[code].severity if code in DIAGNOSTICS else all_rules()[code].default_severity()


def relative_to_root(path: Path, root: Path) -> str:
    """A path as globs see it: from `root`, with slashes; of a file elsewhere all but the first slash."""
    absolute, root = Path(_absolute(path)), Path(_absolute(root))
    try:
        return absolute.relative_to(root).as_posix()
    except ValueError:
        return absolute.as_posix().lstrip("/")


def _absolute(path: Path) -> str:
    import os.path

    return os.path.abspath(path)


_specs: dict[tuple[str, ...], GitIgnoreSpec] = {}


def glob_spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    """The patterns, made ready once for all files."""
    if patterns not in _specs:
        from pathspec import GitIgnoreSpec

        _specs[patterns] = GitIgnoreSpec.from_lines(patterns)
    return _specs[patterns]


_SPECIAL = re.compile(r"([*?\[\]\\!# ])")


def glob_below(prefix: str, pattern: str) -> str:
    """A gitignore pattern of a folder, as one of the folder that has it at `prefix`."""
    negation, body = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    anchored = "/" in body.rstrip("/")
    escaped = _SPECIAL.sub(r"\\\1", prefix)
    return f"{negation}/{escaped}/{body.lstrip('/') if anchored else f'**/{body}'}"


def _concerns(rule: type[Rule], target: tuple[int, ...]) -> bool:
    """Whether the remedy of a rule exists in a torch release, and is of use there."""
    is_needless = rule.needless_since != "" and version(rule.needless_since) <= target
    return version(rule.needs_torch) <= target and not is_needless


def version(text: str) -> tuple[int, ...]:
    """`2.10` as (2, 10), so that it comes after 2.9."""
    return tuple(int(part) for part in text.split(".")) if text else ()


def _names() -> dict[str, str]:
    """Name by code, of rules and of LINT diagnostics."""
    return {code: rule.name for code, rule in all_rules().items()} | {c: d.name for c, d in DIAGNOSTICS.items()}


def is_code(code: str) -> bool:
    """Whether there is such a rule or diagnostic."""
    return code in DIAGNOSTICS or code in all_rules()


def _name(code: str) -> str:
    return DIAGNOSTICS[code].name if code in DIAGNOSTICS else all_rules()[code].name


def specificity(selector: str, code: str) -> int:
    """How exactly a selector names a rule: -1 not at all, 0 for ALL, else the length of the code prefix."""
    if selector == "ALL":
        return 0
    if selector == _name(code):
        return len(code)
    return len(selector) if code.startswith(selector) else -1


_LISTED = "; `torchlint rule --all` shows all that there are"


def check_selectors(selectors: Iterable[str], key: str) -> tuple[str, ...]:
    """The selectors, codes in upper case. Raises ConfigError for one that names no rule."""
    checked = []
    names, families = _names(), (*FAMILY_SEVERITY, "ALL")
    for given in selectors:
        selector = given if given in names.values() else given.upper()
        if selector not in families and not any(specificity(selector, code) >= 0 for code in names):
            known = [*names.values(), *names, *families]
            hint = "; put commas between several" if len(given.split()) > 1 else nearest(given, known)
            raise ConfigError(f"{key}: no rule `{given}`{hint or _LISTED}")
        checked.append(selector)
    return tuple(checked)


def find_code(selector: str) -> str:
    """The code of a rule or a diagnostic, given by code or name. Raises ConfigError where there is none."""
    by_name = {name: code for code, name in _names().items()}
    code = by_name.get(selector, selector.upper())
    if code not in _names():
        raise ConfigError(f"no rule `{selector}`{nearest(selector, [*_names(), *by_name]) or _LISTED}")
    return code


def nearest(given: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: what may have been meant, if anything is like it."""
    known = list(known)
    found = difflib.get_close_matches(given, known, 1, 0.5) or difflib.get_close_matches(given.upper(), known, 1, 0.5)
    return f"; did you mean `{found[0]}`?" if found else ""
