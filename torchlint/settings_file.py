"""Settings from `[tool.torchlint]` in pyproject.toml, or from torchlint.toml.

The nearest file above a linted file wins and nothing is merged, unless it says `extend`: then its keys take the place
of those of that file, key by key. The command line beats all. A key or a rule that does not exist is an error that
names the nearest one that does.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchlint.config import (
    DEVICES,
    ConfigError,
    Override,
    Selection,
    Settings,
    check_selectors,
    glob_below,
    nearest,
)
from torchlint.finding import Severity

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CONFIG_NAMES = ("torchlint.toml", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What the options say; None and () leave the settings file in force."""

    selection: Selection = field(default_factory=Selection)
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    force_exclude: bool = False
    unsafe_fixes: bool | None = None
    error_on: Severity | None = None
    baseline: Path | None = None
    no_baseline: bool = False
    plugins: tuple[Path, ...] = ()

    def over(self, settings: Settings) -> Settings:
        origins = dict(settings.origins)
        for key in ("select", "extend_select", "ignore"):
            if getattr(self.selection, key):
                origins[key.replace("_", "-")] = "command line"
        changes: dict[str, Any] = {"command_line": self.selection}
        if self.per_file_ignores:
            changes["per_file_ignores"] = tuple(
                (settings.glob_from_root(pattern), rules) for pattern, rules in self.per_file_ignores
            )
        if self.force_exclude:
            changes["force_exclude"] = True
        for key in ("unsafe_fixes", "error_on", "baseline"):
            if getattr(self, key) is not None:
                changes[key] = getattr(self, key)
        if self.no_baseline:
            changes["baseline"] = None
        if self.plugins:
            changes["plugins"] = (*settings.plugins, *self.plugins)
        origins |= {key.replace("_", "-"): "command line" for key in changes if key != "command_line"}
        return replace(settings, **changes, origins=tuple(sorted(origins.items())))


@dataclass
class Configuration:
    """Gives every folder its settings. `explicit` is the file of `--config`; `isolated` reads no file at all."""

    command_line: CommandLine = field(default_factory=CommandLine)
    explicit: Path | None = None
    isolated: bool = False
    _by_folder: dict[Path, Settings] = field(default_factory=dict)

    def for_folder(self, folder: Path) -> Settings:
        """Raises ConfigError."""
        if self.explicit is not None or self.isolated:
            folder = Path()
        if folder not in self._by_folder:
            own = self._own(folder)
            if own is not None:
                self._by_folder[folder] = self.command_line.over(own)
            elif folder.parent == folder:
                self._by_folder[folder] = self.command_line.over(Settings(root=Path.cwd()))
            else:
                self._by_folder[folder] = self.for_folder(folder.parent)
        return self._by_folder[folder]

    def for_path(self, path: Path) -> Settings:
        return self.for_folder(path.absolute() if path.is_dir() else path.absolute().parent)

    def _own(self, folder: Path) -> Settings | None:
        if self.isolated:
            return None
        if self.explicit is not None:
            return read_settings(self.explicit, self._may_load)
        files = (folder / name for name in CONFIG_NAMES)
        found = (read_settings(file, self._may_load) for file in files if file.is_file())
        return next((settings for settings in found if settings is not None), None)

    def _may_load(self, plugin: Path, file: Path) -> bool:
        """Loading a plugin runs it: the user must have named it, or the settings of the project that they work in."""
        return (
            plugin in self.command_line.plugins or self.explicit is not None or Path.cwd().is_relative_to(file.parent)
        )


MayLoad = Callable[[Path, Path], bool]  # of a plugin, and of the settings file that names it


def read_settings(file: Path, may_load: MayLoad = lambda plugin, file: False) -> Settings | None:
    """The settings of a file, None for a pyproject.toml without a section for torchlint. Raises ConfigError."""
    try:
        table = _table_of(file)
        return None if table is None else _settings(table, file, may_load)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from error


