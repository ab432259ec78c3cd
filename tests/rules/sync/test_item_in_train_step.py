"""SYNC01: single numbers that are read from the device in every step."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import evaluation, line_of, training
from tests.support import findings

CPU_ONLY = """
import torch
from torch import nn


"""


FOLLOWING = """
import torch
from torch import nn


class Penalty(nn.Module):
    def forward(self, out, y):
        out = out.float()
        return (out - y + torch.eye(3, device=out.device)).square().mean()


def train(model, loader, optimizer):
    total = 0.0
    penalty = Penalty()
    for x, y in loader:
        loss = penalty(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


IN_EVERY_STEP = {
    "a script that makes tensors where others are, and moves its batches": FOLLOWING.replace("(x)", "(x.cuda())"),
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
    "a count that is shown as it grows": evaluation(
        "hits += (out.argmax(1) == y).sum()\nprint(hits.item() / (step + 1))", "hits = 0"
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
    "a part of what torch returns, by its name": evaluation(
        "total += float(out.max(dim=1).values.sum()) + 1e-3 * float(out.topk(5).indices.eq(y).float().mean())",
        "total = 0",
    ),
    "behind a question of what a call returned beside other things": training(
        "norm, is_large = measure(out, logger=log)\nif is_large:\n    continue\ntotal += loss.item()", "total = 0.0"
    ),
    "a loss that may be several, of which the number is taken": evaluation(
        "loss = judge(out, y)\ntotal += loss.item()", "judge, total = Judge().to(device), 0.0"
    ).replace(
        "@torch.no_grad()",
        "class Judge(nn.Module):\n    def forward(self, out, y):\n        return {'fit': out.mean()}\n\n\n"
        "@torch.no_grad()",
    ),
    "a method of the project that is called write, but only logs": training(
        "record.write({'loss': loss.item(), 'rate': rate()})", "record = Record()"
    ).replace(
        "def train",
        "class Record:\n    def write(self, numbers):\n        numbers['time'] = time.time()\n"
        "        for name, number in numbers.items():\n            self.writer.add_scalar(name, number)\n\n\ndef train",
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
    "a method of the project that is called write, and goes by the number": training(
        "record.write(loss.item())", "record = Record()"
    ).replace(
        "def train",
        "class Record:\n    def write(self, number):\n        if number > 3:\n            raise ValueError\n\n\n"
        "def train",
    ),
    "a file": training("file.write(str(loss.item()))", "file = open('losses')"),
    "a part of a tuple of numbers": evaluation("total += float(sizes.values)", "sizes, total = Sizes(), 0"),
    "where a call with an interval says that it is time": training(
        "is_time = due(step, log_interval)\nif is_time:\n    print(loss.item())"
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
    "the next loss is raised to it": training("scale = loss.item()\n(loss**scale).backward()"),
    "a tensor is made from it": training("weights.append(torch.tensor(loss.item()))", "weights = []"),
    "an index": training("row = table[out.max().item()]\nprint(row)", "table = load()"),
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
    "a script whose GPU is commented out": training(
        "total += loss.item()",
        "total = 0.0",
        "return total",
        head='import torch\nfrom torch import nn\n\n# device = torch.device("cuda")\n\n\n',
    ).replace("        x, y = x.to(device), y.to(device)\n", ""),
    "a script that only makes tensors where others are": FOLLOWING,
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
    "the last answer of all": evaluation("best = out[0].argmax()\nprint(step, best.item())", "best = 0"),
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
    "sampling, where the number decides whether to go on": """
        import torch

        @torch.no_grad()
        def generate(model, ids):
            for position in range(100):
                logits = model(torch.tensor(ids).cuda())
                certainty = logits.max().item()
                ids.append(certainty)
                if certainty < 3:
                    break
            return ids
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


NOTED = """
import torch
from torch import nn


def epoch(model, spare, loader, optimizer, device, sums):
    model.to(device)
    for x, y in loader:
        model(x.to(device), y.to(device)).backward()
        optimizer.step()
        sums["penalty"].append({read}.item())
"""


@pytest.mark.parametrize(
    ("read", "count"),
    [("model.criterion.penalty", 1), ("model.penalty", 1), ("spare.criterion.penalty", 0), ("optimizer.rate", 0)],
)
def test_what_a_model_keeps_of_its_forward_pass_is_read_from_the_device(read: str, count: int) -> None:
    assert len(findings(NOTED.format(read=read), "SYNC01")) == count
