"""Small loops over the rows of tensors, made at random: what the vectoriser must rewrite rightly, or leave alone.

A loop is a way to run over the rows (a wrapper), an expression of one row (the body), and what keeps the result (the
sink). Dimensions are named: n runs over the loop, m over an inner one, p and q are those of a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.fixers import loop_parts as parts
from tests.fixers.loop_parts import COMPLEX, FLOATS, INTEGERS


@dataclass(frozen=True)
class Generated:
    """A module with a function `f`, the shapes of the tensors to call it with, and what the loop is made of.

    `indices`: those of the tensors that hold places along a dimension.
    """

    code: str
    shapes: dict[str, tuple[str, ...]]
    kind: str = FLOATS
    indices: dict[str, str] = field(default_factory=dict)
    sink: str = ""
    wrapper: str = ""
    body: frozenset[str] = frozenset()


class Maker:
    """Makes one loop."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.shapes: dict[str, tuple[str, ...]] = {}
        self.indices: dict[str, str] = {}
        self.kind = self.random.choices((FLOATS, INTEGERS, COMPLEX), (80, 12, 8))[0]
        self.inner = random.random() < 0.25
        self.axes = ("n", "m") if self.inner else ("n",)
        self.index = ("i", "j") if self.inner else ("i",)
        self.names = iter(f"{letter}{number}" for number in range(1, 9) for letter in "abcdefgh")
        self.row: tuple[str, tuple[str, ...]] | None = None
        self.indexed = True  # whether the loop has an index
        self.body_of: set[str] = set()
        self.made: dict[str, str] = {}  # modules that are made before the loop, by name

    # expressions of one iteration

    def tensor(self, *dims: str) -> str:
        """A parameter of that shape."""
        for name, known in self.shapes.items():
            if known == dims and name not in self.indices and self.random.random() < 0.6:
                return name
        name = next(self.names)
        self.shapes[name] = dims
        return name

    def places(self, along: str, *dims: str) -> str:
        """A parameter that holds places along a dimension."""
        name = next(self.names)
        self.shapes[name] = dims
        self.indices[name] = along
        return name

    def atom(self, dims: tuple[str, ...]) -> str:
        kind = self.random.random()
        if self.row is not None and self.row[1] == dims and (kind < 0.4 or not self.indexed):
            return self.row[0]
        if kind < 0.12 or not self.indexed:
            return self.tensor(*dims)
        if kind < 0.2 and not self.inner:
            return f"{self.tensor(*dims, 'n')}[..., i]" if dims else f"{self.tensor('n')}[i]"
        if kind < 0.3 and dims:
            where = self.random.randrange(len(dims) + 1)
            shape = [*dims[:where], "n", *dims[where:]]
            entries = [":"] * len(shape)
            entries[where] = "i"
            return f"{self.tensor(*shape)}[{', '.join(entries)}]"
        if kind < 0.36:
            return f"{self.tensor(*self.axes, 'q', *dims)}[{', '.join(self.index)}, 0]"
        if kind < 0.41 and not self.inner:
            self.body_of.add("gather")
            return f"{self.tensor('m', *dims)}[{self.places('m', 'n')}[i]]"
        if kind < 0.46 and not self.inner:
            self.body_of.add("pick")
            return f"{self.tensor('n', 'm', *dims)}[i, {self.places('m', 'n')}[i]]"
        if self.inner and kind < 0.6:
            axis = self.random.randrange(2)
            return f"{self.tensor(self.axes[axis], *dims)}[{self.index[axis]}]"
        return f"{self.tensor(*self.axes, *dims)}[{', '.join(self.index)}]"

    def expression(self, dims: tuple[str, ...], depth: int) -> str:
        if depth <= 0:
            return self.atom(dims)
        kind = self.random.random()
        if kind < 0.05 and self.indexed:
            return self.numbered(dims, depth)
        if kind < 0.09 and self.kind == FLOATS and dims:
            return self.layer(dims, depth)
        if kind < 0.2:
            self.body_of.add("pointwise")
            return self.random.choice(parts.UNARY[self.kind]).format(_grouped(self.expression(dims, depth - 1)))
        if kind < 0.5:
            return self.broadcasting(dims, depth)
        if kind < 0.65 and self.kind != INTEGERS:
            self.body_of.add("product")
            return self.product(dims, depth)
        if kind < 0.7 and self.kind == FLOATS:
            return self.matrix(dims, depth)
        if kind < 0.85 and len(dims) < 2:
            return self.along(dims, depth)
        if kind < 0.92 and not dims:
            return self.reduction(depth)
        if self.kind == FLOATS and self.random.random() < 0.5:
            return self.mapped(dims, depth)
        if dims:
            self.body_of.add("along")
            dim = self.random.randrange(-len(dims), len(dims))
            form = self.random.choice(parts.KEEPING[self.kind])
            return form.format(_grouped(self.expression(dims, depth - 1)), dim)
        return self.atom(dims)

    def numbered(self, dims: tuple[str, ...], depth: int) -> str:
        """The index of a loop as a number, beside a tensor."""
        self.body_of.add("index")
        index = self.random.choice(self.index)
        number = self.random.choice(parts.OF_INDEX[self.kind]).format(index)
        form = self.random.choice(parts.BESIDE_INDEX[self.kind])
        return form.format(_grouped(self.expression(dims, depth - 1)), number)

    def layer(self, dims: tuple[str, ...], depth: int) -> str:
        """A module that works along the last dimension."""
        self.body_of.add("module")
        inside = "q" if dims[-1] == "p" else "p"
        name, form = self.random.choice(parts.LAYERS)
        of = self.expression((*dims[:-1], inside), depth - 1)
        self.made[f"{name}_{dims[-1]}"] = form.format(inside, dims[-1])
        return f"{name}_{dims[-1]}({of})"

    def broadcasting(self, dims: tuple[str, ...], depth: int) -> str:
        self.body_of.add("pointwise")
        form = self.random.choice(parts.BINARY[self.kind])
        other = dims if self.random.random() < 0.7 else dims[self.random.randrange(len(dims) + 1) :]
        first, second = self.expression(dims, depth - 1), self.expression(other, depth - 1)
        if self.random.random() < 0.25 and form[0] == "{":
            second = self.random.choice(parts.NUMBERS)
        if "where" in form:
            return form.format(_grouped(first), first, second)
        return form.format(_grouped(first), _grouped(second))

    def along(self, dims: tuple[str, ...], depth: int) -> str:
        self.body_of.add("along")
        extra = "p" if "p" not in dims else "q"
        where = self.random.randrange(len(dims) + 1)
        inside = [*dims[:where], extra, *dims[where:]]
        dim = where if self.random.random() < 0.5 else where - len(inside)
        form = self.random.choice(parts.ALONG[self.kind])
        return form.format(_grouped(self.expression(tuple(inside), depth - 1)), dim)

    def reduction(self, depth: int) -> str:
        self.body_of.add("reduction")
        if self.kind == FLOATS and self.random.random() < 0.2:
            rows = [self.expression(("p",), depth - 1) for _ in range(2)]
            return self.random.choice(parts.LOSSES).format(*rows)
        form = self.random.choice(parts.REDUCTIONS[self.kind])
        inside = self.random.choice((("p",), ("p", "q")))
        return form.format(_grouped(self.expression(inside, depth - 1)))

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
        if len(dims) == 2 and dims[0] != dims[1] and self.random.random() < 0.3:
            letters = dict(zip((*dims, inside), "abc"))
            spelled = ",".join("".join(letters[dim] for dim in part) for part in (left, right))
            forms = [f"torch.einsum('{spelled}->{''.join(letters[dim] for dim in dims)}', {{}}, {{}})"]
        return self.random.choice(forms).format(_grouped(first), _grouped(second))

    def matrix(self, dims: tuple[str, ...], depth: int) -> str:
        """Of torch.linalg, of a matrix that is well conditioned."""
        self.body_of.add("linalg")
        size = dims[0] if dims else "p"
        of = _grouped(self.expression((size, "q" if size == "p" else "p"), depth - 2))
        turned = self.random.choice(("mT", "T", "t()"))
        square = f"{of} @ {of}.{turned} + torch.eye({size})"
        if not dims:
            return self.random.choice(parts.OF_MATRIX).format(square)
        right = self.expression(dims, depth - 1)
        forms = ("torch.linalg.solve({}, {})", "torch.linalg.inv({}) @ {}", "torch.linalg.cholesky({}) @ {}")
        form = self.random.choice(forms)
        return form.format(square, right if "solve" in form else _grouped(right))

    def mapped(self, dims: tuple[str, ...], depth: int) -> str:
        """What only vmap has a batched form for."""
        self.body_of.add("mapped")
        if dims:
            return self.random.choice(parts.MAPPED).format(_grouped(self.expression(dims, depth - 1)), dims[-1])
        if self.random.random() < 0.3:
            of = _grouped(self.expression(("p", "q"), depth - 2))
            return self.random.choice(parts.MATRIX_TO_NUMBER).format(f"({of} @ {of}.mT + torch.eye(p))")
        return self.random.choice(parts.MAPPED_TO_NUMBER).format(_grouped(self.expression(("p",), depth - 1)))

    # loops

    def loop(self) -> Generated:
        dims = self.random.choice(((), ("p",), ("p", "q")))
        wrapper, header = self.header()
        sinks: dict[str, Callable[[str, tuple[str, ...]], list[str]]] = {
            "fill": self.fill, "append": self.append, "sum": self.sum, "update": self.update,
        }  # fmt: skip
        if not self.indexed:
            sinks = {"append": self.append, "sum": self.sum}
        if not self.inner:
            sinks |= {"comprehension": self.comprehension, "sum of a generator": self.sum_of_generator}
            sinks |= {"list": self.list_of_rows, "mean": self.mean}
        if not self.inner and self.indexed:
            sinks |= {"where": self.where, "one-hot": self.one_hot, "histogram": self.histogram, "count": self.count}
        sink = self.random.choice(list(sinks))
        return self.module(sinks[sink](header, dims), sink=sink, wrapper=wrapper)

    def header(self) -> tuple[str, str]:
        """The name of the outer loop's header, and the header without the colon."""
        forms = ["range(n)", "range(n)", "range(len)", "range(size)", "range(shape)", "tqdm(range)", "trange"]
        if not self.inner:
            forms += ["direct", "direct", "enumerate", "enumerate", "zip", "enumerate(zip)", "tqdm", "unbind"]
        form = self.random.choice(forms)
        if form in parts.RANGES:
            return form, f"for i in {parts.RANGES[form]}"
        x = self.tensor("n", *self.random.choice((("p",), ("p", "q"), ())))
        if form.startswith("range"):
            return (
                form,
                f"for i in range({parts.COUNTS[form].format(x)})",
            )
        self.row = ("row", self.shapes[x][1:])
        self.indexed = "enumerate" in form
        other = self.tensor("n")
        return form, {
            "direct": f"for row in {x}",
            "unbind": f"for row in {x}.unbind()",
            "tqdm": f"for row in tqdm.tqdm({x})",
            "enumerate": f"for i, row in enumerate({x})",
            "zip": f"for row, other in zip({x}, {other})",
            "enumerate(zip)": f"for i, (row, _) in enumerate(zip({x}, {other}))",
        }[form]

    def body(self, dims: tuple[str, ...]) -> tuple[list[str], str]:
        """Temporaries, and the value of one iteration."""
        lines = []
        if self.random.random() < 0.4 and not self.inner:
            shape = self.random.choice((dims, ("p",)))
            lines.append(f"t = {self.expression(shape, 1)}")
            if shape and "[" in lines[0] and self.kind == FLOATS and self.random.random() < 0.2:
                lines[0] = f"t, _ = {_grouped(lines[0].removeprefix('t = '))}.sort(dim=0)"
                self.body_of.add("two results")
            if "[" in lines[0] or "row" in lines[0]:
                self.row = ("t", shape)
        return lines, self.value(dims)

    def value(self, dims: tuple[str, ...]) -> str:
        """An expression that is not the same in every iteration."""
        for _ in range(20):
            value = self.expression(dims, self.random.randrange(1, 4))
            if self.varies(value):
                return value
        if self.indexed:
            return f"{self.tensor(*self.axes, *dims)}[{', '.join(self.index)}]"
        assert self.row is not None
        of_row = self.row[0] + ".sum()" * bool(self.row[1])
        return f"{of_row} * {self.tensor(*dims)}"

    def varies(self, value: str) -> bool:
        if self.inner:
            return all(f"{index}]" in value or f"{index}, " in value for index in self.index)
        of_row = self.row is not None and self.row[0] in value.replace(".", " ").replace("(", " ").split()
        return of_row or "i]" in value or "[i, " in value or "i, :" in value

    @property
    def dtype(self) -> str:
        return {FLOATS: "", INTEGERS: ", dtype=torch.int64", COMPLEX: ", dtype=torch.complex128"}[self.kind]

    def fill(self, header: str, dims: tuple[str, ...]) -> list[str]:
        lines, value = self.body(dims)
        spot = f"out[{', '.join(self.index)}]"
        shape = [*self.axes, *dims]
        if dims and not self.inner and self.random.random() < 0.3:
            shape, spot = [dims[0], "n", *dims[1:]], "out[:, i]"
        sign = self.random.choice(("=", "=", "+="))
        if not dims and sign == "=" and self.random.random() < 0.2:
            value = f"{_grouped(value)}.item()"
        elif sign == "=" and self.random.random() < 0.1:
            value = self.random.choice(parts.OF_INDEX[self.kind]).format(self.random.choice(self.index))
            self.body_of.add("index")
        if self.inner and self.random.random() < 0.2:
            spot = spot.replace(", ", "][", 1)
        held = self.random.choice((*["out"] * 6, *parts.HELD))
        made = f"{held} = torch.zeros({', '.join(shape)}{self.dtype})"
        filled = self.nested(header, [*lines, f"{held}{spot.removeprefix('out')} {sign} {value}"])
        return [made, *filled] if held == "out" else [parts.HELD[held], made, *filled, f"out = {held}"]

    def update(self, header: str, dims: tuple[str, ...]) -> list[str]:
        """Elements that are made out of themselves."""
        lines, value = self.body(dims)
        spot = f"out[{', '.join(self.index)}]"
        form = self.random.choice(("{0} = {0} * {1}", "{0} *= {1}", "{0} = ({0} - {1}) * 2", "{0} -= {1}"))
        made = f"{self.tensor(*self.axes, *dims)}.clone()"
        return [f"out = {made}", *self.nested(header, [*lines, form.format(spot, _grouped(value))])]

    def nested(self, header: str, lines: list[str]) -> list[str]:
        if not self.inner:
            return [f"{header}:", *("    " + line for line in lines)]
        return [f"{header}:", "    for j in range(m):", *("        " + line for line in lines)]

    def append(self, header: str, dims: tuple[str, ...]) -> list[str]:
        lines, value = self.body(dims)
        between = ["scale = 2.0"] if self.random.random() < 0.3 else []
        return [
            "rows = []", *self.nested(header, [*lines, f"rows.append({value})"]), *between,
            f"out = {self.joined('rows', dims)}",
        ]  # fmt: skip

    def joined(self, what: str, dims: tuple[str, ...]) -> str:
        if dims and self.random.random() < 0.3:
            return f"torch.cat({what}, dim={self.random.randrange(len(dims))})"
        return f"torch.stack({what})" if self.random.random() < 0.7 else f"torch.stack({what}, dim={len(dims)})"

    def comprehension(self, header: str, dims: tuple[str, ...]) -> list[str]:
        return [f"out = {self.joined(f'[{self.value(dims)} {header}]', dims)}"]

    def list_of_rows(self, header: str, dims: tuple[str, ...]) -> list[str]:
        return [f"rows = [{self.value(dims)} {header}]", f"out = {self.joined('rows', dims)}"]

    def sum_of_generator(self, header: str, dims: tuple[str, ...]) -> list[str]:
        return [f"out = sum({self.value(dims)} {header})"]

    def mean(self, header: str, dims: tuple[str, ...]) -> list[str]:
        lines, value = self.body(dims)
        return ["rows = []", *self.nested(header, [*lines, f"rows.append({value})"]), "out = sum(rows) / len(rows)"]

    def sum(self, header: str, dims: tuple[str, ...]) -> list[str]:
        lines, value = self.body(dims)
        start = self.random.choice(("0", "0.0", f"torch.zeros({', '.join(dims) or '()'}{self.dtype})"))
        form = self.random.choice(("out += {}", "out = out + {}", "out -= {}"))
        return [f"out = {start}", *self.nested(header, [*lines, form.format(_grouped(value))])]

    def where(self, header: str, dims: tuple[str, ...]) -> list[str]:
        """Elements that change where something holds."""
        spot, value = "out[i]", self.value(dims)
        lines = [f"if {self.condition(dims)}:", f"    {spot} = {value}"]
        if self.random.random() < 0.4:
            lines += ["else:", f"    {spot} = {self.value(dims)}"]
        return [f"out = {self.tensor('n', *dims)}.clone()", *self.nested(header, lines)]

    def condition(self, dims: tuple[str, ...]) -> str:
        if self.indices and self.random.random() < 0.6:
            return f"{self.random.choice(list(self.indices))}[i] {self.random.choice(('>=', '!=', '>'))} 0"
        x = self.tensor("n", *dims)
        of_row = f"{x}[i]{'.real' * (self.kind == COMPLEX)}{'.sum()' * bool(dims)}"
        return f"{of_row} {self.random.choice(('<', '>', '>='))} 0"

    def one_hot(self, header: str, dims: tuple[str, ...]) -> list[str]:
        shape = self.random.choice((("n", "m"), ("n", "m", *dims)))
        value = "1" if self.random.random() < 0.6 else self.value(shape[2:])
        return [
            f"out = torch.zeros({', '.join(shape)}{self.dtype})",
            *self.nested(header, [f"out[i, {self.places('m', 'n')}[i]] = {value}"]),
        ]

    def histogram(self, header: str, dims: tuple[str, ...]) -> list[str]:
        shape = self.random.choice((("m",), ("m", *dims)))
        value = "1" if self.random.random() < 0.5 else self.value(shape[1:])
        return [
            f"out = torch.zeros({', '.join(shape)}{self.dtype})",
            *self.nested(header, [f"out[{self.places('m', 'n')}[i]] += {value}"]),
        ]

    def count(self, header: str, dims: tuple[str, ...]) -> list[str]:
        first, second = self.places("m", "n"), self.places("m", "n")
        lines = self.random.choice(
            (
                [f"if {first}[i] == {second}[i]:", "    out += 1"],
                [f"out += ({first}[i] == {second}[i]).item()"],
                [f"out += int({first}[i] == {second}[i])"],
                [f"out += ({first}[i] == {second}[i]).sum()"],
            )
        )
        return ["out = 0", *self.nested(header, lines), "out = torch.as_tensor(out)"]

    def module(self, lines: list[str], sink: str = "", wrapper: str = "") -> Generated:
        known = []
        for name, dims in self.shapes.items():
            if dims and self.random.random() < 0.85:
                shown = [dim if dim in ("n", "m", "p", "q") else "_" for dim in dims]
                known.append(f"{', '.join(shown)}{',' if len(shown) == 1 else ''} = {name}.shape")
        sizes = {dim for dims in self.shapes.values() for dim in dims} | {"n", "m", "p", "q"}
        missing = [dim for dim in sorted(sizes) if not any(dim in line.split(" = ")[0].split(", ") for line in known)]
        head = [f"{dim} = SIZES['{dim}']" for dim in missing]
        like = next((name for name in self.shapes if name not in self.indices), None)
        made = [f"{name} = {text}.to({like}.dtype)" for name, text in self.made.items()]
        body = "\n".join(f"    {line}" for line in [*head, *known, *made, *lines, "return out"] if line)
        parameters = ", ".join(f"{name}: torch.Tensor" for name in self.shapes)
        own = "".join(f"\n\n{text}" for name, text in parts.OWN.items() if f"{name}(" in body)
        code = f"import torch\nimport torch.nn.functional as F\nimport tqdm\n{own}\n\ndef f({parameters}):\n{body}\n"
        body_of = frozenset(self.body_of or {"copy"})
        return Generated(code, dict(self.shapes), self.kind, dict(self.indices), sink, wrapper, body_of)


def planted(random: Random, lines: tuple[str, ...]) -> Generated:
    """A loop that would be independent but for these lines."""
    maker = Maker(random)
    maker.inner, maker.axes, maker.index, maker.kind = False, ("n",), ("i",), FLOATS
    value = maker.expression(("p",), 2)
    row = value if "[i" in value or "i]" in value else "x[i]"
    maker.shapes = {"x": ("n", "p"), "labels": ("n",), **maker.shapes}
    maker.indices["labels"] = "m"
    used = set(re.findall(r"\w+", " ".join(lines)))
    used |= {"base"} if used & {"alias", "shifted"} else set()
    used |= {"out"} if "turned" in used else set()
    used |= {"held"} if used & {"same", "beyond"} else set()
    head = [made for name, made in parts.MADE_BEFORE.items() if name in used]
    headers = ("for i in range(n - 1):", "for i, _ in enumerate(x[1:]):", "for i in tqdm.tqdm(range(n - 1)):")
    body = [f"    {line.format(row=f'({row})')}" for line in lines]
    kept = ["out = torch.stack(rows)"] if any("rows.append" in line for line in lines) else []
    return maker.module([*head, random.choice(headers), *body, *kept], sink="planted")


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
