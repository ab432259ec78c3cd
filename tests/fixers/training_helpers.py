"""What a program leaves to helpers and to other networks: meters, metrics, teachers, critics, scalers, checkpoints."""

from __future__ import annotations

from random import Random

from tests.fixers.training_idioms import Idiom, a_number, a_read, a_summand, indented, some_uses

DEFINITIONS = """\
class AverageMeter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


class History:
    def __init__(self):
        self.values = []

    def add(self, value):
        self.values.append(value)
        return value

    def mean(self):
        return sum(self.values) / len(self.values)


def accuracy(out, y):
    return (out.argmax(dim=1) == y).float().mean()


def accuracy_number(out, y):
    return (out.argmax(dim=1) == y).sum().item() / y.size(0)


def measures(out, y):
    loss = F.cross_entropy(out, y)
    return loss, (out.argmax(dim=1) == y).sum(), {"loss": loss, "largest": out.max()}


def forward_loss(model, x, y):
    out = model(x)
    return out, F.cross_entropy(out, y)


def evaluate(model, loader):
    model.eval()
    total, correct, losses = 0, 0, []
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        out, loss = forward_loss(model, x, y)
        losses.append(loss)
        correct += (out.argmax(dim=1) == y).sum()
        total += len(y)
    model.train()
    return correct / total, sum(losses) / len(losses)


def predictions(model, loader):
    found = []
    for x, _ in loader:
        found.append(model(x.to(device)).cpu())
    return torch.cat(found)


def grow(pool, item):
    pool.append(item)
    return pool[-3:]

"""


def metered(rng: Random, name: str) -> Idiom:
    kind = rng.choice(["AverageMeter", "AverageMeter", "History"])
    if kind == "History":
        step = rng.choice(
            [[f"@{name}.add({a_summand(rng)})"], [f"part = @{name}.add({a_summand(rng)})", "print(float(part))"]]
        )
        end = rng.choice([f"print(float(@{name}.mean()))", f"print(@{name}.values[-1], len(@{name}.values))"])
    else:
        step = [f"@{name}.update({a_summand(rng)}{rng.choice(['', ', x.size(0)', ', n=len(y)'])})"]
        end = rng.choice(
            [
                f'print(f"{{@{name}.avg:.4f}} ({{@{name}.val:.4f}})")',
                f"print('%.5f' % @{name}.avg, @{name}.count)",
                f"@rows.append(@{name}.avg)",
                f"print(@{name}.sum)",
            ]
        )
    if rng.random() < 0.3:
        step += ["if i % 2 == 1:", *indented([end])]
    return Idiom(epoch=[f"@{name} = {kind}()"], step=step, epoch_end=[end])


def measured(rng: Random, name: str) -> Idiom:
    """What helpers return of a step."""
    call = rng.choice(
        [
            ["part = accuracy(out, y)"],
            ["part = accuracy(out, y).item()"],
            ["part = accuracy_number(out, y)"],
            ["_, part, _ = measures(out, y)"],
            ["part, hits, parts = measures(out, y)", f"@{name}_hits += hits"],
            ["part = measures(out, y)[2]['largest']"],
            ["loss_again, hits, parts = measures(out, y)", "part = parts['loss'] * 2"],
            ["other_out, part = forward_loss(@model, x, y)"],
        ]
    )
    use = rng.choice(
        [
            f"@{name} += part",
            f"@{name} = @{name} + part",
            f"@{name} += part * len(x)",
            f"@{name} += {a_read(rng, 'part')}",
        ]
    )
    if ".item()" in call[0] or "accuracy_number" in call[0]:
        use = f"@{name} += part"
    start = [f"@{name} = 0.0", f"@{name}_hits = 0"]
    return Idiom(epoch=start, step=[*call, use], epoch_end=[*some_uses(rng, f"@{name}"), f"print(float(@{name}_hits))"])


def evaluated(rng: Random, name: str) -> Idiom:
    use = rng.choice(
        [
            [f"@{name}, part = evaluate(@model, test_loader)", f"print(float(@{name}), float(part))"],
            [f"@{name} = evaluate(@model, test_loader)[0]", f"print('%.4f' % @{name})", f"@best = max(@best, @{name})"],
            [f"@{name} = predictions(@model, test_loader)", f"print(@{name}.shape, @{name}.double().sum().item())"],
            [f"@{name} = predictions(@model, test_loader)", f"print(@{name}.detach().numpy().mean())"],
        ]
    )
    return Idiom(epoch_end=use)


def taught(rng: Random, name: str) -> Idiom:
    """A second network says what the first should: it is not trained."""
    start = ["torch.manual_seed(5)", f"@{name}_net = Net().to(device)"]
    if rng.random() < 0.5:
        start.append(f"@{name}_net.eval()")
    if rng.random() < 0.3:
        start += [f"for p in @{name}_net.parameters():", "    p.requires_grad = False"]
    target = rng.choice(
        [
            [f"goal = @{name}_net(x)"],
            [f"goal = @{name}_net(x).detach()"],
            [f"goal = F.softmax(@{name}_net(x) / 2, dim=1)"],
            ["with torch.no_grad():", f"    goal = @{name}_net(x)"],
        ]
    )
    term = rng.choice(["F.mse_loss(out, goal.detach())", "F.mse_loss(out, goal)", "(out - goal).pow(2).mean() * 0.5"])
    end = rng.choice([f"print(float(@{name}_sum))", f"print(@{name}_sum)"])
    return Idiom(
        start=start,
        epoch=[f"@{name}_sum = 0"],
        step=[*target, f"distance = {term}", f"@{name}_sum += distance{rng.choice(['', '.item()', '.detach()'])}"],
        epoch_end=[end],
    )


