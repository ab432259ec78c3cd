"""Arguments made up from what the source says of them: jaxtyping annotations, and shapes in docstrings and comments.

One name is one size, in all parameters. Sizes are small and differ; numbers are ordinary, large, small, tied, zero, and
in some calls infinite or missing; some tensors are not contiguous.
"""

from __future__ import annotations

import inspect
import io
import random
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

import torch

from ..boot.torchlint_probe.recording import stored
from .call import Call
from .version import FunctionError, Version

CALLS = 60
_SIZES = (2, 3, 4, 5, 7)
_JAXTYPING = re.compile(r"""(\w+)\[[^\[\]]*?,\s*["']([^"']*)["']\s*\]""")
_BRACKETS = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_DIMENSION = re.compile(r"[A-Za-z_]\w{0,15}(?:\s*[-+*/]\s*\w+)?|\d+|\.\.\.")
_NO_DIMENSION = re.compile(
    r"tensor|float\d*|int\d*|bool|optional|default|none|str|list|tuple|array|ndarray|module|nn", re.I
)
_VALUES: Mapping[str, tuple[Any, ...]] = {"int": (1, 2, 3), "float": (0.5, 1.0, 2.0), "bool": (False, True)}
_KINDS = ("ordinary", "ordinary", "large", "small", "tied", "zero", "infinite", "missing")


@dataclass(frozen=True)
class Shape:
    dimensions: tuple[str, ...]
    dtype: torch.dtype
    source: str


@dataclass(frozen=True)
class OneOf:
    values: tuple[Any, ...]
    source: str


Specification = Shape | OneOf


def specifications(version: Version) -> dict[str, Specification]:
    """What each parameter but `self` may be.

    Raises FunctionError naming the parameters of which nothing is known.
    """
    function = inspect.unwrap(version.function)
    text = _Text(function)
    found: dict[str, Specification] = {}
    unknown = []
    for name, parameter in _parameters(version):
        specification = _specification(name, parameter, text)
        if specification is None:
            unknown.append(f"`{name}`")
        else:
            found[name] = specification
    if unknown:
        raise FunctionError(
            f"nothing says what {' and '.join(unknown)} of {version.name} may be: annotate it with jaxtyping, write "
            "its shape into the docstring, as in `x: (batch, features)`, or record real calls with -- COMMAND"
        )
    return found


def generated(version: Version, calls: int = CALLS, seed: int = 0) -> Iterator[Call]:
    """Calls with made-up arguments; the same ones for the same seed. Raises FunctionError."""
    wanted = specifications(version)
    random_numbers = random.Random(seed)
    for number in range(1, calls + 1):
        kind = _KINDS[(number - 1) % len(_KINDS)]
        torch.manual_seed(random_numbers.randrange(2**31))
        sizes = _Sizes(random_numbers)
        keywords = {name: _value(what, sizes, kind, random_numbers) for name, what in wanted.items()}
        shapes = ", ".join(f"{name} {_short(value)}" for name, value in keywords.items())
        with version.active():
            positional = [_instance(version)] if _is_method(version) else []
            data = stored((positional, keywords))
        label = f"generated call {number} ({kind} numbers, {shapes})"
        yield Call(data, version.module.__name__, label, kind not in ("infinite", "missing"))


def _parameters(version: Version) -> list[tuple[str, inspect.Parameter]]:
    parameters = [*inspect.signature(inspect.unwrap(version.function)).parameters.items()]
    parameters = parameters[1:] if _is_method(version) else parameters
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [(name, parameter) for name, parameter in parameters if parameter.kind not in variable]


def _is_method(version: Version) -> bool:
    if version.owner is None:
        return False
    name = version.function.__name__
    return not isinstance(inspect.getattr_static(version.owner, name, None), staticmethod)


def _instance(version: Version) -> Any:
    assert version.owner is not None
    if isinstance(inspect.getattr_static(version.owner, version.function.__name__, None), classmethod):
        return version.owner
    try:
        return version.owner()
    except Exception as error:
        raise FunctionError(
            f"{version.owner.__name__}() cannot be made without arguments ({type(error).__name__}: {error}): record "
            "real calls with -- COMMAND"
        ) from error


def _specification(name: str, parameter: inspect.Parameter, text: _Text) -> Specification | None:
    annotation = parameter.annotation
    if (shape := _jaxtyping(annotation)) is not None:
        return shape
    dimensions, line = text.dimensions(name)
    if dimensions is not None:
        return Shape(dimensions, _dtype(line, torch.float32), line.strip())
    if parameter.default is not inspect.Parameter.empty:
        return OneOf((parameter.default,), "default")
    plain = getattr(annotation, "__name__", str(annotation))
    return OneOf(_VALUES[plain], "annotation") if plain in _VALUES else None


