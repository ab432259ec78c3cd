"""One version of a function: found by the name that the user gives, in modules of its own."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any


class FunctionError(Exception):
    """The comparison cannot be made; the message says why, and what to do."""


@dataclass
class Version:
    """`function` is the plain function: of a method, what takes `self`. `modules` are those that it brought along and
    that are imported only while it is `active`, so that two versions of one module can be used in turn."""

    name: str
    file: Path
    function: Callable[..., Any]
    module: ModuleType
    folder: str
    owner: type | None = None
    modules: dict[str, ModuleType] = field(default_factory=dict)

    @property
    def chain(self) -> list[tuple[str, int, str]]:
        """Where the code starts, that of decorators first: file, line, name."""
        functions, inner = [], self.function
        while inner is not None:
            functions.append(inner)
            inner = getattr(inner, "__wrapped__", None)  # type: ignore[assignment]
        codes = [function.__code__ for function in functions if hasattr(function, "__code__")]
        return [(os.path.abspath(code.co_filename), code.co_firstlineno, code.co_name) for code in codes]

    @contextmanager
    def active(self) -> Iterator[None]:
        """Imports find this version's modules; those that it imports meanwhile are its own."""
        with _own_modules(self.folder, self.modules):
            yield


def load(name: str) -> Version:
    """`name`: path/to/file.py:function or package.module:function; a method is Class.method, an nn.Module its forward.

    Raises FunctionError.
    """
    place, colon, path = name.partition(":")
    if not colon or not place or not path:
        raise FunctionError(f"`{name}` names no function: write file.py:function or package.module:Class.method")
    file = _file(place)
    folder, dotted = _import_name(file)
    modules: dict[str, ModuleType] = {}
    with _own_modules(folder, modules):
        module = _execute(file, dotted)
        function, owner = _resolve(module, path, name)
    return Version(name, file, function, module, folder, owner, modules)


def _file(place: str) -> Path:
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise FunctionError(f"there is no file {place}")
        return Path(place).resolve()
    with _own_modules(os.getcwd(), {}):
        try:
            spec = importlib.util.find_spec(place)
        except (ImportError, ValueError) as error:
            raise FunctionError(f"there is no module {place}: {error}") from error
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise FunctionError(f"there is no Python file of a module {place}")
    return Path(spec.origin).resolve()


def _import_name(file: Path) -> tuple[str, str]:
    """The folder from which the file is imported, and its dotted name there."""
    folder, parts = file.parent, [file.stem] if file.stem != "__init__" else []
    while (folder / "__init__.py").exists():
        folder, parts = folder.parent, [folder.name, *parts]
    return str(folder), ".".join(parts)


def _execute(file: Path, dotted: str) -> ModuleType:
    try:
        if package := dotted.rpartition(".")[0]:
            importlib.import_module(package)
        spec = importlib.util.spec_from_file_location(dotted, file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[dotted] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except Exception as error:
        raise FunctionError(f"importing {file.name} fails: {type(error).__name__}: {error}") from error
    return module


def _resolve(module: ModuleType, path: str, name: str) -> tuple[Callable[..., Any], type | None]:
    import torch

    found: Any = module
    owner: type | None = None
    for part in path.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), 1)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            raise FunctionError(f"{name}: there is no `{part}`{hint}")
        owner = found if inspect.isclass(found) else None
        found = getattr(found, part)
    if inspect.isclass(found) and issubclass(found, torch.nn.Module):
        owner, found = found, found.forward
    found = getattr(found, "__func__", found)
    if not inspect.isfunction(found):
        raise FunctionError(f"{name} is no Python function, but {type(found).__name__}")
    inner = inspect.unwrap(found)
    if inspect.isgeneratorfunction(inner) or inspect.iscoroutinefunction(inner):
        raise FunctionError(f"{name} is a generator or coroutine, which cannot be called again with the same arguments")
    return found, owner


@contextmanager
def _own_modules(folder: str, modules: dict[str, ModuleType]) -> Iterator[None]:
    """Files below the working directory and `folder` belong to the version; libraries are shared."""
    path, before = list(sys.path), dict(sys.modules)
    sys.path[:0] = [folder, os.getcwd()]
    sys.modules.update(modules)
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = bytecode
        sys.path[:] = path
        for name, module in list(sys.modules.items()):
            if before.get(name) is not module and _is_own(name, module, folder):
                modules[name] = module
                if name in before:
                    sys.modules[name] = before[name]
                else:
                    del sys.modules[name]


def _is_own(name: str, module: ModuleType, folder: str) -> bool:
    file: str | None = getattr(module, "__file__", None)
    if file is None or "site-packages" in file or name.partition(".")[0] == "torchlint":
        return False
    return os.path.realpath(file).startswith((folder + os.sep, os.path.realpath(os.getcwd()) + os.sep))
