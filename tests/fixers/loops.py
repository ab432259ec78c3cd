"""Small loops over the rows of tensors, made at random: what the vectoriser must rewrite rightly, or leave alone."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

_UNARY = ("torch.exp({})", "torch.tanh({})", "torch.abs({})", "{}.relu()", "-{}", "torch.sigmoid({})", "{}.square()")
_UNARY_INT = ("torch.abs({})", "-{}", "{}.square()", "{}.clamp(min=0)")
_BINARY = ("{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "torch.where({} > 0, {}, 0 * {})")
_NUMBERS = ("2", "0.5", "3.0", "1")
_REDUCTIONS = ("{}.sum()", "{}.mean()", "torch.sum({})", "{}.max()", "{}.norm()", "torch.norm({})", "{}.std()")
_REDUCTIONS_INT = ("{}.sum()", "{}.max()", "{}.min()")
_ALONG = ("{}.sum({})", "{}.mean(dim={})", "torch.sum({}, {})", "{}.amax({})", "{}.max({}).values", "{}.norm(dim={})")
_ALONG_INT = ("{}.sum({})", "torch.sum({}, {})", "{}.amax({})")
_KEEPING = ("torch.softmax({}, dim={})", "{}.cumsum({})", "F.normalize({}, dim={})", "{}.log_softmax({})")

# Lines that make an iteration depend on another one, or do more than compute. `{}` is a row.
DEPENDENCES = (
    "h = h + {row}; rows.append(h)",
    "h = torch.tanh({row} + h.mean()); rows.append(h)",
    "rows.append({row} + torch.randn(1))",
    "rows.append(F.dropout({row}))",
    "rows.append({row} + rows[-1] if rows else {row})",
    "base.add_({row}.sum()); rows.append({row} * base.sum())",
    "rows.append({row} * len(rows))",
    "t.append(1); rows.append({row} * len(t))",
    "out[i] = {row}.sum() + out[i - 1]; rows.append({row})",
    "out[i] = {row}.sum(); rows.append({row} * out.sum())",
    "out[0] = {row}.sum(); rows.append({row} * out[0])",
    "out[i] = out[count - 1 - i] + {row}.sum(); rows.append({row})",
    "alias[i] = {row}.sum(); rows.append({row} * base[i])",
    "shifted[i] = base[i] + {row}.sum(); rows.append({row})",
    "rows.append({row}.exp_())",
    "x[i] = {row} * 2; rows.append({row} + x.sum())",
)


@dataclass(frozen=True)
class Generated:
    """A module with a function `f`, and the shapes of the tensors to call it with."""

    code: str
    shapes: dict[str, tuple[str, ...]]
    integers: bool


class Maker:
    """Makes one loop. Dimensions are named: n runs over the loop, m over an inner one, p and q are those of a row."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.shapes: dict[str, tuple[str, ...]] = {}
        self.integers = random.random() < 0.15
        self.inner = random.random() < 0.25
        self.axes = ("n", "m") if self.inner else ("n",)
        self.index = ("i", "j") if self.inner else ("i",)
        self.names = iter(f"{letter}{number}" for number in range(1, 9) for letter in "abcdefgh")
        self.row_name: tuple[str, tuple[str, ...]] | None = None

    # expressions of one iteration

    def tensor(self, *dims: str) -> str:
        """A parameter of that shape."""
        for name, known in self.shapes.items():
            if known == dims and self.random.random() < 0.6:
                return name
        name = next(self.names)
        self.shapes[name] = dims
        return name

    def atom(self, dims: tuple[str, ...]) -> str:
        kind = self.random.random()
        if self.row_name is not None and self.row_name[1] == dims and kind < 0.4:
            return self.row_name[0]
        if kind < 0.12:
            return self.tensor(*dims)
        if kind < 0.2 and len(self.axes) == 1:
            return f"{self.tensor(*dims, 'n')}[..., {self.index[0]}]" if dims else f"{self.tensor('n')}[i]"
        if kind < 0.3 and dims:
            where = self.random.randrange(len(dims) + 1)
            shape = [*dims[:where], "n", *dims[where:]]
            entries = [":"] * len(shape)
            entries[where] = "i"
            return f"{self.tensor(*shape)}[{', '.join(entries)}]"
        if kind < 0.36:
            return f"{self.tensor(*self.axes, 'q', *dims)}[{', '.join(self.index)}, 0]"
        if self.inner and kind < 0.5:
            axis = self.random.randrange(2)
            return f"{self.tensor(self.axes[axis], *dims)}[{self.index[axis]}]"
        return f"{self.tensor(*self.axes, *dims)}[{', '.join(self.index)}]"

    def expression(self, dims: tuple[str, ...], depth: int) -> str:
        if depth <= 0:
            return self.atom(dims)
        kind = self.random.random()
        if kind < 0.2:
            form = self.random.choice(_UNARY_INT if self.integers else _UNARY)
            return form.format(_grouped(self.expression(dims, depth - 1)))
        if kind < 0.55:
            form = self.random.choice(_BINARY)
            other = dims if self.random.random() < 0.7 else dims[self.random.randrange(len(dims) + 1) :]
            first, second = self.expression(dims, depth - 1), self.expression(other, depth - 1)
            if self.random.random() < 0.25 and form[0] == "{":
                second = self.random.choice(_NUMBERS)
            if "where" in form:
                return form.format(_grouped(first), first, second)
            return form.format(_grouped(first), _grouped(second))
        if kind < 0.7 and not self.integers:
            return self.product(dims, depth)
        if kind < 0.85 and len(dims) < 2:
            extra = "p" if "p" not in dims else "q"
            where = self.random.randrange(len(dims) + 1)
            inside = [*dims[:where], extra, *dims[where:]]
            form = self.random.choice(_ALONG_INT if self.integers else _ALONG)
            dim = where if self.random.random() < 0.5 else where - len(inside)
            return form.format(_grouped(self.expression(tuple(inside), depth - 1)), dim)
        if kind < 0.93 and not dims:
            form = self.random.choice(_REDUCTIONS_INT if self.integers else _REDUCTIONS)
            inside = self.random.choice((("p",), ("p", "q")))
            return form.format(_grouped(self.expression(inside, depth - 1)))
        if dims and not self.integers:
            dim = self.random.randrange(-len(dims), len(dims))
            return self.random.choice(_KEEPING).format(_grouped(self.expression(dims, depth - 1)), dim)
        return self.atom(dims)

    def product(self, dims: tuple[str, ...], depth: int) -> str:
        inside = "q" if "q" not in dims else "p"
        if len(dims) == 2:
            left, right = (dims[0], inside), (inside, dims[1])
            if self.random.random() < 0.2 and dims[0] != dims[1]:
                vectors = [_grouped(self.expression((dim,), depth - 1)) for dim in dims]
                return f"torch.outer({vectors[0]}, {vectors[1]})"
        elif len(dims) == 1:
            left, right = (
                ((dims[0], inside), (inside,)) if self.random.random() < 0.5 else ((inside,), (inside, dims[0]))
            )
        else:
            left, right = (inside,), (inside,)
        first, second = self.expression(left, depth - 1), self.expression(right, depth - 1)
        forms = ["{} @ {}", "torch.matmul({}, {})", "{}.matmul({})"]
        forms += {(2, 2): ["torch.mm({}, {})"], (2, 1): ["torch.mv({}, {})"], (1, 1): ["torch.dot({}, {})"]}.get(
            (len(left), len(right)), []
        )
        return self.random.choice(forms).format(_grouped(first), _grouped(second))

    # loops

    def loop(self) -> Generated:
        dims = self.random.choice(((), ("p",), ("p", "q")))
        header = self.header()
        sink = self.random.choice(("fill", "append", "comprehension", "sum"))
        if self.inner and sink == "comprehension":
            sink = "fill"
        lines = {"fill": self.fill, "append": self.append, "comprehension": self.comprehension, "sum": self.sum}[sink](
            header, dims
        )
        return self.module(lines)

    def header(self) -> str:
        """The outer loop's header, without the colon."""
        kind = self.random.random()
        if kind < 0.45:
            return "for i in range(n)"
        x = self.tensor("n", *self.random.choice((("p",), ("p", "q"), ())))
        dims = self.shapes[x][1:]
        if kind < 0.6 or self.inner:
            return self.random.choice((f"for i in range(len({x}))", f"for i in range({x}.size(0))"))
        self.row_name = ("row", dims)
        if kind < 0.85:
            return f"for i, row in enumerate({x})"
        return f"for i, (row, _) in enumerate(zip({x}, {self.tensor('n')}))"

    def body(self, dims: tuple[str, ...]) -> tuple[list[str], str]:
        """Temporaries, and the value of one iteration."""
        lines = []
        if self.random.random() < 0.4 and not self.inner:
            shape = self.random.choice((dims, ("p",)))
            lines.append(f"t = {self.expression(shape, 1)}")
            if "[" in lines[0] or "row" in lines[0]:
                self.row_name = ("t", shape)
        return lines, self.expression(dims, self.random.randrange(1, 4))

    def fill(self, header: str, dims: tuple[str, ...]) -> list[str]:
        lines, value = self.body(dims)
        dtype = ", dtype=torch.int64" if self.integers else ""
        spot = f"out[{', '.join(self.index)}]"
        shape = [*self.axes, *dims]
        if dims and not self.inner and self.random.random() < 0.3:
            shape, spot = [dims[0], "n", *dims[1:]], "out[:, i]"
        sign = self.random.choice(("=", "=", "+="))
        return [
            f"out = torch.zeros({', '.join(shape)}{dtype})",
            *self.nested(header, [*lines, f"{spot} {sign} {value}"]),
        ]

    def nested(self, header: str, lines: list[str]) -> list[str]:
        if not self.inner:
            return [f"{header}:", *("    " + line for line in lines)]
        return [f"{header}:", "    for j in range(m):", *("        " + line for line in lines)]

    def append(self, header: str, dims: tuple[str, ...]) -> list[str]:
        lines, value = self.body(dims)
        made = "torch.stack(rows)" if self.random.random() < 0.7 else f"torch.stack(rows, dim={len(dims)})"
        if dims and self.random.random() < 0.3:
            made = f"torch.cat(rows, dim={self.random.randrange(len(dims))})"
        between = ["scale = 2.0"] if self.random.random() < 0.3 else []
        return ["rows = []", *self.nested(header, [*lines, f"rows.append({value})"]), *between, f"out = {made}"]

    def comprehension(self, header: str, dims: tuple[str, ...]) -> list[str]:
        value = self.expression(dims, self.random.randrange(1, 4))
        if "enumerate" not in header:
            self.row_name = None
        return [f"out = torch.stack([{value} {header}])"]

    def sum(self, header: str, dims: tuple[str, ...]) -> list[str]:
        lines, value = self.body(dims)
        start = self.random.choice(("0", "0.0", f"torch.zeros({', '.join(dims) or '()'})"))
        form = self.random.choice(("out += {}", "out = out + {}", "out -= {}"))
        return [f"out = {start}", *self.nested(header, [*lines, form.format(_grouped(value))])]

    def module(self, lines: list[str], extra: str = "") -> Generated:
        known = []
        for name, dims in self.shapes.items():
            if dims and self.random.random() < 0.85:
                shown = [dim if dim in ("n", "m", "p", "q") else "_" for dim in dims]
                known.append(f"{', '.join(shown)}{',' if len(shown) == 1 else ''} = {name}.shape")
        sizes = {dim for dims in self.shapes.values() for dim in dims} | {"n", "m", "p", "q"}
        missing = [dim for dim in sorted(sizes) if not any(dim in line.split(" = ")[0].split(", ") for line in known)]
        head = [f"{dim} = SIZES['{dim}']" for dim in missing]
        body = "\n".join(f"    {line}" for line in [*head, *known, extra, *lines, "return out"] if line)
        parameters = ", ".join(f"{name}: torch.Tensor" for name in self.shapes)
        code = f"import torch\nimport torch.nn.functional as F\n\n\ndef f({parameters}):\n{body}\n"
        return Generated(code, dict(self.shapes), self.integers)


def _grouped(text: str) -> str:
    plain = all(character.isalnum() or character in "._" for character in text)
    balanced = text.endswith((")", "]")) and " " not in text.split("(")[0].split("[")[0]
    if balanced:
        depth = 0
        for place, character in enumerate(text):
            depth += (character in "([") - (character in ")]")
            if depth == 0 and character in ")]" and place < len(text) - 1 and text[place + 1] not in "[(.":
                balanced = False
    return text if plain or (balanced and not text.startswith("-")) else f"({text})"