def _jaxtyping(annotation: Any) -> Shape | None:
    """An annotation such as Float[Tensor, "batch features"], evaluated or as a string."""
    dimensions = getattr(annotation, "dim_str", None)
    name = getattr(annotation, "__name__", "")
    if dimensions is None and isinstance(annotation, str) and (match := _JAXTYPING.search(annotation)):
        name, dimensions = match.groups()
    if dimensions is None:
        return None
    parts = tuple(part.lstrip("*#?").rpartition("=")[2] for part in dimensions.split())
    return Shape(parts, _dtype(name, torch.float32), f"{name.partition('[')[0]}, {dimensions}")


def _dtype(text: str, usual: torch.dtype) -> torch.dtype:
    known = {
        torch.bool: r"\bbool|\bmask of bool",
        torch.int64: r"\bu?int\d*\b|\blong\b|LongTensor|\binteger",
        torch.float64: r"\bfloat64\b|\bdouble\b",
        torch.complex64: r"\bcomplex",
    }
    return next((dtype for dtype, words in known.items() if re.search(words, text, re.I)), usual)


class _Text:
    """The lines of a function that people wrote for people: its docstring, and its comments with the code before."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.lines = (inspect.getdoc(function) or "").splitlines()
        try:
            source = dedent(inspect.getsource(function))
            tokens = [*tokenize.generate_tokens(io.StringIO(source).readline)]
        except (OSError, tokenize.TokenError, IndentationError):
            return
        comments = [token for token in tokens if token.type == tokenize.COMMENT]
        for token in comments:
            code, comment = token.line[: token.start[1]].strip(), token.string.lstrip("# ")
            names = re.match(r"(?:def \w+\()?(\w+)\s*[:,=)]", code)
            self.lines.append(f"{names[1]}: {comment}" if names else comment)

    def dimensions(self, name: str) -> tuple[tuple[str, ...] | None, str]:
        """Of the first line that begins with the name and has a shape in brackets, or with it on the next line."""
        start = re.compile(rf"[-*\s]*(?::param\s+(?:[\w.]+\s+)?)?`*{re.escape(name)}`*\s*(?:[:,(=\[-]|is\b|has\b)")
        for number, line in enumerate(self.lines):
            if match := start.match(line):
                for text in (line[match.end() - 1 :], *self.lines[number + 1 : number + 2]):
                    if (found := _shape_in(text)) is not None:
                        return found, f"{line} {text}"
        return None, ""


def _shape_in(text: str) -> tuple[str, ...] | None:
    for group in _BRACKETS.findall(text):
        parts = [part.strip() for part in re.split(r"[,x×]\s+|,", group) if part.strip()]
        if len(parts) < 2 and not (parts and ("," in group or "shape" in text.lower())):
            continue
        if all(_DIMENSION.fullmatch(part) and not _NO_DIMENSION.fullmatch(part) for part in parts):
            return tuple(parts)
    return None


class _Sizes:
    """One size for one name, within one call."""

    def __init__(self, random_numbers: random.Random) -> None:
        self.random = random_numbers
        self.known: dict[str, int] = {}

    def __call__(self, dimension: str) -> int:
        if dimension.isdigit():
            return int(dimension)
        for name in re.findall(r"[A-Za-z_]\w*|\.\.\.", dimension):
            free = [size for size in _SIZES if size not in self.known.values()] or [*_SIZES]
            self.known.setdefault(name, 1 if self.random.random() < 0.15 else self.random.choice(free))
        if dimension in self.known:
            return self.known[dimension]
        return max(0, int(eval(dimension, {"__builtins__": {}}, dict(self.known))))


def _value(what: Specification, sizes: _Sizes, kind: str, random_numbers: random.Random) -> Any:
    if isinstance(what, OneOf):
        return random_numbers.choice(what.values)
    shape = [sizes(dimension) for dimension in what.dimensions]
    if what.dtype is torch.bool:
        return torch.rand(shape) < 0.5
    if not what.dtype.is_floating_point and not what.dtype.is_complex:
        return torch.randint(0, 2, shape, dtype=what.dtype)
    tensor = _numbers(torch.randn(shape, dtype=torch.float64), kind).to(what.dtype)
    if tensor.dim() > 1 and random_numbers.random() < 0.3:
        tensor = tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    return tensor.requires_grad_()


def _numbers(plain: torch.Tensor, kind: str) -> torch.Tensor:
    if kind == "large":
        return plain * 1e3
    if kind == "small":
        return plain * 1e-6
    if kind == "tied":
        return plain.round()
    if kind == "zero":
        return plain * (torch.rand(plain.shape) < 0.5)
    if kind in ("infinite", "missing") and plain.numel():
        plain.view(-1)[int(torch.randint(plain.numel(), ()))] = float("inf" if kind == "infinite" else "nan")
    return plain


def _short(value: Any) -> str:
    return "x".join(map(str, value.shape)) or "()" if isinstance(value, torch.Tensor) else repr(value)
