"""Rules from elsewhere: of installed packages, by the entry point group `torchlint.rules`, and of files and folders
that the user's own settings or command line name. They are Python code, and loading them runs it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

from torchlint.rule import Rule, all_rules, rules_in

GROUP = "torchlint.rules"
_NO_RULES = re.compile(r"_|test_|conftest$")  # modules of a folder that are not looked at


class PluginError(Exception):
    """A plugin that cannot be used. The message says which, and what is wrong with it."""


def installed() -> Iterator[type[Rule]]:
    """The rules that installed packages bring. Raises PluginError."""
    if not _any_installed():
        return
    from importlib import metadata

    for entry in metadata.entry_points(group=GROUP):
        package = entry.dist.name if entry.dist is not None else entry.value
        where = f"the plugin `{entry.name}` of the installed package {package}"
        try:
            module = entry.load()
            modules = [module, *map(importlib.import_module, _below(module))]
        except Exception as error:
            raise PluginError(f"{where} cannot be imported: {type(error).__name__}: {error}") from error
        yield from _checked(modules, where)


def _any_installed() -> bool:
    """Whether some package may have such an entry point, found without importlib.metadata, which is slow to import."""
    for folder in sys.path:
        for about in _listed(folder or "."):
            if about.endswith((".dist-info", ".egg-info")):
                try:
                    text = Path(folder, about, "entry_points.txt").read_bytes()
                except OSError:
                    continue
                if GROUP.encode() in text:
                    return True
    return False


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


@cache
def load(path: Path) -> tuple[type[Rule], ...]:
    """The rules of a Python file, or of all modules of a folder but tests, from now on among `all_rules()`.

    path: absolute. Raises PluginError, also where a code is taken.
    """
    where = f"the plugin {path}"
    if not path.exists():
        raise PluginError(f"{where} does not exist")
    try:
        modules = _imported(path)
    except Exception as error:
        raise PluginError(f"{where} cannot be imported: {type(error).__name__}: {error}") from error
    rules = _checked(modules, where)
    if not rules:
        raise PluginError(f"{where} has no rule: a subclass of torchlint.rule.Rule with a `code`")
    add(all_rules(), rules, where)
    for rule in rules:
        rule.plugin = path
    return rules


def add(known: dict[str, type[Rule]], rules: Iterable[type[Rule]], where: str = "a plugin") -> None:
    """Raises PluginError for a code or a name that another rule has."""
    names = {rule.name: rule for rule in known.values()}
    for rule in rules:
        other = known.get(rule.code) or names.get(rule.name)
        if other is not None:
            raise PluginError(f"{where}: {rule.code} ({rule.name}) is taken by {other.code} ({other.name})")
        known[rule.code] = rule


def strangers(rules: Mapping[str, type[Rule]], plugins: tuple[Path, ...]) -> frozenset[str]:
    """Rules that were loaded for other settings than those that name `plugins`."""
    return frozenset(code for code, rule in rules.items() if rule.plugin is not None and rule.plugin not in plugins)


def fingerprint() -> str:
    """Of the text of all plugins in force, "" without any: it changes when one of their files does."""
    roots = {_root(rule) for rule in all_rules().values() if not rule.__module__.startswith("torchlint.rules.")}
    digest = hashlib.blake2b(digest_size=16)
    for root in sorted(roots):
        for file in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            digest.update(str(file).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest() if roots else ""


def _root(rule: type[Rule]) -> Path:
    """The file of a plugin, or its outermost package."""
    if rule.plugin is not None:
        return rule.plugin
    module = sys.modules[rule.__module__.partition(".")[0]]
    file = Path(module.__file__ or sys.modules[rule.__module__].__file__ or "")
    return file.parent if hasattr(module, "__path__") else file


def _imported(path: Path) -> list[ModuleType]:
    name = f"torchlint_plugin_{hashlib.blake2b(str(path).encode(), digest_size=8).hexdigest()}"
    file = path / "__init__.py" if path.is_dir() else path
    if not file.exists():
        package = ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
    else:
        folders = [str(path)] if path.is_dir() else None
        spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
        if spec is None or spec.loader is None:
            raise ImportError("it is neither a Python file nor a folder of them")
        package = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(package)
    return [package, *map(importlib.import_module, _below(package))]


def _below(package: ModuleType) -> list[str]:
    """The modules of a package that may have rules."""
    modules = pkgutil.iter_modules(getattr(package, "__path__", ()), f"{package.__name__}.")
    return [module.name for module in modules if not _NO_RULES.match(module.name.rpartition(".")[2])]


def _checked(modules: Iterable[ModuleType], where: str) -> tuple[type[Rule], ...]:
    rules = tuple(rule for module in modules for rule in rules_in(module))
    for rule in rules:
        wrong = _problem(rule)
        if wrong:
            raise PluginError(f"{where}: {rule.__name__}: {wrong}")
    return rules


def _problem(rule: type[Rule]) -> str:
    if not re.fullmatch(r"[A-Z]+\d\d+", rule.code):
        return f"the code `{rule.code}` must be capital letters and two digits, as in `ACME01`"
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", getattr(rule, "name", "")):
        return "`name` must be words with hyphens between, as in `old-inverse`"
    triggers = getattr(rule, "triggers", None)
    if not isinstance(triggers, tuple) or not triggers or not all(isinstance(word, str) and word for word in triggers):
        return '`triggers` must be a tuple of words, as in `("inverse",)`: a file without any of them is not looked at'
    return "" if rule.summary() else "it has no docstring, which is its page"