def opposed(rng: Random, name: str) -> Idiom:
    """A critic with an optimizer of its own, which learns beside the network."""
    start = [
        "torch.manual_seed(6)",
        f"@{name}_net = Net().to(device)",
        f"@{name}_opt = torch.optim.SGD(@{name}_net.parameters(), lr=0.05)",
        f"@{name}_all = []",
    ]
    made = rng.choice(["(x * 0.5)", "(x + out.mean())", "(x + out.detach().mean())", "(x * out[:, :1])"])
    backward = rng.choice(["critic.backward()", "critic.backward(retain_graph=True)"])
    keep = rng.choice(
        [f"@{name}_all.append(critic)", f"@{name}_all.append(critic.item())", f"@{name}_all += [critic.detach()]"]
    )
    step = [
        f"@{name}_opt.zero_grad()" if rng.random() < 0.8 else f"@{name}_net.zero_grad()",
        f"critic = @{name}_net({made[1:-1]}).mean() - @{name}_net(x).mean()",
        backward,
        f"@{name}_opt.step()",
        keep,
    ]
    return Idiom(start=start, step=step, end=[f"print([float(v) for v in @{name}_all])"])


def gathered(rng: Random, name: str) -> Idiom:
    """Closures, defaults, and functions that hand on what they are given."""
    tensor = a_number(rng)
    step = rng.choice(
        [
            [f"@{name} = grow(@{name}, {tensor})"],
            [f"note = lambda value: @{name}.append(value)", f"note({tensor})"],
            [f"[@{name}.append(v) for v in ({tensor}, {a_number(rng)})]"],
            [f"@{name}.extend([{tensor}, {a_number(rng)}])"],
            [f"@{name}.insert(0, {tensor})", f"@{name} = @{name}[:4]"],
            [f"@{name} = (@{name} + [{tensor}])[-2:]"],
            [f"@{name}.append(({tensor}, i))", f"@{name}[-1] = @{name}[-1][0]"],
        ]
    )
    end = rng.choice([f"print([float(v) for v in @{name}])", f"print(float(sum(@{name})), len(@{name}))"])
    return Idiom(epoch=[f"@{name} = []"], step=step, epoch_end=[end])


def scaled(rng: Random, name: str) -> Idiom:
    """Mixed precision, which does nothing on a CPU, in old and new names."""
    region = rng.choice(
        [
            "torch.cuda.amp.autocast(enabled=False)",
            "torch.cuda.amp.autocast(False)",
            "torch.autocast('cpu', enabled=False)",
            "torch.cpu.amp.autocast(enabled=False)",
        ]
    )
    scaler = rng.choice(["torch.cuda.amp.GradScaler(enabled=False)", "torch.amp.GradScaler('cuda', enabled=False)"])
    return Idiom(
        start=[f"@{name} = {scaler}", f"@{name}_sum = 0.0"],
        step=[
            f"with {region}:",
            "    again = F.cross_entropy(@model(x), y)",
            f"@{name}_sum += @{name}.scale(again){rng.choice(['', '.item()', '.detach()'])}",
        ],
        epoch_end=[f"print(float(@{name}_sum))"],
    )


def stored(rng: Random, name: str) -> Idiom:
    """Checkpoints, in memory."""
    what = rng.choice(["@model.state_dict()", "{'model': @model.state_dict(), 'epoch': epoch}", "@model.first.weight"])
    load = rng.choice(["torch.load(buffer)", "torch.load(buffer, map_location='cpu')"])
    return Idiom(
        epoch_end=[
            "buffer = io.BytesIO()",
            f"torch.save({what}, buffer)",
            "buffer.seek(0)",
            f"{name} = {load}",
            f"print(len({name}))",
        ]
    )


def wrapped(rng: Random, name: str) -> Idiom:
    """Words from before torch 0.4."""
    step = rng.choice(
        [
            ["batch_x = Variable(x)", f"@{name} += @model(batch_x).mean().data"],
            ["batch_x, batch_y = Variable(x), Variable(y)", f"@{name} += (batch_x.sum() + batch_y.sum()).item()"],
            [f"@{name} += Variable(out.data).sum()"],
            [f"@{name} += F.softmax(out.data, dim=1).max()", "out.data.clamp_(-9, 9)"],
            [f"@{name} += torch.autograd.Variable(torch.ones(3)).to(device).sum()"],
        ]
    )
    return Idiom(epoch=[f"@{name} = 0"], step=step, epoch_end=[f"print(float(@{name}))"])


HELPED = [metered, metered, measured, measured, evaluated, taught, opposed, gathered, gathered, scaled, stored, wrapped]