def _table_of(file: Path) -> Any:
    try:
        data = file.read_bytes()
        document = tomllib.loads(data.decode("utf-8"))
    except OSError as error:
        raise ConfigError(str(error.strerror)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        if file.name == "pyproject.toml" and b"torchlint" not in data:
            return None
        raise ConfigError(f"not valid TOML: {error}") from error
    if file.name != "pyproject.toml" and "tool" not in document:
        return document
    tool = document.get("tool")
    return tool.get("torchlint") if isinstance(tool, dict) else None


def _settings(table: Any, file: Path, may_load: MayLoad) -> Settings:
    layer = _layer(table, file, (), may_load)
    values = dict(layer.values)
    selection = Selection(*(values.pop(key, default) for key, default in _SELECTION.items()))
    return Settings(
        selection=selection,
        **values,
        root=file.parent.absolute(),
        glob_root=layer.root,
        file=file,
        origins=tuple(sorted(layer.origins.items())),
    )


@dataclass(frozen=True, slots=True)
class _Layer:
    """What a file says, with what it extends: values by field of `Settings`, and the file that each key comes from.
    Globs are relative to `root`."""

    values: Mapping[str, Any]
    origins: Mapping[str, str]
    root: Path

    def rooted_at(self, root: Path) -> Mapping[str, Any]:
        prefix = self.root.relative_to(root).as_posix()
        return self.values if prefix == "." else {key: _below(prefix, key, value) for key, value in self.values.items()}


def _layer(table: Any, file: Path, extending: tuple[Path, ...], may_load: MayLoad) -> _Layer:
    """Plugins are loaded first, since other keys may name their rules."""
    _check_keys(table, _READERS, "[tool.torchlint]")
    plugins = _loaded(_strings(table.get("plugins", []), "plugins"), file.absolute(), (*extending, file)[0], may_load)
    values = {key.replace("-", "_"): _READERS[key](table[key], key) for key in table}
    base = values.pop("extend", None)
    if "plugins" in values:
        values["plugins"] = plugins
    if "baseline" in values:
        values["baseline"] = file.parent / values["baseline"]
    own = _Layer(values, dict.fromkeys(table, str(file)), file.parent.absolute())
    if base is None:
        return own
    inherited = _extended(file.parent / base.expanduser(), (*extending, file.absolute()), may_load)
    root = Path(os.path.commonpath((own.root, inherited.root)))
    return _Layer({**inherited.rooted_at(root), **own.rooted_at(root)}, {**inherited.origins, **own.origins}, root)


def _loaded(plugins: Sequence[str], file: Path, asked: Path, may_load: MayLoad) -> tuple[Path, ...]:
    """The plugins that a file names, once they are loaded. `asked` is the settings file that was looked for."""
    paths = tuple(Path(os.path.abspath(file.parent / Path(plugin).expanduser())) for plugin in plugins)
    for path in paths:
        if not may_load(path, asked.absolute()):
            raise ConfigError(
                f"`plugins`: {path} is code of a project that you do not work in, so it is not run; "
                f"name it with --plugin, or run torchlint in {asked.absolute().parent}"
            )
    return load_plugins(paths)


def load_plugins(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """The paths, once their rules are known. Raises ConfigError."""
    from torchlint.plugins import PluginError, load

    try:
        for path in paths:
            load(path)
    except PluginError as error:
        raise ConfigError(str(error)) from error
    return paths


def _extended(file: Path, extending: tuple[Path, ...], may_load: MayLoad) -> _Layer:
    file = Path(os.path.abspath(file))
    if file in extending:
        raise ConfigError(f"{file} comes back to itself")
    try:
        table = _table_of(file)
        if table is None:
            raise ConfigError("no section [tool.torchlint]")
        return _layer(table, file, extending, may_load)
    except ConfigError as error:
        raise ConfigError(f"`extend`: {file}: {error}") from error


def _below(prefix: str, key: str, value: Any) -> Any:
    """The value of a key with its globs moved to a folder above."""
    if key in ("exclude", "extend_exclude"):
        return tuple(glob_below(prefix, pattern) for pattern in value)
    if key == "per_file_ignores":
        return tuple((glob_below(prefix, pattern), rules) for pattern, rules in value)
    if key == "overrides":
        return tuple(
            replace(override, files=tuple(glob_below(prefix, pattern) for pattern in override.files))
            for override in value
        )
    return value


_SELECTION: dict[str, tuple[str, ...] | None] = {"select": None, "extend_select": (), "ignore": ()}


def _check_keys(table: Any, known: Mapping[str, Any], where: str) -> None:
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must be a table")
    for key in table:
        if key not in known:
            raise ConfigError(f"unknown key `{key}` in {where}{nearest(key, known)}")


def _strings(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"`{key}` must be a list of strings")
    return tuple(value)


def _selectors(value: Any, key: str) -> tuple[str, ...]:
    return check_selectors(_strings(value, key), f"`{key}`")


def _boolean(value: Any, key: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"`{key}` must be true or false")
    return value


def _version(value: Any, key: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"\d+(\.\d+){0,2}", value):
        raise ConfigError(f'`{key}` must be a version such as "2.4"')
    return value


def _device(value: Any, key: str) -> str:
    if value not in DEVICES:
        raise ConfigError(f"`{key}`: no device `{value}`; there are {', '.join(DEVICES)}")
    return str(value)


def _per_file(value: Any, key: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise ConfigError(f"`{key}` must be a table from glob to rules")
    return tuple((pattern, _selectors(rules, key)) for pattern, rules in value.items())


def _severities(value: Any, key: str) -> tuple[tuple[str, Severity], ...]:
    if not isinstance(value, dict):
        raise ConfigError(f"`{key}` must be a table from rule to severity")
    return tuple((check_selectors([selector], f"`{key}`")[0], _severity(name, key)) for selector, name in value.items())


def _severity(value: Any, key: str) -> Severity:
    if value not in {severity.value for severity in Severity}:
        raise ConfigError(f"`{key}`: no severity `{value}`; there are error, warning and info")
    return Severity(value)


def _path(value: Any, key: str) -> Path:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"`{key}` must be a path")
    return Path(value)


def _overrides(value: Any, key: str) -> tuple[Override, ...]:
    if not isinstance(value, list):
        raise ConfigError(f"`{key}` must be an array of tables")
    return tuple(_override(table, f"[[tool.torchlint.{key}]]") for table in value)


def _override(table: Any, where: str) -> Override:
    _check_keys(table, _OVERRIDE_READERS, where)
    if "files" not in table:
        raise ConfigError(f"{where} needs `files`, a list of globs")
    values = {key.replace("-", "_"): _OVERRIDE_READERS[key](table[key], key) for key in table}
    selection = Selection(*(values.pop(key, default) for key, default in _SELECTION.items()))
    return Override(selection=selection, **values)


_SELECTORS: dict[str, Callable[[Any, str], Any]] = dict.fromkeys(("select", "extend-select", "ignore"), _selectors)
_OVERRIDE_READERS: dict[str, Callable[[Any, str], Any]] = {**_SELECTORS, "files": _strings, "severity": _severities}
_READERS: dict[str, Callable[[Any, str], Any]] = {
    **_SELECTORS,
    "per-file-ignores": _per_file,
    "overrides": _overrides,
    "severity": _severities,
    "exclude": _strings,
    "extend-exclude": _strings,
    "respect-gitignore": _boolean,
    "force-exclude": _boolean,
    "unsafe-fixes": _boolean,
    "error-on": _severity,
    "baseline": _path,
    "extend": _path,
    "plugins": _strings,
    "target-torch": _version,
    "target-device": _device,
}
