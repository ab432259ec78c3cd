"""What generated loops are made of: expressions of one row, and lines that make iterations depend on each other."""

from __future__ import annotations

FLOATS, INTEGERS, COMPLEX = "floats", "integers", "complex"

UNARY = {
    FLOATS: ("torch.exp({})", "torch.tanh({})", "torch.abs({})", "{}.relu()", "-{}", "{}.sigmoid()", "{}.square()"),
    INTEGERS: ("torch.abs({})", "-{}", "{}.square()", "{}.clamp(min=0)"),
    COMPLEX: ("{}.conj()", "torch.exp({})", "-{}", "{}.square()", "torch.conj({})"),
}
BINARY = {
    FLOATS: ("{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "torch.where({} > 0, {}, 0 * {})"),
    INTEGERS: ("{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "torch.where({} > 0, {}, 0 * {})"),
    COMPLEX: ("{} + {}", "{} - {}", "{} * {}"),
}
NUMBERS = ("2", "0.5", "3.0", "1")
REDUCTIONS = {
    FLOATS: ("{}.sum()", "{}.mean()", "torch.sum({})", "{}.max()", "{}.norm()", "torch.norm({})", "{}.std()"),
    INTEGERS: ("{}.sum()", "{}.max()", "{}.min()"),
    COMPLEX: ("{}.sum()", "{}.mean()", "torch.sum({})", "{}.norm()"),
}
ALONG = {
    FLOATS: ("{}.sum({})", "{}.mean(dim={})", "torch.sum({}, {})", "{}.amax({})", "{}.max({}).values",
             "{}.norm(dim={})"),
    INTEGERS: ("{}.sum({})", "torch.sum({}, {})", "{}.amax({})"),
    COMPLEX: ("{}.sum({})", "{}.mean(dim={})", "{}.norm(dim={})"),
}  # fmt: skip
KEEPING = {
    FLOATS: ("torch.softmax({}, dim={})", "{}.cumsum({})", "F.normalize({}, dim={})", "{}.log_softmax({})"),
    INTEGERS: ("{}.cumsum({})",),
    COMPLEX: ("{}.cumsum({})",),
}
# Of the index of a loop, and what a row does with it.
OF_INDEX = {
    FLOATS: ("{0}", "({0} + 1)", "({0} / 3)", "abs({0} - 2)", "(0.5 * {0} - 1)", "({0} % 2)"),
    INTEGERS: ("{0}", "({0} + 1)", "(3 * {0})", "abs({0} - 2)", "({0} // 2)"),
    COMPLEX: ("{0}", "({0} + 1)"),
}
BESIDE_INDEX = {
    FLOATS: ("{} * {}", "{} + {}", "{0} * ({0} > {1})", "{} - {}"),
    INTEGERS: ("({} == {}).long()", "({} > {}).long()"),
    COMPLEX: ("{} * {}", "{} + {}"),
}
LAYERS = (
    ("linear", "torch.nn.Linear({}, {})"),
    ("stacked", "torch.nn.Sequential(torch.nn.Linear({}, 4), torch.nn.ReLU(), torch.nn.Linear(4, {}))"),
)
# Where a tensor is that is no variable, and what has to be made first.
HELD = {"held.out": "held = Held()", 'kept["out"]': "kept = {}"}
RANGES = {"range(n)": "range(n)", "tqdm(range)": "tqdm.tqdm(range(n))", "trange": "tqdm.trange(n)"}
COUNTS = {"range(len)": "len({})", "range(size)": "{}.size(0)", "range(shape)": "{}.shape[0]"}
LOSSES = ("F.mse_loss({}, {})", "F.l1_loss({}, {})", "F.cosine_similarity({}, {}, dim=0)")
OF_MATRIX = ("torch.linalg.det({})", "torch.logdet({})", "torch.linalg.inv({}).sum()", "torch.trace({})",
              "torch.linalg.svdvals({}).sum()", "torch.linalg.eigvalsh({}).max()",
              "torch.diagonal({}).sum()")  # fmt: skip

# What no table has a batched form for: torch.vmap computes it. Of the row's own shape, whose last dimension is named.
MAPPED = (
    "torch.roll({0}, 1)",
    "torch.roll({0}, 1, 0)",
    "torch.fft.fft({0}).real",
    "torch.fft.ifftn({0}).imag",
    "torch.fft.irfft({0}, {1})",
    "torch.fft.fftshift({0})",
    "torch.flipud({0})",
    "torch.msort({0})",
    "{0}.sort(dim=0).values",
    "torch.diff({0}, prepend={0}[..., :1])",
    "F.layer_norm({0}, ({1},))",
    "F.pad({0}, (1, 0))[..., 1:]",
    "torch.cat(({0}, {0}), dim=-1)[..., :{1}]",
    "torch.repeat_interleave({0}, 1)",
    "torch.cumulative_trapezoid(F.pad({0}, (0, 1)))",
    "torch.heaviside({0}, torch.ones(()))",
    "centred({0})",
    "spectrum({0})",
    "spectrum({0}, k=4)",
    "spectrum(centred({0}), {1})",
    "F.huber_loss({0}, 2 * {0}, reduction='none')",
    "torch.take_along_dim({0}, torch.zeros_like({0}, dtype=torch.int64), 0)",
    "{0}.view({0}.shape)",
)
MAPPED_TO_NUMBER = (
    "torch.trapezoid({0})",
    "torch.dist({0}, {0} + 1)",
    "torch.fft.rfft({0}).abs().sum()",
    "centred({0}).max()",
    "F.smooth_l1_loss({0}, {0} * 3)",
    "torch.diff({0}).square().sum()",
    "{0}.unfold(0, 2, 1).sum()",
    "energy({0})",
    "torch.cdist({0}[:, None], {0}[:, None]).sum()",
    "{0}.roll(1).dot({0})",
)
MATRIX_TO_NUMBER = (
    "torch.linalg.slogdet({})[1]",
    "torch.linalg.slogdet({}).logabsdet",
    "torch.linalg.matrix_norm({})",
    "torch.linalg.cond({})",
    "torch.linalg.eigvals({}).abs().sum()",
    "torch.kron({0}, {0}).sum()",
    "torch.linalg.solve_triangular({0}.tril(), {0}, upper=False).sum()",
    "torch.rot90({}).trace()",
)
# Functions of the file, by name.
OWN = {
    "Held": "class Held:\n    pass\n",
    "centred": "def centred(r):\n    s = r - r.mean()\n    return s / (1 + s.abs().max())\n",
    "spectrum": "def spectrum(r, k=2.0):\n    s = torch.fft.fft(r)\n    return (s * s.conj()).real / k\n",
    "energy": 'def energy(r):\n    """Of all elements."""\n    return torch.roll(r, 1).square().sum() / r.numel()\n',
}

# Lines that make an iteration depend on another one, or do more than compute. `{row}` is a row.
DEPENDENCES = (
    "h = h + {row}; rows.append(h)",
    "h = torch.tanh({row} + h.mean()); rows.append(h)",
    "h = torch.maximum(h, {row}); rows.append(h)",
    "rows.append({row} * h.mean()); h = {row}",
    "rows.append({row} + torch.randn(1))",
    "rows.append({row} * torch.rand_like({row}))",
    "rows.append(F.dropout({row}))",
    "rows.append({row} + rows[-1] if rows else {row})",
    "base.add_({row}.sum()); rows.append({row} * base.sum())",
    "rows.append({row} * len(rows))",
    "t.append(1); rows.append({row} * len(t))",
    "out[i] = {row}.sum() + out[i - 1]; rows.append({row})",
    "out[i + 1] = {row}.sum() + out[i]; rows.append({row})",
    "out[i] = {row}.sum() + out[i + 1]; out[i + 1] = 2; rows.append({row})",
    "out[i] = {row}.sum(); rows.append({row} * out.sum())",
    "out[0] = {row}.sum(); rows.append({row} * out[0])",
    "out[-1] += {row}.sum(); table[i, i] = out[i]; rows.append({row})",
    "out[i] = out[count - 1 - i] + {row}.sum(); rows.append({row})",
    "out[order[i]] = {row}.sum() + out[i]; rows.append({row})",
    "out[labels[i]] = {row}.sum(); rows.append({row})",
    "out[labels[i]] += {row}.sum(); table[i, i] = out[labels[i]]; rows.append({row})",
    "table[labels[i], labels[i]] = {row}.sum(); rows.append({row})",
    "alias[i] = {row}.sum(); table[i, i] = base[i]; rows.append({row})",
    "shifted[i] = base[i] + {row}.sum(); rows.append({row})",
    "turned[i] = {row}.sum() + out[i]; rows.append({row})",
    "rows.append({row}.exp_())",
    "rows.append({row}.clone()); rows[0].add_({row})",
    "own[i] = {row} * 2; rows.append({row} + own.sum())",
    "own[i + 1] = {row} * own[i]; rows.append({row})",
    "row = own[i]; row *= 2; rows.append({row} + own.sum())",
    "r = own[0]; r += {row}; rows.append({row} * own[i])",
    "best = best if best > {row}.sum() else {row}.sum(); rows.append({row} * best)",
    "total += {row}.sum(); rows.append({row} / total)",
    "total = total + {row}.sum(); out[i] = total; rows.append({row})",
    "rows.append({row} * next(numbers))",
    "rows.append({row} + bump({row}))",
    "count = count + 1; rows.append({row} * count)",
    "count = count + 1; rows.append(torch.roll({row}, count))",
    "rows.append(torch.roll({row}, len(rows)))",
    "rows.append(torch.roll(h, 1) + {row}); h = {row}",
    "h = torch.cat((h, {row}))[-len(h) :]; rows.append(h + torch.roll(h, 1))",
    "own[i + 1] = torch.roll(own[i], 1) + {row}; rows.append({row})",
    "rows.append(drawn({row}))",
    "rows.append(bumped({row}))",
    "rows.append(grown({row}))",
    "rows.append(beside({row}, out)); out[i] = {row}.sum()",
    "total += {row}.sum(); rows.append(beside({row}, total))",
)
DEPENDENCES += (
    "held.out[i] = {row}.sum() + held.out[i - 1]; rows.append({row})",
    "held.out[i] = {row}.sum(); rows.append({row} * held.out.sum())",
    "held.out[i] = {row}.sum() + same.out[i - 1]; rows.append({row})",
    "held.out[i] = {row}.sum() + beyond[i]; rows.append({row})",
    "held.out[0] = {row}.sum() * i; rows.append({row})",
    "total += i; rows.append({row} * total)",
    "count = count + i; rows.append({row} * count)",
    "out[i // 2] = {row}.sum(); rows.append({row})",
    "out[n - 1 - i] = out[i] + {row}.sum(); rows.append({row})",
    "h, _ = ({row} + h).sort(dim=0); rows.append(h)",
    "rows.append(dropping({row}))",
)
BRANCHES = (
    ("if {row}.sum() > h.sum():", "    h = {row}", "rows.append(h)"),
    ("if {row}.sum() > 0:", "    rows.append({row})", "else:", "    rows.append(h)", "    h = h + 1"),
    ("if {row}.sum() > 0:", "    rows.append({row})"),
    ("if {row}.sum() > 4:", "    break", "rows.append({row})"),
    ("if out[i - 1] > 0:", "    out[i] = {row}.sum()", "rows.append({row})"),
    ("if base[i] > 0:", "    out[i] = out[i - 1] + 1", "rows.append({row})"),
    ("if base[i] > 0:", "    base[i + 1] = -base[i]", "rows.append({row})"),
    ("if base[i] > 0:", "    total += 1", "rows.append({row} * total)"),
)
# The like of those lines without a dependence.
WITHOUT = (
    "rows.append({row})",
    "h = {row}; rows.append(h)",
    "h = torch.tanh({row} + x[i].mean()); rows.append(h)",
    "rows.append({row} + out[i])",
    "out[i] = base[i] + {row}.sum(); rows.append({row})",
    "out[i] = {row}.sum(); table[i, i] = base[i]; rows.append({row})",
    "table[i, i] = {row}.sum(); rows.append({row})",
    "row = own[i]; row = row * 2; rows.append({row} + row)",
    "own[i] = {row} * 2; rows.append({row})",
    "best = {row}.sum(); rows.append({row} * best)",
    "total += {row}.sum(); rows.append({row})",
    "if base[i] > 0:;     out[i] = {row}.sum(); rows.append({row})",
    "rows.append(torch.roll({row}, 1))",
    "rows.append(beside({row}, base))",
    "held.out[i] = {row}.sum() + base[i]; rows.append({row})",
    "held.out[i] = i; rows.append({row})",
    "t, _ = {row}.sort(dim=0); rows.append(t)",
)
INDEPENDENT = tuple(tuple(line.split("; ")) for line in WITHOUT)
# What these lines need before the loop, each name for itself: a second name of `out` would keep any loop as it is.
MADE_BEFORE = {
    "rows": "rows = []",
    "base": "base = torch.ones(n, device=x.device)",
    "own": "own = x.clone()",
    "t": "t = []",
    "h": "h = torch.zeros(p)",
    "count": "count = n",
    "out": "out = torch.zeros(n, device=x.device)",
    "alias": "alias = base",
    "best": "best = torch.zeros(())",
    "total": "total = 0.0",
    "numbers": "numbers = iter(range(n))",
    "shifted": "shifted = base[1:]",
    "turned": "turned = out.view(n)",
    "table": "table = torch.zeros(m, m)",
    "order": "order = torch.randperm(n)",
    "held": "held = Held()\n    held.out = torch.zeros(n, device=x.device)",
    "same": "same = held",
    "beyond": "beyond = held.out[1:]",
    "dropping": "dropping = torch.nn.Sequential(torch.nn.Linear(p, p), torch.nn.Dropout())",
    "drawn": "def drawn(r): return torch.roll(r, 1) + torch.rand(1)",
    "bumped": "def bumped(r, seen=[]): seen.append(r); return torch.roll(r, 1) * len(seen)",
    "grown": "def grown(r): r.add_(1); return torch.roll(r, 1)",
    "beside": "def beside(r, all_of_them): return torch.roll(r, 1) + all_of_them.sum()",
    "bump": "bump = lambda row, seen=[]: seen.append(row) or len(seen)",
}
PLANTED: tuple[tuple[str, ...], ...] = (*(tuple(line.split("; ")) for line in DEPENDENCES), *BRANCHES)
