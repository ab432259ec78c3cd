"""Bodies of loops that the vectoriser leaves as they are, by what stands in the way."""

from __future__ import annotations

KEPT = {
    "an alias of a sum": """\
out = torch.zeros(p, dtype=x.dtype)
later = out.expand(n, p)
for row in later:
    out += row + 1
""",
    "a list with two names": """\
rows = others = []
for i in range(n):
    rows.append(x[i] * 2)
out = torch.stack(rows) * len(others)
""",
    "a list that is made beside another": """\
rows, others = [], [1]
for i in range(n):
    rows.append(x[i] * 2)
out = torch.stack(rows) * len(others)
""",
    "places where something holds": """\
out = torch.cat([torch.where(x[i] > 0)[0] for i in range(n)])
""",
    "recurrent": """\
h = torch.zeros(p)
rows = []
for i in range(n):
    h = torch.tanh(x[i] + h)
    rows.append(h)
out = torch.stack(rows)
""",
    "prefix sum": """\
out = torch.zeros(n, p)
for i in range(1, n):
    out[i] = out[i - 1] + x[i]
""",
    "alias of the target": """\
out = torch.zeros(n + 1, p)
later = out[1:]
for i in range(n):
    later[i] = out[i] + x[i]
""",
    "alias of an operand": """\
out = x.view(n, p)
back = x.flip(0)
back = x
for i in range(n):
    out[i] = back[i] + y[i]
""",
    "overwritten": """\
out = torch.zeros(p)
for i in range(n):
    out[0] = x[i].sum()
""",
    "noise": "out = torch.stack([x[i] + torch.randn(3) for i in range(n)])",
    "dropout": "out = torch.stack([F.dropout(x[i]) for i in range(n)])",
    "branch on values": """\
rows = []
for i in range(n):
    if x[i].sum() > 0:
        rows.append(x[i])
out = torch.stack(rows)
""",
    "filter": "out = torch.stack([a * 2 for a in x if a.sum() > 0])",
    "break": """\
rows = []
for i in range(n):
    rows.append(x[i])
    if i == 2:
        break
out = torch.stack(rows)
""",
    "own function": """\
g = lambda a: a * 2
out = torch.stack([g(x[i]) for i in range(n)])
""",
    "module": """\
net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout())
out = torch.stack([net(x[i]) for i in range(n)])
""",
    "in place on an operand": "out = torch.stack([x[i].mul_(2) for i in range(n)])",
    "backward": """\
out = torch.zeros(n)
for i in range(n):
    out[i] = x[i].sum()
    out[i].backward()
""",
    "print": """\
out = torch.zeros(n)
for i in range(n):
    out[i] = x[i].sum()
    print(i)
""",
    "chunks": "out = torch.cat([x[i : i + 2] * 2 for i in range(0, n, 2)])",
    "list read while it grows": """\
rows = [x[0]]
for i in range(n):
    rows.append(rows[-1] * x[i])
out = torch.stack(rows)
""",
    "list used as a list": """\
rows = []
for i in range(n):
    rows.append(x[i] * 2)
out = rows.pop()
""",
    "a few rows": "out = torch.stack([x[i] * 2 for i in range(3)])",
    "wraps around": """\
out = torch.zeros(n, p)
for i in range(n):
    out[i] = x[i - 1]
""",
    "row read after the loop": """\
out = torch.zeros(n)
for i in range(n):
    t = x[i] * 2
    out[i] = t.sum()
out = out + t.sum()
""",
    "list of tensors": """\
xs = [x, y]
out = torch.stack([a * 2 for a in xs])
""",
}
