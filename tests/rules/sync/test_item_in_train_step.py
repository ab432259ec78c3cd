"""SYNC01: single numbers that are read from the device in every step."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import TORCH_ONLY, evaluation, line_of, result_of, training
from tests.support import findings, fixed
from torchlint.finding import Applicability

CPU_ONLY = """
import torch
from torch import nn


"""

IN_EVERY_STEP = {
    "by a function of Python's": evaluation("kept.append(-10 * math.log10(loss))", "kept = []"),
    "by a function that is imported by its name": evaluation(
        "total += sqrt(loss)", "total = 0", "return total"
    ).replace("import math", "from math import sqrt"),
    "a sum": training("total += loss.item()", "total = 0.0", "return total"),
    "a weighted sum": training("total += loss.item() * y.size(0)", "total = 0.0", "return total"),
    "a sum that is written out": training("total = total + loss.item()", "total = 0.0", "return total"),
    "a sum in an attribute of a record": training("stats.total += loss.item()", "stats = Stats()", "return stats"),
    "a sum in a dict": training("stats['loss'] += loss.item()", "stats = {'loss': 0.0}", "return stats"),
    "a sum in a tensor": training("sums[0] += loss.item()", "sums = torch.zeros(2).to(device)", "return sums"),
    "an evaluation of so many batches at log intervals": training(
        "if step % 100 == 0:\n    for _ in range(9):\n        kept.append(model(x).detach().sum().item())",
        "kept = []",
        "return kept",
    ),
    "a meter": training("losses.update(loss.item(), y.size(0))", "losses = AverageMeter()"),
    "a progress bar": training("bar.set_postfix(loss=loss.item())", "bar = Bar()"),
    "a progress bar by keywords": training("bar.set_postfix(**{'loss': loss.item()})", "bar = Bar()"),
    "a list": training("history.append(loss.item())", "history = []", "return history"),
    "a list that is extended by one": training("history += [loss.item()]", "history = []", "return history"),
    "a print": training("print(f'{step}: {loss.item():.3f}')"),
    "a print with a percent sign": training("print('%d: %.3f' % (step, loss.item()))"),
    "a print with format": training("print('{:.3f}'.format(loss.item()))"),
    "standard output": training("sys.stdout.write('%.3f' % loss.item())"),
    "a logging service": training("wandb.log({'loss': loss.item(), 'step': step})"),
    "a tensorboard writer": training("writer.add_scalar('loss', loss.item(), step)", "writer = make_writer()"),
    "a cell of an array": training("losses[step] = loss", "losses = np.zeros(100)", "return losses"),
    "a sum in a cell of an array": evaluation(
        "sums[0, 1] += (out.argmax(1) == y).float().mean()", "sums = np.zeros((2, 2))", "return sums"
    ),
    "the end of a step over several batches": training(
        "if (step + 1) % pieces == 0:\n    optimizer.step()\n    total += loss.item()", "pieces, total = 4, 0.0"
    ),
    "losses by their place": training(
        "losses = [loss, out.mean()]\nfor i in range(len(losses)):\n    sums[i] += losses[i].item()",
        "sums = [0.0, 0.0]",
    ),
    "parts that a list gets one after the other": training(
        "parts = []\nfor i in range(heads):\n    parts.append(criterion(out[i], y))\n    sums[i] += parts[-1].item()",
        "heads, sums = count(), [0.0]",
    ),
    "float of a tensor": training("total += float(loss)", "total = 0.0", "return total"),
    "float of a number": training("total += float(loss.item())", "total = 0.0", "return total"),
    "a number through numpy": training("history.append(loss.detach().cpu().numpy())", "history = []", "return history"),
    "what backward() starts from is one number": training(
        "criticism = judge(out)\ncriticism.backward()\ntotal += criticism.detach().cpu().numpy()", "total = 0.0"
    ),
    "a number through to('cpu')": training("total += loss.to('cpu').item()", "total = 0.0"),
    "a number through the host": training("total += loss.cpu().item()", "total = 0.0", "return total"),
    "a name that is read later": training("last = loss.item()", "last = None", "return last"),
    "a name that is printed": training("value = loss.item()\nprint(step, value)"),
    "named losses": training(
        "for name, value in losses(out, y).items():\n    sums[name] += value.item()", "sums = defaultdict(float)"
    ),
    "a moving average": training(
        "history.append(loss.item())\nbar.set_postfix(loss=np.mean(history[-100:]))", "history, bar = [], Bar()"
    ),
    "an accuracy": evaluation("history.append((out.argmax(1) == y).float().mean().item())", "history = []"),
    "a value of an unknown helper": evaluation(
        "top1, top5 = accuracy(out, y)\nmeter.update(top1.item())", "meter = AverageMeter()"
    ),
    "evaluation": evaluation("total += loss.item()", "total = 0.0", "return total"),
    "a condition on the phase": training("if model.training:\n    total += loss.item()", "total = 0.0"),
    "what is only logged at intervals": training(
        "total += loss.item()\nif step % 100 == 0:\n    print(total)\n    total = 0.0", "total = 0.0"
    ),
    "a list of which the last number is printed": training(
        "history.append(loss.item())\nprint(history[-1])", "history = []", "return history"
    ),
    "a list of which the first number stops the training": training(
        "history.append(loss.item())\nif history[0] > 100:\n    break", "history = []", "return history"
    ),
    "a loop that skips batches before it breaks": evaluation(
        "if len(x) < 8:\n    total += loss.item()\n    continue\nbreak", "total = 0.0", "return total"
    ),
    "a loss of what is on the device, of which a part is kept on the host": training(
        "value, kept = judge(out, y), judge(out.cpu(), y)\ntotal += value.item()", "total = 0.0"
    ),
    "the best so far, which is only reported": training("best = min(best, loss.item())", "best = 1e9", "return best"),
}

SILENT = {
    "a cell of a list": training("kept[0] = loss.detach()", "kept = [None]", "return kept"),
    "a cell of a tensor on the device": training("sums[0] += loss.detach()", "sums = torch.zeros(2).to(device)"),
    "a whole row of an array": training("rows[step] = out", "rows = np.zeros((9, 3))", "return rows"),
    "a log interval beside the end of a step": training(
        "if (step + 1) % 4 == 0:\n    optimizer.step()\nif (step + 1) % 100 == 0:\n    print(loss.item())"
    ),
    "the name of a picture": evaluation("error = loss.item()\nsave_image(out, 'picture_%.4f.png' % error)").replace(
        "import math", "import math\nfrom torchvision.utils import save_image"
    ),
    "by a function of Python's, on the host": evaluation(
        "kept.append(math.sqrt(torch.tensor(4.0)) + math.sqrt(step))", "kept = []"
    ),
    "behind a log interval": training("if step % 50 == 0:\n    print(loss.item())"),
    "after continue": training("if step % 50 != 0:\n    continue\nprint(loss.item())"),
    "under a flag for logging": training("if verbose:\n    print(loss.item())"),
    "once after the loop": training("total += loss.detach()", "total = 0.0", "print(total.item())"),
    "the tensor is summed": training("total += loss.detach().double()", "total = 0.0", "return float(total)"),
    "an early stop": training("if loss.item() > 100:\n    break"),
    "an early stop by name": training(
        "value = loss.item()\nif not math.isfinite(value):\n    sys.exit(1)\nprint(value)"
    ),
    "a check for NaN": training("if math.isnan(loss.item()):\n    continue"),
    "an assertion": training("assert loss.item() < 100"),
    "a while loop that goes on until it is small": """
        import torch

        def solve(model, optimizer, x):
            x = x.cuda()
            error = 1.0
            while error > 1e-3:
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                error = loss.item()
    """,
    "a scheduler needs it": training("scheduler.step(loss.item())", "scheduler = make_scheduler(optimizer)"),
    "a list of which the last number stops the training": training(
        "history.append(loss.item())\nif history[-1] > 100:\n    break", "history = []", "return history"
    ),
    "rows of the first few batches": evaluation(
        "shown += 1\nif shown < 5:\n    for i, name in enumerate(names):\n        print(name, out[i].item())",
        "shown = 0",
    ),
    "the first batch only": evaluation("total = loss.item()\nbreak", "total = 0.0", "return total"),
    "the first batch of each noise level": """
        import torch

        @torch.no_grad()
        def sweep(model, loader_for, criterion):
            errors = []
            for noise in range(5, 30, 5):
                for x, y in loader_for(noise):
                    error = criterion(model(x.cuda()), y.cuda()).item()
                    errors.append(error)
                    break
            return errors
    """,
    "a loss that the model computes on the host": training(
        "features = out.detach().to('cpu')\nvalue, share = model.score(features)\ntotal += value.item()", "total = 0.0"
    ),
    "a file gets it": training("log.write(str(loss.item()))", "log = open('log.txt', 'w')"),
    "the next loss is scaled by it": training("scale = loss.item()\n(loss * scale).backward()"),
    "a tensor is made from it": training("weights.append(torch.tensor(loss.item()))", "weights = []"),
    "an index": training("row = table[y.max().item()]\nprint(row)", "table = load()"),
    "a number of Python": training("total += float(len(x))", "total = 0.0", "return total"),
    "a batch of the loader": """
        import torch

        def count(loader, model):
            total = 0
            for x, lengths in torch.utils.data.DataLoader(loader):
                total += lengths.sum().item()
                model(x.cuda())
            return total
    """,
    "a script for the CPU": training(
        "total += loss.item()", "total = 0.0", "return total", head="import torch\nfrom torch import nn\n\n\n"
    ).replace("        x, y = x.to(device), y.to(device)\n", ""),
    "a test that makes its model and leaves it on the host": """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(5, 3)

            def forward(self, x):
                return self.layer(x)

        def train(model, loader, optimizer):
            for x, y in loader:
                model.cuda()(x.cuda()).sum().backward()
                optimizer.step()

        def test(path, loader):
            model = Net()
            model.load_state_dict(torch.load(path))
            total = 0.0
            for x, y in loader:
                total += model(x).mean().item()
            return total
    """,
    "a model that this file makes and leaves on the host": """
        import torch
        from torch import nn

        class Trainer:
            def __init__(self, model):
                self.model = model
                self.device = next(model.parameters()).device

            def run(self, loader, optimizer):
                for x, y in loader:
                    loss = nn.functional.mse_loss(self.model(x.to(self.device)), y.to(self.device))
                    loss.backward()
                    optimizer.step()
                    print(loss.item())

        def main(loader):
            model = nn.Linear(3, 2)
            Trainer(model).run(loader, torch.optim.SGD(model.parameters(), lr=0.1))
    """,
    "where its parameters are": """
        import torch
        from torch import nn

        def evaluate(model, loader):
            total = 0.0
            for x, y in loader:
                out = model(x.to(next(model.parameters()).device))
                total += nn.functional.mse_loss(out, y.to(next(model.parameters()).device)).item()
            return total

        def main(loader):
            print(evaluate(nn.Linear(3, 2), loader))
    """,
    "a device that is the host": training("total += loss.item()", "total = 0.0", "return total").replace(
        '"cuda" if torch.cuda.is_available() else "cpu"', '"cpu"'
    ),
    "the answer for each image": evaluation("print(step, out[0].argmax().item())"),
    "after a copy to the host": evaluation("out = out.cpu()\ntotal += out.mean().item()", "total = 0.0"),
    "once per epoch": """
        import torch

        def fit(model, loader, optimizer):
            for epoch in range(9):
                total = 0.0
                for x, y in loader:
                    loss = model(x.cuda()).sub(y.cuda()).square().mean()
                    loss.backward()
                    optimizer.step()
                    total = total + loss.detach()
                print(epoch, total.item())
    """,
    "an environment waits for it anyway": """
        import torch

        def play(agent, env, optimizer):
            observation = env.reset()
            for step in range(1000):
                action = agent(torch.tensor(observation).cuda())
                observation, reward, done, info = env.step(action.item())
                loss = agent.loss(reward)
                loss.backward()
                optimizer.step()
                print(loss.item())
    """,
    "a step that returns its loss": """
        import torch

        def train_step(model, x, y, optimizer):
            loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            return loss.item()
    """,
    "a closure of LBFGS": """
        import torch

        def fit(model, x, optimizer):
            def closure():
                optimizer.zero_grad()
                loss = model(x.cuda()).mean()
                loss.backward()
                print(loss.item())
                return loss

            for epoch in range(9):
                optimizer.step(closure)
    """,
    "sampling, where the next step needs the token": """
        import torch

        @torch.no_grad()
        def generate(model, ids):
            text = []
            for position in range(100):
                logits = model(torch.tensor(ids).cuda())
                token = logits[-1].argmax().item()
                ids.append(token)
                if token == 0:
                    break
            return text
    """,
    "an exception handler": training(
        "try:\n    model(x)\nexcept RuntimeError:\n    print(loss.item())",
    ),
    "the old spelling, which fails today": training("total += loss.data[0]", "total = 0.0", "return total"),
    "the gradient norm is not read but formatted": training("print('%.3f' % loss)"),
}


@pytest.mark.parametrize("code", IN_EVERY_STEP.values(), ids=IN_EVERY_STEP)
def test_a_number_that_is_read_in_every_step_is_found(code: str) -> None:
    assert len(findings(code, "SYNC01")) == 1


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_a_readback_that_is_needed_or_rare_or_none_is_silent(code: str) -> None:
    assert findings(code, "SYNC01") == []


def test_lightning_hooks_run_once_per_step() -> None:
    code = """
        import pytorch_lightning as L

        class Net(L.LightningModule):
            def training_step(self, batch, index):
                losses = self.compute(self.model(batch))
                self.log_dict({name: value.item() for name, value in losses.items()})
                return losses["loss"]
    """
    assert [finding.line for finding in findings(code, "SYNC01")] == [6]


@pytest.mark.parametrize(
    ("returned", "count"),
    [("loss.item()", 1), ("loss.detach()", 0), ("make_tensor(loss.item()).cuda()", 0)],
)
def test_the_output_of_an_ignite_engine_is_for_its_metrics(returned: str, count: int) -> None:
    code = f"""
        import torch
        from ignite.engine import Engine

        def build(model, optimizer, criterion):
            def update(engine, batch):
                x, y = (part.cuda() for part in batch)
                optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
                return {returned}

            return Engine(update)
    """
    assert len(findings(code, "SYNC01")) == count


def test_a_model_that_another_file_hands_in_may_be_on_a_gpu() -> None:
    code = """
        from torch import nn

        class PPO:
            def __init__(self, policy, optimizer):
                self.policy = policy
                self.optimizer = optimizer

            def update(self, rollouts):
                total = 0
                for batch in rollouts.minibatches():
                    value, log_probability = self.policy.evaluate(batch)
                    value_loss = 0.5 * (batch.returns - value).pow(2).mean()
                    (value_loss - log_probability.mean()).backward()
                    self.optimizer.step()
                    total += value_loss.item()
                return total
    """
    assert [finding.line for finding in findings(code, "SYNC01")] == [15]


def test_the_message_says_how_often_and_what_to_do() -> None:
    [step] = findings(IN_EVERY_STEP["a sum"], "SYNC01")
    [batch] = findings(IN_EVERY_STEP["evaluation"], "SYNC01")
    [printed] = findings(IN_EVERY_STEP["a print"], "SYNC01")
    assert step.line == line_of(IN_EVERY_STEP["a sum"], "total += loss.item()")
    assert "`loss.item()` makes the host wait for the device in every training step. Add up" in step.message
    assert "after every evaluation batch" in batch.message
    assert printed.message.endswith("Log it every so many steps.")


# -- the fix ---------------------------------------------------------------------------------------------------------

REWRITES = {
    "a sum": ("total += loss.item()", "total = 0.0", "return total / (len(loader) or 1)"),
    "a sum from an integer": ("total += loss.item()", "total = 0", "return total / (len(loader) or 1)"),
    "a sum weighted from the right": ("total += loss.item() * y.size(0)", "total = 0.0", "return total"),
    "a sum weighted from the left": ("total += len(y) * loss.item()", "total = 0.0", "return total"),
    "float of a tensor": ("total += float(loss)", "total = 0.0", "return total"),
    "float of an expression": ("total += float(loss / 3)", "total = 0.0", "return total"),
    "a formatted read": ("total += loss.item()", "total = 0.0", "return f'{total} {total / 7:.3f}', type(total)"),
    "a read as float": ("total += loss.item()", "total = 0.0", "return float(total), total"),
    "a division behind the loop": (
        "total += loss.item()",
        "total = 0",
        "total /= len(loader) + 1\nif total > 1:\n    total = -total\nreturn total",
    ),
    "a division by a sum": ("total += loss.item()", "total = 0.0", "total /= 1 + len(loader)\nreturn total"),
    "two sums": (
        "total += loss.item()\nsquares += (loss * loss).item()",
        "total, squares = 0.0, 0.0",
        "return total, squares",
    ),
    "a sum that is written out": ("total = total + loss.item() * len(y)", "total = 0.0", "return total"),
    "a share": ("total += loss.item() / len(loader)", "total = 0.0", "return total"),
    "a constant share": ("total += 3 * loss.item() / 7", "total = 0.0", "return total"),
    "a quotient under the same name": (
        "total += loss.item()",
        "total = 0",
        "total = total / (len(loader) + 1)\nif total > 1:\n    total = -total\nreturn total",
    ),
    "read several times": (
        "total += loss.item()",
        "total = 0.0",
        "if total > 1:\n    return total, total * 2\nreturn total / (len(loader) + 1), total",
    ),
    "read in another loop": (
        "total += loss.item()",
        "total = 0.0",
        "kept = []\nfor _ in range(2):\n    kept.append(total)\nreturn kept",
    ),
    "under a condition": ("if step > 0:\n    total += loss.item()", "total = 0.0", "return total"),
    "read at intervals": (
        "total += loss.item()\nif step % 2 == 0:\n    kept.append(total / (step + 1))",
        "total, kept = 0.0, []",
        "return total, kept",
    ),
    "reset at intervals": (
        "total += loss.item()\nif step % 2 == 1:\n    kept.append(total)\n    total = 0.0",
        "total, kept = 0.0, []",
        "return total, kept, type(total)",
    ),
    "reset at intervals, from an integer": (
        "total += loss.item()\nif step % 2 == 1:\n    kept.append(f'{total / 2:.9f}')\n    total = 0",
        "total, kept = 0, []",
        "return kept",
    ),
}


@pytest.mark.parametrize(("body", "before", "after"), REWRITES.values(), ids=REWRITES)
@pytest.mark.parametrize("batches", [0, 1, 5])
@pytest.mark.parametrize("loop", [training, evaluation], ids=["training", "evaluation"])
def test_the_rewritten_sum_is_the_same_number(loop, body: str, before: str, after: str, batches: int) -> None:  # type: ignore[no-untyped-def]
    code = loop(body, before, after, head=TORCH_ONLY)
    new = fixed(code, "SYNC01", unsafe=False)
    assert (".detach().double()" if loop is training else ".double()") in new
    assert loop is training or ".detach()" not in new
    assert ".item()" not in new
    function = "train" if loop is training else "evaluate"
    old_result, new_result = result_of(code, function, batches), result_of(new, function, batches)
    assert repr(old_result) == repr(new_result)
    assert _types(old_result) == _types(new_result)


def _types(value: object) -> object:
    return tuple(map(_types, value)) if isinstance(value, tuple) else type(value)


def test_only_the_term_and_the_reads_change() -> None:
    code = training(
        "total += loss.item()  # before the next batch",
        "total = 0.0  # of the epoch",
        'return f"{total / len(loader):.4f}"  # the mean',
        head=TORCH_ONLY,
    )
    assert fixed(code, "SYNC01", unsafe=False) == code.replace("loss.item()", "loss.detach().double()").replace(
        "{total /", "{float(total) /"
    )


def test_a_division_behind_the_loop_settles_the_number() -> None:
    code = training("total += loss.item()", "total = 0", "total /= len(loader)\nreturn total", head=TORCH_ONLY)
    assert fixed(code, "SYNC01", unsafe=False).endswith("    total = float(total) / len(loader)\n    return total\n")


MANY = "print(total)\nfor name in model:\n    print(name, total)\nreturn total"


def test_one_conversion_behind_the_loop_serves_many_reads() -> None:
    code = training("total += loss.item()", "total = 0.0", MANY, head=TORCH_ONLY)
    changed = code.replace("loss.item()", "loss.detach().double()")
    assert fixed(code, "SYNC01", unsafe=False) == changed.replace(
        "    print(total)", "    total = float(total)\n    print(total)", 1
    )


def test_one_conversion_serves_what_stands_behind_the_with_statement_around_the_loop() -> None:
    code = training("total += loss.item()", "total = 0.0", "print(total)\nreturn total", head=TORCH_ONLY)
    head, loop = code[: code.index("    for step")], code[code.index("    for step") : code.index("    print(total)")]
    under = head + "    with torch.enable_grad():\n    " + loop.replace("\n", "\n    ").rstrip()
    after = under.replace("loss.item()", "loss.detach().double()") + "\n        total = float(total)\n"
    tail = "    print(total)\n    return total\n"
    assert fixed(f"{under}\n{tail}", "SYNC01", unsafe=False) == after + tail


@pytest.mark.parametrize(
    ("beside", "is_fixed"),
    [
        ("mean += out.mean().item()", True),
        ("hits += (out.argmax(1) == y).sum().item()", True),
        ("rows.append(out.cpu().numpy())", False),
        ("if loss > 3:\n    break", False),
        ("if step % 9 == 0:\n    rows.append(out.cpu().numpy())", True),
    ],
)
def test_no_fix_where_the_step_waits_anyway_for_what_cannot_stay_on_the_device(beside: str, is_fixed: bool) -> None:
    code = training(f"total += loss.item()\n{beside}", "total, mean, hits, rows = 0.0, 0.0, 0, []", "return total")
    assert ("loss.detach().double()" in fixed(code, "SYNC01", "SYNC06")) is is_fixed


def test_reads_that_a_way_around_the_loop_leads_to_are_converted_one_by_one() -> None:
    code = training("total += loss.item()", "total = 0.0", "print(total)\nreturn total", head=TORCH_ONLY)
    head, loop, tail = code[: code.index("    for step")], code[code.index("    for step") :], "print(total)"
    nested = head + "    if model.training:\n    " + loop.replace("\n", "\n    ")
    nested = nested.replace(f"        {tail}", f"    {tail}").replace("        return", "    return").rstrip() + "\n"
    new = fixed(nested, "SYNC01", unsafe=False)
    assert "print(float(total))" in new
    assert "return float(total)" in new


def test_two_loops_that_share_a_name_are_both_rewritten() -> None:
    code = evaluation("total += loss.item()", "total = 0.0", "first = total\ntotal = 0.0", head=TORCH_ONLY)
    loop = code[code.index("    for step") : code.index("    first")]
    code += loop + "    return first, total\n"
    new = fixed(code, "SYNC01", unsafe=False)
    assert new.count(".double()") == 2
    assert repr(result_of(code, "evaluate", 3)) == repr(result_of(new, "evaluate", 3))


UNFIXED = {
    "a root of each term": training("total += math.sqrt(loss)", "total = 0.0", "return total"),
    "read in the loop": training("total += loss.item()\nprint(total)", "total = 0.0", "return total"),
    "reset to an integer in the loop": training(
        "total += loss.item()\nif step % 9 == 0:\n    print(total)\n    total = 0", "total = 0.0", "return total"
    ),
    "an integer that may be seen after an empty loop": training("total += loss.item()", "total = 0", "return total"),
    "an attribute": training("stats.total += loss.item()", "stats = Stats()", "return stats"),
    "a global": training("global total\ntotal += loss.item()"),
    "a closure reads it": training(
        "total += loss.item()", "total = 0.0\ndef show():\n    print(total)", "show()\nreturn total"
    ),
    "a parameter": training("total += loss.item()", "", "return total").replace("optimizer)", "optimizer, total)"),
    "it starts from a tensor": training("total += loss.item()", "total = torch.zeros(())", "return total"),
    "divided by what may be zero": training("total += loss.item() / step", "total = 0.0", "return total"),
    "divided into": training("total += 1 / loss.item()", "total = 0.0", "return total"),
    "subtracted": training("total = total - loss.item()", "total = 0.0", "return total"),
    "added the other way round": training("total = loss.item() + total", "total = 0.0", "return total"),
    "multiplied by a tensor": training("total += loss.item() * x.sum()", "total = 0.0", "return total"),
    "a self-documenting f-string": training("total += loss.item()", "total = 0.0", "print(f'{total=}')"),
    "an exception is caught": training(
        "try:\n    total += loss.item()\nexcept RuntimeError:\n    pass", "total = 0.0", "return total"
    ),
    "locals are read": training("total += loss.item()", "total = 0.0", "return locals()"),
    "a deleted name": training("total += loss.item()", "total = 0.0", "print(total)\ndel total"),
    "subtracted behind the loop": training("total += loss.item()", "total = 0.0", "total -= 1\nreturn total"),
    "float means something else": training("total += loss.item()", "float = str\ntotal = 0.0", "return total"),
    "a comment on what is gone": training(
        "# .item() makes a Python number of it\ntotal += loss.item()", "total = 0.0", "return total"
    ),
    "a comment inside": training("total += loss.item(  # wait\n)", "total = 0.0", "return total"),
    "an asynchronous copy waits for it": training(
        "kept = x.to('cpu', non_blocking=True)\ntotal += loss.item()\nuse(kept)", "total = 0.0", "return total"
    ),
    "a device without double precision": training("total += loss.item()", "total = 0.0", "return total").replace(
        '"cpu")', '"mps")'
    ),
    "a value of unknown type": training("total += measure(model, x).item()", "total = 0.0", "return total"),
    "a list": training("history.append(loss.item())", "history = []", "return history"),
}


@pytest.mark.parametrize("code", UNFIXED.values(), ids=UNFIXED)
def test_no_fix_where_a_read_could_tell(code: str) -> None:
    for finding in findings(code, "SYNC01"):
        assert finding.fix is None
    assert fixed(code, "SYNC01") == code


DOUBTFUL = {
    "the loop reads a clock": training(
        "total += loss.item()\nprint(time.time() - start)", "total, start = 0.0, time.time()", "return total"
    ),
    "the device is any accelerator": training("total += loss.item()", "total = 0.0", "return total").replace(
        'torch.device("cuda" if torch.cuda.is_available() else "cpu")', "torch.accelerator.current_accelerator()"
    ),
    "the device comes from elsewhere": training(
        "total += loss.item()", "total = 0.0", "return total", head="import torch\nfrom torch import nn\n\n\n"
    ).replace("optimizer)", "optimizer, device)"),
}


@pytest.mark.parametrize("code", DOUBTFUL.values(), ids=DOUBTFUL)
def test_the_fix_is_unsafe_where_more_than_the_sum_may_depend_on_it(code: str) -> None:
    [finding] = findings(code, "SYNC01")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
    assert finding.fix.why
    assert fixed(code, "SYNC01", unsafe=False) == code


REASONS = {
    "line": training("total += loss.item()\nprint(total)", "total = 0.0", "return total"),
    "not simply added": training("stats.total += loss.item()", "stats = Stats()", "return stats"),
    "other code sees `total`": training("total += loss.item()", "", "return total").replace(
        "optimizer)", "optimizer, total)"
    ),
    "no number can stand for `total`": training("total += loss.item()", "total = 0.0", "print(f'{total=}')"),
}


@pytest.mark.parametrize(("reason", "code"), REASONS.items(), ids=REASONS)
def test_the_finding_says_why_a_sum_gets_no_fix(reason: str, code: str) -> None:
    [finding] = findings(code, "SYNC01")
    reads = f"the loop reads `total` on line {line_of(code, 'print(total)')}" if reason == "line" else reason
    assert finding.fix is None
    assert reads in finding.no_fix


def test_a_sum_that_gets_a_fix_needs_no_reason() -> None:
    [finding] = findings(training("total += loss.item()", "total = 0.0", "return total"), "SYNC01")
    assert finding.message.endswith("read the sum once at the end.")
    assert finding.no_fix == ""
