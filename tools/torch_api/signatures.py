"""What torch declares: parameters and results, from the stubs that it ships and from Python signatures."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch

_STUBS = Path(torch.__file__).parent
_SIMPLE = {
    "Tensor": "tensor",
    "torch.Tensor": "tensor",
    "Self": "self",
    "T": "self",
    "_int": "int",
    "int": "int",
    "SymInt": "int",
    "_bool": "bool",
    "bool": "bool",
    "_float": "float",
    "float": "float",
    "Number": "number",
    "_complex": "number",
    "str": "str",
    "None": "none",
    "Size": "shape",
    "torch.Size": "shape",
    "_dtype": "dtype",
    "dtype": "dtype",
    "torch.dtype": "dtype",
    "_device": "device",
    "device": "device",
    "torch.device": "device",
    "numpy.ndarray": "array",
    "np.ndarray": "array",
}
_GENERIC = ("Iterator[", "collections.abc.Iterator[", "dict[")
Overload = ast.FunctionDef


@cache
def _overloads(stub: str, owner: str | None = None) -> dict[str, list[Overload]]:
    tree: ast.Module | ast.ClassDef = ast.parse((_STUBS / stub).read_text(encoding="utf-8"))
    if owner is not None:
        tree = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner)
    found: dict[str, list[Overload]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


@cache
def _named_tuples() -> dict[str, int]:
    tree = ast.parse((_STUBS / "return_types.pyi").read_text(encoding="utf-8"))
    sizes = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            members = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            sizes[node.name] = len([name for name in members if not name.startswith("__")])
    return sizes


def declared(name: str) -> list[Overload]:
    """The overloads of a function or method in the stubs; none if it is written in Python."""
    namespace, _, short = name.rpartition(".")
    if namespace == "torch":
        return _overloads("_C/_VariableFunctions.pyi").get(short, [])
    if namespace == "torch.Tensor":
        return _overloads("_C/__init__.pyi", "TensorBase").get(short, [])
    if namespace == "torch.nn.functional":
        return _overloads("nn/functional.pyi").get(short, [])
    return []


def _documented(value: Any) -> re.Match[str] | None:
    """The first line of a built-in function's page: `linalg.inv(A, *, out=None) -> Tensor`."""
    page = getattr(value, "__doc__", None)
    lines = page.strip().splitlines() if isinstance(page, str) else []
    return re.fullmatch(r"[\w.]+\((.*)\) *-> *(.+?)\.?", lines[0].strip()) if lines else None


def _documented_result(value: Any) -> set[str]:
    found = _documented(value)
    if found is None:
        return set()
    text = found[2].replace("(", "tuple[").replace(")", "]") if found[2].startswith("(") else found[2]
    try:
        return _from_annotation(ast.parse(text, mode="eval").body)
    except SyntaxError:
        return set()


def _from_annotation(node: ast.expr | None) -> set[str]:
    """The annotated results as words; empty if one of them is not known."""
    if node is None:
        return set()
    text = ast.unparse(node)
    if text in _SIMPLE:
        return {_SIMPLE[text]}
    if text.startswith(_GENERIC):
        return {text.partition("[")[0].rpartition(".")[2].lower()}
    if isinstance(node, ast.BinOp):
        left, right = _from_annotation(node.left), _from_annotation(node.right)
        return left | right if left and right else set()
    if text.startswith("torch.return_types."):
        return {",".join(["tensor"] * _named_tuples()[text.rpartition(".")[2]])}
    if text.startswith(("tuple[", "Tuple[", "list[", "List[", "Sequence[")):
        parts = text[text.index("[") + 1 : -1].split(", ")
        if set(parts) <= {"_int", "int", "..."}:
            return {"shape"}
        if set(parts) <= {"Tensor", "..."}:
            is_open = "..." in parts or not text.lower().startswith("tuple")
            return {"tensors" if is_open else ",".join(["tensor"] * len(parts))}
    return set()


def declared_results(name: str, value: Any) -> set[str]:
    overloads = declared(name)
    if overloads:
        found = [_from_annotation(node.returns) for node in overloads]
        return set().union(*found) if all(found) else set()
    try:
        annotation = inspect.signature(value).return_annotation
    except (TypeError, ValueError):
        return _documented_result(value)
    if annotation is inspect.Signature.empty:
        return _documented_result(value)
    text = annotation if isinstance(annotation, str) else str(annotation)
    if isinstance(annotation, type) and not hasattr(annotation, "__origin__"):
        text = annotation.__name__
    try:
        return _from_annotation(ast.parse(text.strip("'\"~").removeprefix("typing."), mode="eval").body)
    except SyntaxError:
        return set()


def _default(value: Any) -> str:
    return repr(value) if isinstance(value, (bool, int, float, str, type(None))) else "..."


def _from_python(value: Any) -> str | None:
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    names: list[str] = []
    keyword_only = False
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names.append("*" + parameter.name)
            keyword_only = True
        elif parameter.kind is parameter.VAR_KEYWORD:
            names.append("**" + parameter.name)
        else:
            if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
                names.append("*")
                keyword_only = True
            given = "" if parameter.default is parameter.empty else "=" + _default(parameter.default)
            names.append(parameter.name + given)
    return ", ".join(names)


def _from_stub(node: Overload) -> str:
    arguments = node.args
    names: list[str] = []
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + [*arguments.defaults]
    names += [_spelled(argument, default) for argument, default in zip(positional, defaults)]
    if arguments.vararg is not None:
        names.append("*" + arguments.vararg.arg)
    elif arguments.kwonlyargs:
        names.append("*")
    names += [_spelled(argument, default) for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return ", ".join(name for name in names if name != "self")


def _spelled(argument: ast.arg, default: ast.expr | None) -> str:
    if default is None:
        return argument.arg
    return f"{argument.arg}={ast.unparse(default) if isinstance(default, ast.Constant) else '...'}"


def parameters(name: str, value: Any) -> str:
    """The parameter lists, one per overload, divided by ` | `."""
    overloads = declared(name)
    if overloads and "(*args: Any" not in ast.unparse(overloads[0]):
        return " | ".join(dict.fromkeys(_distinct(_from_stub(node) for node in overloads)))
    found = _from_python(value)
    if found is None or found == "*args, **kwargs":
        page = _documented(value)
        return page[1] if page is not None else ""
    return found.removeprefix("self, ").removeprefix("self")


def _distinct(signatures: Iterator[str]) -> list[str]:
    """Without the overloads that differ from another only in what they leave out."""
    return list(dict.fromkeys(signatures))
