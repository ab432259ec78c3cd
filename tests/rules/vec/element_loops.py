"""Loops over the rows of a tensor, and the whole-tensor expressions that the fix makes of them; behind HEAD."""

from __future__ import annotations

HEAD = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\nfrom tqdm import tqdm\n\n\n"


REWRITES = {
    "an index fill": (
        """\
def f(x: torch.Tensor):
    n, m = x.shape
    y = torch.zeros(n, m)
    for i in range(n):
        for j in range(m):
            y[i, j] = 2 * x[i, j] + 1
    return y
""",
        """\
def f(x: torch.Tensor):
    n, m = x.shape
    y = torch.zeros(n, m)
    y[:] = 2 * x + 1
    return y
""",
    ),
    "a list that is stacked": (
        """\
def f(x: torch.Tensor):
    _, features = x.shape
    rows = []
    for i in range(len(x)):
        rows.append(torch.exp(x[i]).sum())
    z = torch.stack(rows)
    return z
""",
        """\
def f(x: torch.Tensor):
    _, features = x.shape
    z = torch.exp(x).sum(-1)
    return z
""",
    ),
    "a list whose rows may have any rank": (
        """\
def f(x: torch.Tensor):
    rows = []
    for i in range(len(x)):
        rows.append(x[i].mean())
    return torch.stack(rows)
""",
        """\
def f(x: torch.Tensor):
    return x.unsqueeze(-1).flatten(1).mean(-1)
""",
    ),
    "a list that is used later": (
        """\
def f(x: torch.Tensor):
    rows = []
    for i in range(len(x)):
        rows.append(x[i].relu())
    x = x + 1
    return torch.stack(rows) * x
""",
        """\
def f(x: torch.Tensor):
    rows = x.relu()
    x = x + 1
    return rows * x
""",
    ),
    "an iterated tensor": (
        """\
x = torch.randn(32, 8)
out = torch.stack([v / v.norm() for v in x])
""",
        """\
x = torch.randn(32, 8)
out = x / x.norm(dim=-1)[:, None]
""",
    ),
    "enumerate": (
        """\
def f(x: torch.Tensor):
    out = torch.empty_like(x)
    for i, row in enumerate(x):
        out[i] = torch.relu(row)
    return out
""",
        """\
def f(x: torch.Tensor):
    out = torch.empty_like(x)
    out[:] = torch.relu(x)
    return out
""",
    ),
    "a progress bar": (
        """\
def f(x: torch.Tensor):
    out = torch.empty_like(x)
    for i, row in enumerate(tqdm(x)):
        out[i] = torch.relu(row)
    return out
""",
        """\
def f(x: torch.Tensor):
    out = torch.empty_like(x)
    out[:] = torch.relu(x)
    return out
""",
    ),
    "zip of tensors that may differ in length": (
        """\
def f(a: torch.Tensor, b: torch.Tensor):
    _, _ = a.shape
    _, _ = b.shape
    return torch.stack([torch.mean(torch.abs(p - q)) for p, q in zip(a, b)])
""",
        """\
def f(a: torch.Tensor, b: torch.Tensor):
    _, _ = a.shape
    _, _ = b.shape
    return torch.abs(a[: len(b)] - b[: len(a)]).mean(-1)
""",
    ),
    "a sum over rows": (
        """\
def nmse(estimate: torch.Tensor, channel: torch.Tensor):
    batch, _ = channel.shape
    estimate = estimate.view(batch, 64)
    total = 0
    for i in range(batch):
        total += torch.norm(estimate[i] - channel[i]) ** 2 / torch.norm(channel[i]) ** 2
    return total / batch
""",
        """\
def nmse(estimate: torch.Tensor, channel: torch.Tensor):
    batch, _ = channel.shape
    estimate = estimate.view(batch, 64)
    total = 0
    total += ((estimate[:batch] - channel).norm(dim=-1) ** 2 / channel.norm(dim=-1) ** 2).sum(0)
    return total / batch
""",
    ),
    "a sum in each row": (
        """\
x = torch.randn(32, 8)
w = torch.randn(8)
out = torch.zeros(32)
for i in range(32):
    total = 0.0
    for j in range(8):
        total += x[i, j] * w[j]
    out[i] = total
""",
        """\
x = torch.randn(32, 8)
w = torch.randn(8)
out = torch.zeros(32)
total = (x * w).sum(1)
out[:] = total
""",
    ),
    "differences of neighbours": (
        """\
def f(x: torch.Tensor):
    d = torch.zeros(len(x) - 1)
    for i in range(len(x) - 1):
        d[i] = x[i + 1] - x[i]
    return d
""",
        """\
def f(x: torch.Tensor):
    d = torch.zeros(len(x) - 1)
    d[:] = (x[1:] - x[:-1]).flatten(0)
    return d
""",
    ),
    "rows and numbers that may differ in dtype, which are only shown under vmap": (
        """\
def f(x: torch.Tensor, s: torch.Tensor):
    n, m = x.shape
    (n,) = s.shape
    return torch.stack([x[i] * s[i] for i in range(n)])
""",
        None,
    ),
    "a count of unknown sign": (
        """\
def f(x: torch.Tensor, n: int):
    return torch.stack([x[i].exp() for i in range(n)])
""",
        """\
def f(x: torch.Tensor, n: int):
    return x[:n].exp()
""",
    ),
    "an array that may hold anything": (
        """\
def f(x: torch.Tensor, w):
    return torch.stack([x[i] * w for i in range(len(x))])
""",
        None,
    ),
    "elements that change where something holds": (
        """\
def f(x: torch.Tensor):
    (n,) = x.shape
    y = x.clone()
    for i in range(n):
        if x[i] < 0:
            y[i] = 0.1 * x[i]
        else:
            y[i] = 0
    return y
""",
        """\
def f(x: torch.Tensor):
    (n,) = x.shape
    y = x.clone()
    chosen = x < 0
    y[chosen] = (0.1 * x[chosen]).to(y.dtype)
    y[~chosen] = 0
    return y
""",
    ),
    "one-hot": (
        """\
def f(label: torch.Tensor, classes: int):
    (n,) = label.shape
    label = label.long()
    out = torch.zeros(n, classes)
    for i in range(n):
        out[i, label[i]] = 1
    return out
""",
        """\
def f(label: torch.Tensor, classes: int):
    (n,) = label.shape
    label = label.long()
    out = torch.zeros(n, classes)
    out[torch.arange(n), label] = 1
    return out
""",
    ),
    "a histogram": (
        """\
def f(label: torch.Tensor, weight: torch.Tensor):
    (n,) = label.shape
    counts = torch.zeros(10)
    for c in label.long():
        counts[c] += 1
    return counts
""",
        """\
def f(label: torch.Tensor, weight: torch.Tensor):
    (n,) = label.shape
    counts = torch.zeros(10)
    counts.index_put_((label.long(),), counts.new_tensor(1), accumulate=True)
    return counts
""",
    ),
    "right answers that are counted": (
        """\
def f(found: torch.Tensor, wanted: torch.Tensor):
    (n,) = found.shape
    (_,) = wanted.shape
    hits = 0
    for i in range(n):
        if found[i] == wanted[i]:
            hits += 1
    return hits / n
""",
        """\
def f(found: torch.Tensor, wanted: torch.Tensor):
    (n,) = found.shape
    (_,) = wanted.shape
    hits = 0
    hits += int((found == wanted[:n]).sum())
    return hits / n
""",
    ),
    "a list that is stacked by the next statement": (
        """\
def f(x: torch.Tensor):
    rows = [row.exp() for row in x]
    return torch.stack(rows)
""",
        """\
def f(x: torch.Tensor):
    return x.exp()
""",
    ),
    "differences of neighbours in a vector": (
        """\
def f(x: torch.Tensor):
    (n,) = x.shape
    d = torch.zeros(n - 1)
    for i in range(n - 1):
        d[i] = x[i + 1] - x[i]
    return d
""",
        """\
def f(x: torch.Tensor):
    (n,) = x.shape
    d = torch.zeros(n - 1)
    d[:] = x[1:] - x[:-1]
    return d
""",
    ),
    "the last axis": (
        """\
x = torch.randn(4, 8, 32)
out = torch.zeros(4, 32)
for t in range(32):
    out[:, t] = x[:, :, t].mean(dim=1)
""",
        """\
x = torch.randn(4, 8, 32)
out = torch.zeros(4, 32)
out[:] = x.movedim(2, 0).mean(-1).movedim(0, 1)
""",
    ),
    "rows picked by index": (
        """\
data = torch.randn(100, 8)
order = torch.randperm(100)
batch = torch.zeros(32, 8)
for i in range(32):
    batch[i] = data[order[i]]
""",
        """\
data = torch.randn(100, 8)
order = torch.randperm(100)
batch = torch.zeros(32, 8)
batch[:] = data[order[:32]]
""",
    ),
    "a number read back": (
        """\
errors = torch.empty(32)
target, guess = torch.randn(32, 8), torch.randn(32, 8)
for i in range(32):
    errors[i] = F.mse_loss(guess[i], target[i]).item()
""",
        """\
errors = torch.empty(32)
target, guess = torch.randn(32, 8), torch.randn(32, 8)
errors[:] = (guess - target).square().mean(-1).detach()
""",
    ),
    "in a class": (
        """\
class Scale(nn.Module):
    def forward(self, x: torch.Tensor):
        out = torch.zeros_like(x)
        for i in range(x.size(0)):
            out[i] = x[i] * 2
        return out
""",
        """\
class Scale(nn.Module):
    def forward(self, x: torch.Tensor):
        out = torch.zeros_like(x)
        out[:] = x * 2
        return out
""",
    ),
    "a body on the line of the loop": (
        """\
x = torch.randn(32, 8)
out = torch.zeros(32, 8)
for i in range(32): out[i] = x[i].exp()  # all of them
print(out)
""",
        """\
x = torch.randn(32, 8)
out = torch.zeros(32, 8)
out[:] = x.exp()  # all of them
print(out)
""",
    ),
}
