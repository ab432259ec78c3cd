"""What a training program keeps track of, in the words of people: sums, lists, bests, logs, gradients, evaluations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from textwrap import indent


@dataclass
class Idiom:
    """Lines of one thing that a program keeps track of, by where they stand. State that outlives a step is written
    `@name`, an attribute in a trainer and a variable elsewhere."""

    start: list[str] = field(default_factory=list)
    epoch: list[str] = field(default_factory=list)
    step: list[str] = field(default_factory=list)
    epoch_end: list[str] = field(default_factory=list)
    end: list[str] = field(default_factory=list)


def indented(lines: Sequence[str]) -> list[str]:
    return [indent(line, "    ") for part in lines for line in part.split("\n")]


# -- numbers of a step


def a_number(rng: Random) -> str:
    """A tensor with one element, in the words of a step."""
    return rng.choice(
        [
            "loss",
            "loss",
            "loss.detach()",
            "loss.data",
            "loss * x.size(0)",
            "loss * len(x)",
            "(pred == y).sum()",
            "pred.eq(y).sum()",
            "torch.sum(pred == y)",
            "(pred == y).float().mean()",
            "(pred == y).float().sum()",
            "out.abs().mean()",
            "out.max()",
            "F.cross_entropy(out, y, reduction='sum')",
            "loss.detach().sqrt()",
        ]
    )


def a_read(rng: Random, number: str) -> str:
    """The number of a tensor, as Python has it."""
    number = number if number.replace(".", "").replace("()", "").isidentifier() else f"({number})"
    return rng.choice(["{}.item()", "{}.item()", "float({})", "{}.cpu().item()", "{}.data.item()"]).format(number)


def a_summand(rng: Random) -> str:
    """What is added up: as a tensor or as a number."""
    number = a_number(rng)
    if rng.random() < 0.6:
        number = a_read(rng, number)
        if rng.random() < 0.3:
            number = f"{number} * {rng.choice(['x.size(0)', 'len(y)', '2', '0.5', 'x.shape[0]'])}"
    return number


def some_uses(rng: Random, name: str) -> list[str]:
    """What becomes of a number that was added up."""
    lines = {
        "mean": [f"print({name} / len(loader))"],
        "format": [f'print(f"{{{name}:.6f}} {{{name} / 3:8.3f}}")'],
        "old format": [f'print("%.5f of %d" % ({name}, len(loader)))'],
        "new format": [f'print("sum {{:.4f}}".format({name}))'],
        "plain": [f"print('sum', {name})"],
        "compare": [f"print({name} > 1.0)", f"if {name} < 50:", f"    print('small', {name} * 2)"],
        "root": [f"print(math.sqrt(abs({name})))"],
        "numpy": [f"print(np.sqrt(np.abs({name} / 7)))"],
        "round": [f"print(round(float({name}), 4), int({name}))"],
        "dict": [f"row = {{'{name.strip('@')}': {name} / 2}}", "print(row)"],
        "list": [f"@rows.append({name} / len(loader))"],
        "call": [f"show('{name.strip('@')}', {name})"],
        "best": [f"@best = max(@best, {name})"],
        "alias": [f"previous = {name}", f"{name} = {name} / 2", f"print(previous, {name})"],
        "in place": [f"{name} /= len(loader)", f"print({name})"],
        "json": [f"print(json.dumps({{'sum': float({name})}}))"],
        "tensor": [f"print(torch.ones(2) * {name})"],
        "truth": [f"print('some' if {name} else 'none')"],
        "percent": [f"rate = 100.0 * {name} / 24", 'print(f"{rate:.2f}%")'],
        "type": [f"print(isinstance({name}, float))"],
        "conditional": [f"final = {name} if {name} > 2 else 2.0", "print(final)"],
        "negated": [f"print(-{name}, {name} ** 2, 1 - {name} / 10)"],
        "sum": [f"print(sum([{name}, 1.0]))"],
    }
    return [line for kind in rng.sample(list(lines), rng.randint(1, 2)) for line in lines[kind]]


def _summed(rng: Random, name: str) -> Idiom:
    start = rng.choice(["0", "0.0", "0.", "0"])
    kept = a_summand(rng)
    step = rng.choice([f"@{name} += {kept}", f"@{name} = @{name} + {kept}", f"@{name} += {kept}"])
    idiom = Idiom(epoch=[f"@{name} = {start}"], step=[step])
    if rng.random() < 0.3:
        gate = rng.choice(["(i + 1) % 2 == 0", "i % 3 == 2", "i == len(loader) - 1"])
        idiom.step += [f"if {gate}:", *indented(some_uses(rng, f"@{name}"))]
        if rng.random() < 0.5:
            idiom.step.append(f"    @{name} = {start}")
    if rng.random() < 0.15:
        idiom.step += [f"print('so far', @{name} / (i + 1))"]
    if rng.random() < 0.8:
        idiom.epoch_end = some_uses(rng, f"@{name}")
    if rng.random() < 0.4:
        idiom.end = some_uses(rng, f"@{name}")
    if rng.random() < 0.3:
        idiom.step.insert(0, f"@{name}_count = @{name}_count + x.size(0)")
        idiom.epoch.append(f"@{name}_count = 0")
        idiom.epoch_end.append(f"print(@{name} / @{name}_count)")
    return idiom


def _summed_together(rng: Random, name: str) -> Idiom:
    """Two sums in one statement, or a sum and what it is divided by."""
    first, second = a_summand(rng), a_summand(rng)
    step = rng.choice(
        [
            [f"@{name}, @{name}_2 = @{name} + {first}, @{name}_2 + {second}"],
            [f"part = {first}", f"@{name} += part", f"@{name}_2 += part * 2"],
            [f"part = {first}", f"@{name} += part", f"@{name}_2 = max(@{name}_2, part)"],
            [f"part, other = {first}, {second}", f"@{name} += part", f"@{name}_2 += other"],
        ]
    )
    return Idiom(
        epoch=[f"@{name} = @{name}_2 = 0.0"] if rng.random() < 0.3 else [f"@{name} = 0.0", f"@{name}_2 = 0.0"],
        step=step,
        epoch_end=some_uses(rng, f"@{name}") + some_uses(rng, f"@{name}_2"),
    )


def _listed(rng: Random, name: str) -> Idiom:
    kept = a_summand(rng)
    step = rng.choice(
        [f"@{name}.append({kept})", f"@{name} += [{kept}]", f"@{name} = @{name} + [{kept}]", f"@{name}.append({kept})"]
    )
    is_tensor = ".item()" not in kept and not kept.startswith("float(")
    reads = [
        f"print(sum(@{name}) / len(@{name}))",
        f"print(len(@{name}), @{name}[-1])",
        f"print(max(@{name}), min(@{name}))",
        f"print([float(v) for v in @{name}])",
        f"for v in @{name}:\n    print(f'{{v:.4f}}')",
        f"print(sorted(float(v) for v in @{name})[0])",
        f"print(@{name}[0] + @{name}[-1])",
    ]
    if is_tensor:
        reads += [f"print(torch.stack([v.float().detach() for v in @{name}]).mean())", f"print(@{name}[0].item())"]
    else:
        reads += [f"print(np.mean(@{name}), np.std(@{name}[-3:]))", f"print(torch.tensor(@{name}).mean())"]
    return Idiom(
        epoch=[f"@{name} = []"],
        step=[step],
        epoch_end=[line for read in rng.sample(reads, rng.randint(1, 3)) for line in read.split("\n")],
    )


def _in_dict(rng: Random, name: str) -> Idiom:
    kept, other = a_summand(rng), a_summand(rng)
    start = rng.choice([f"@{name} = {{'a': 0.0, 'b': 0}}", f"@{name} = dict(a=0.0, b=0)"])
    return Idiom(
        epoch=[start],
        step=[
            f"@{name}['a'] += {kept}",
            f"@{name}['b'] = {other}" if rng.random() < 0.5 else f"@{name}['b'] += {other}",
        ],
        epoch_end=[
            rng.choice(
                [
                    f"print(@{name})",
                    f"print({{k: float(v) / 3 for k, v in @{name}.items()}})",
                    f"for k, v in @{name}.items():\n    print(k, v)",
                    f"print(@{name}['a'] / len(loader), @{name}['b'])",
                ]
            )
        ],
    )


def _dict_of_lists(rng: Random, name: str) -> Idiom:
    kept, other = a_summand(rng), a_summand(rng)
    return Idiom(
        start=[f"@{name} = {{'train': [], 'other': []}}"],
        step=[f"@{name}['train'].append({kept})", f"@{name}['other'].append({other})"],
        end=[rng.choice([f"print(@{name})", f"print(sum(@{name}['train']), @{name}['other'][-1])"])],
    )


def _extreme(rng: Random, name: str) -> Idiom:
    number = a_number(rng)
    read = a_read(rng, number) if rng.random() < 0.6 else number
    return Idiom(
        start=[f"@{name} = float('inf')"],
        step=rng.choice(
            [
                [f"if {read} < @{name}:", f"    @{name} = {read}"],
                [f"now = {read}", f"if now < @{name}:", f"    @{name} = now", f"    print('better', @{name})"],
                [f"@{name} = min(@{name}, {read})"],
            ]
        ),
        end=[f"print(@{name})"],
    )


def _moving(rng: Random, name: str) -> Idiom:
    kept = a_summand(rng)
    return Idiom(
        start=[f"@{name} = {rng.choice(['None', '0.0'])}"],
        step=[
            f"@{name} = {kept} if @{name} is None else 0.9 * @{name} + 0.1 * {kept}",
            *([f"print(@{name})"] if rng.random() < 0.3 else []),
        ],
        epoch_end=[rng.choice([f"print(@{name})", f"print(f'{{@{name}:.5f}}')"])],
    )


def _shown(rng: Random, name: str) -> Idiom:
    number = a_number(rng)
    read = a_read(rng, number) if rng.random() < 0.6 else number
    lines = [
        f"print(i, {read})",
        f'print(f"step {{i}}: {{{read}:.5f}}")' if '"' not in read else f"print({read})",
        f'print("step %d %.4f" % (i, {read}))',
        f'print("loss {{:.3f}}".format({read}))',
        f"show('{name}', {read}, {a_summand(rng)})",
    ]
    gate = rng.choice(["", "if i % 2 == 0:", "if (i + 1) % 3 == 0:", "if i == 1 or i == 3:"])
    line = rng.choice(lines)
    return Idiom(step=[gate, f"    {line}"] if gate else [line])


def _last(rng: Random, name: str) -> Idiom:
    kept = a_summand(rng)
    return Idiom(
        start=[f"@{name} = 0"],
        step=[f"@{name} = {kept}"],
        epoch_end=[f"print({rng.choice(['', 'float'])}(@{name}))"],
        end=[f"print(@{name} * 2)"],
    )


def _checked(rng: Random, name: str) -> Idiom:
    return Idiom(
        step=rng.choice(
            [
                ["if torch.isnan(loss):", "    print('nan')", "    break"],
                ["if not math.isfinite(loss.item()):", "    raise ValueError('loss is no number')"],
                ["if loss > 100:", "    print('large', loss.item())"],
                ["if (out > 50).any():", "    print('out of bounds')"],
                ["if loss.item() < 0.9:", "    print('good')"],
            ]
        )
    )


def _gradient_norm(rng: Random, name: str) -> Idiom:
    return Idiom(
        step=rng.choice(
            [
                [
                    f"{name} = 0.0",
                    "for p in @model.parameters():",
                    f"    {name} += p.grad.data.norm(2).item() ** 2",
                    f"{name} = {name} ** 0.5",
                    f"print({name})",
                ],
                [
                    f"{name} = 0",
                    "for p in @model.parameters():",
                    "    if p.grad is not None:",
                    f"        {name} += p.grad.abs().sum().item()",
                    f"if {name} > 1000:",
                    f"    print('large', {name})",
                ],
                [
                    f"{name} = torch.nn.utils.clip_grad_norm_(@model.parameters(), 1.0)",
                    f"@{name}s.append({name}.item())",
                ],
                ["print(max(p.grad.abs().max().item() for p in @model.parameters()))"],
            ]
        ),
        start=[f"@{name}s = []"],
        end=[f"print(@{name}s)"],
    )


def _made(rng: Random, name: str) -> Idiom:
    made = rng.choice(
        [
            "torch.zeros(x.size(0), 3).to(device)",
            "torch.ones(3).to(device)",
            "torch.ones_like(out).to(device)",
            "torch.full((3,), 0.5).to(device)",
            "torch.arange(3).float().to(device)",
            "torch.eye(3).to(device)",
            "torch.linspace(0, 1, 3).to(device)",
            "torch.tensor([0.5, 1.0, 2.0]).to(device)",
            "torch.FloatTensor([0.5, 1.0, 2.0]).to(device)",
            "torch.Tensor([1, 2, 3]).to(device)",
            "torch.zeros(3).double().to(device).float()",
            "torch.zeros(out.shape).to(out.device)",
            "torch.zeros(3, dtype=torch.float64).to(device)",
            "torch.randn(3).to(device)",
            "torch.zeros(3).fill_(2).to(device)",
        ]
    )
    return Idiom(
        step=[f"{name} = {made}", f"@{name}_sum = @{name}_sum + (out.detach() * {name}).sum()"],
        start=[f"@{name}_sum = 0"],
        end=[f"print(@{name}_sum, {name}.dtype if '{name}' in dir() else '')"],
    )


def _grown(rng: Random, name: str) -> Idiom:
    what = rng.choice(["out.detach()", "out", "y", "pred", "F.softmax(out, dim=1)", "x[:, :2]", "out.detach().cpu()"])
    begin = rng.choice(["torch.tensor([])", "torch.empty(0)", "None", "[]", "torch.zeros(0).to(device)"])
    if begin == "None":
        step = [f"@{name} = {what} if @{name} is None else torch.cat([@{name}, {what}])"]
    elif begin == "[]":
        step = [f"@{name}.append({what})"]
    else:
        step = [f"@{name} = torch.cat({rng.choice(['(', '['])}@{name}, {what}{'|'}, {rng.choice(['0', 'dim=0'])})"]
        step = [step[0].replace("|", ")" if "cat((" in step[0] else "]")]
    end = f"torch.cat(@{name})" if begin == "[]" else f"@{name}"
    return Idiom(
        epoch=[f"@{name} = {begin}"],
        step=step,
        epoch_end=[f"print({end}.shape, {end}.double().sum(), {end}.dtype)"],
    )


def _rows(rng: Random, name: str) -> Idiom:
    loop = rng.choice(
        [
            [
                f"{name} = torch.zeros(x.size(0), 3)",
                "for j in range(x.size(0)):",
                f"    {name}[j] = x[j, :3] * out[j].detach()",
            ],
            [
                f"{name} = []",
                "for row, goal in zip(out, y):",
                f"    {name}.append(row[goal].item())",
                f"{name} = torch.tensor({name})",
            ],
            [f"{name} = torch.stack([row.softmax(0) for row in out])"],
            [
                f"{name} = torch.zeros(3)",
                "for c in range(3):",
                f"    {name}[c] = (pred == c).sum().item()",
            ],
            [
                f"{name} = torch.zeros(3, 3)",
                "for t, p in zip(y.view(-1), pred.view(-1)):",
                f"    {name}[t.long(), p.long()] += 1",
            ],
            [
                f"{name} = 0",
                "for j in range(len(y)):",
                "    if pred[j] == y[j]:",
                f"        {name} += 1",
            ],
            [
                f"{name} = torch.zeros(len(x), len(x))",
                "for a in range(len(x)):",
                "    for b in range(len(x)):",
                f"        {name}[a, b] = torch.dist(x[a], x[b])",
            ],
            [f"{name} = torch.cat([(x[j] @ x[j]).view(1) for j in range(len(x))])"],
        ]
    )
    return Idiom(
        step=[*loop, f"@{name}_rows = @{name}_rows + torch.as_tensor({name}).float().sum().detach()"],
        start=[f"@{name}_rows = 0"],
        end=[f"print(@{name}_rows)"],
    )


def _write(rng: Random, what: str) -> str:
    """A statement that changes a tensor in place, under its name or another, here or in a function."""
    lines = [
        f"{what}.data.mul_(2)",
        f"{what}.data += 1",
        f"shrink({what})",
        f"shrink({what}.detach())",
        f"other = {what}.detach()\nother.mul_(3)",
        f"other = {what}.data\nother -= 0.5",
        f"torch.clamp({what}.data, max=0.5, out={what}.data)",
        f"with torch.no_grad():\n    {what}.clamp_(max=0.25)",
    ]
    return rng.choice(lines)


def _written(rng: Random, name: str) -> Idiom:
    """A tensor that is written to before, between or after reads of it."""
    what = rng.choice(["loss", "out", f"{name}_now"])
    number = what if what == "loss" else f"{what}.mean()" if rng.random() < 0.5 else f"{what}[0, 0]"
    read = a_read(rng, number)
    keep = rng.choice(
        [f"@{name}.append({read})", f"@{name}.append({number})", f"@{name} += [{read}]", f"print({read})"]
    )
    again = rng.choice([f"print({read})", f"@{name}.append({read})", f"show('{name}', {read})"])
    parts = [keep, _write(rng, what), again] if rng.random() < 0.7 else [keep, again, _write(rng, what)]
    made = [f"{name}_now = out.detach() * 2"] if what not in ("loss", "out") else []
    step = [line for part in [*made, *parts] for line in part.split("\n")]
    return Idiom(epoch=[f"@{name} = []"], step=step, epoch_end=[f"print([float(v) for v in @{name}])"])


def _written_rows(rng: Random, name: str) -> Idiom:
    """Rows that are collected, and written to as the loop goes on."""
    loop = rng.choice(
        [
            [
                f"{name} = out.detach().flatten()",
                f"for j in range(len({name})):",
                f"    @{name}s.append({name}[j].item())",
                *(indented([_write(rng, name)]) if rng.random() < 0.7 else []),
            ],
            [
                f"{name} = torch.zeros(0, 3)",
                "for row in out.detach():",
                f"    {name}_row = row[None] * 2",
                f"    {name} = torch.cat([{name}, {name}_row])",
                *(indented([_write(rng, f"{name}_row")]) if rng.random() < 0.7 else []),
                f"@{name}s.append({name}.sum().item())",
            ],
            [
                f"{name} = torch.zeros(len(out), 3)",
                "for j in range(len(out)):",
                f"    {name}[j] = out[j].detach() * 2",
                *(indented([_write(rng, rng.choice(["out", name]))]) if rng.random() < 0.7 else []),
                f"@{name}s.append({name}.sum().item())",
            ],
        ]
    )
    return Idiom(start=[f"@{name}s = []"], step=loop, end=[f"print(@{name}s)"])


def _validated(rng: Random, name: str) -> Idiom:
    """An evaluation in the program itself, at the end of an epoch."""
    kept = a_summand(rng)
    body = [
        f"@{name} = 0",
        f"@{name}_seen = []",
        *(["@model.eval()"] if rng.random() < 0.7 else []),
        f"for x, y in {rng.choice(['test_loader', 'loader'])}:",
        "    x, y = x.to(device), y.to(device)",
        "    out = @model(x)",
        "    pred = out.argmax(dim=1)",
        "    loss = F.cross_entropy(out, y)",
        f"    @{name} += {kept}",
        f"    @{name}_seen.append({rng.choice(['pred', 'out', 'out.cpu()', 'loss', 'pred.cpu().numpy()'])})",
        *(["@model.train()"] if rng.random() < 0.7 else []),
        *some_uses(rng, f"@{name}"),
        f"print(len(@{name}_seen), @{name}_seen[0])",
    ]
    return Idiom(epoch_end=body)


IDIOMS: list[Callable[[Random, str], Idiom]] = [
    _summed, _summed, _summed, _summed_together, _listed, _listed, _in_dict, _dict_of_lists, _extreme, _moving,
    _shown, _shown, _last, _checked, _gradient_norm, _made, _grown, _rows, _validated, _written,
    _written, _written_rows,
]  # fmt: skip
