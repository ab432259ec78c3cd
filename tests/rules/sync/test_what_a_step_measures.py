"""SYNC01, SYNC03, SYNC06: counts by `len`, parts of a loss, losses that a model keeps, batches read back by samples."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import HEAD, evaluation, line_of, training
from tests.support import findings

COUNTS = [
    "len(torch.where(out.argmax(1) == y)[0])",
    "len(torch.nonzero(out.argmax(1) == y))",
    "len((out > 0).nonzero())",
]
OTHER_LENGTHS = [
    "len(torch.where(y > 0, y, y))",  # as long as the batch
    "len(torch.where(y > 0, y, y)[0])",
    "len(out.argmax(1))",
    "len(np.where(targets[step] > 0)[0])",
    "len(torch.where(targets[step].cpu() > 0)[0])",
]


@pytest.mark.parametrize("count", COUNTS)
def test_the_length_of_a_list_of_places_is_a_count_that_the_host_waits_for(count: str) -> None:
    code = evaluation(f"right += {count}", "right = 0", "return right")
    [found] = findings(code, "SYNC06")
    assert (found.line, found.fix) == (line_of(code, count), None)


@pytest.mark.parametrize("length", OTHER_LENGTHS)
def test_other_lengths_are_known_without_the_device(length: str) -> None:
    assert findings(evaluation(f"right += {length}", "right = 0", "return right"), "SYNC01", "SYNC06") == []


def _parts(loss: str) -> str:
    lines = f"""
def train(model, loader, optimizer):
    errors = []
    for x, y in loader:
        optimizer.zero_grad()
        out, extra = model(x.to(device))
        error = ((out - y.to(device)) ** 2) * spread
        {loss}
        loss.backward()
        optimizer.step()
        errors.append(error.detach().cpu().numpy())
    return errors
"""
    return HEAD.lstrip() + lines.lstrip()


def test_what_is_added_up_to_the_loss_is_a_number_as_the_loss_is() -> None:
    code = _parts("loss = 0.5 * error + extra")
    assert [found.line for found in findings(code, "SYNC01")] == [line_of(code, "errors.append")]


@pytest.mark.parametrize("loss", ["loss = error.mean() + extra", "loss = error + extra\n        loss = loss.mean()"])
def test_what_is_averaged_first_may_be_a_whole_tensor(loss: str) -> None:
    assert findings(_parts(loss), "SYNC01") == []


MODEL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)

    def measure(self, out, y):
        self.loss = F.mse_loss(out, y)


"""


def test_a_loss_that_the_model_keeps_where_one_of_its_own_methods_computes_it_is_on_the_device() -> None:
    loop = """
def evaluate(loader):
    total = 0
    model = Net().cuda().eval()
    with torch.no_grad():
        for x, y in loader:
            out = nn.parallel.data_parallel(model, x.cuda())
            model.measure(out, y.cuda())
            total += model.loss.data.cpu().numpy() * len(y)
    return total
"""
    code = HEAD.lstrip() + MODEL.lstrip() + loop.lstrip()
    assert [found.line for found in findings(code, "SYNC01", "SYNC03")] == [line_of(code, "total += ")]
    silent = code.replace("model.loss.data", "other.loss.data")
    assert findings(silent, "SYNC01", "SYNC03") == []


def test_the_data_of_what_the_loss_becomes_is_on_the_device_as_the_loss_is() -> None:
    code = training("total += kept.data.cpu().numpy()", "total = 0", "return total")
    code = code.replace("loss = criterion(out, y)", "kept = model.loss").replace("loss.backward()", "kept.backward()")
    assert len(findings(code, "SYNC01", "SYNC03")) == 1


def test_a_batch_that_is_read_back_for_each_of_its_samples_is_on_the_host_already() -> None:
    body = """
    right = out.argmax(1) == y
    for i in range(right.size(0)):
        seen[y.cpu().numpy()[i]] += 1
    """
    code = evaluation(body, "seen = np.zeros(9)", "return seen")
    assert [found.line for found in findings(code, "SYNC03")] == [line_of(code, "seen[y")]
    changed = code.replace("    right =", "    y = out.argmax(1)\n        right =")
    assert not any("Use the batch that the host has" in found.message for found in findings(changed, "SYNC03"))


WEIGHTED = """
def weighted_loss(out, y, mean):
    loss = y.mean() * (out * y).sum()
    return loss / y.size(0) if mean else loss


"""


@pytest.mark.parametrize(("added", "found"), [("losses[i].item()", 1), ("shares[i].item()", 0)])
def test_a_list_that_is_filled_place_by_place_holds_what_the_step_computes(added: str, found: int) -> None:
    body = f"""
    losses = [0] * len(parts)
    for i in range(0, len(parts)):
        losses[i] = weighted_loss(parts[i], y, mean=False)
        sums[i] += {added}
    """
    code = training(body, "sums, shares = [0.0] * 5, list(model.shares)", "return sums", HEAD + WEIGHTED.lstrip())
    code = code.replace("out = model(x)", "out, *parts = model(x)")
    assert len(findings(code, "SYNC01")) == found


INNER = """
import torch

def evaluate(net, loader, bounds: list, scores):
    net.cuda()
    hits = [0] * len(bounds)
    with torch.no_grad():
        for x, y in loader:
            near, far = net(x.cuda()), net(y.cuda())
            losses = [(near - bound).mean() for bound in bounds]
            for i in range(len(bounds)):
                {body}
    return hits
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("hits[i] += (near - far > bounds[i]).cpu().float().sum()", 1),
        ("part = (near - far - bounds[i]).cpu()\n                hits[i] += (part > 0).sum()", 1),
        ("hits[i] += (near[i] - far > bounds[i]).cpu().float().sum()", 0),  # each row is the matter of another rule
        ("hits[i] += (near - scores[i]).cpu().float().sum()", 0),
        ("hits[i] = choose((near - far > bounds[i]).cpu())", 0),
    ],
)
def test_what_a_loop_over_something_else_computes_anew_is_copied_in_each_iteration(body: str, count: int) -> None:
    assert len(findings(INNER.format(body=body), "SYNC03")) == count


@pytest.mark.parametrize(
    ("over", "count"), [("enumerate(losses)", 1), ("enumerate(near.mean(1))", 0), ("enumerate(scores)", 0)]
)
def test_each_of_a_list_of_losses_is_read(over: str, count: int) -> None:
    code = INNER.format(body="pass").replace("for i in range(len(bounds)):", f"for i, loss in {over}:")
    assert len(findings(code.replace("pass", "hits[i] += loss.item()"), "SYNC01")) == count


KEPT = """
import torch
from torch import nn

device = "cuda"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.last_loss = None

    def forward(self, x, y):
        out = self.layer(x)
        self.last_loss = nn.functional.mse_loss(out, y)
        return out


net = Net().to(device)
other = Net()


@torch.no_grad()
def evaluate(loader):
    total = 0.0
    for x, y in loader:
        net(x, y)
        loss = {read}
        total += loss.item()
    return total


bare = net.module if hasattr(net, "module") else net
"""


@pytest.mark.parametrize(("read", "count"), [("bare.last_loss", 1), ("net.last_loss", 1), ("other.last_loss", 0)])
def test_what_a_network_keeps_is_read_by_another_name_of_it(read: str, count: int) -> None:
    assert len(findings(KEPT.format(read=read), "SYNC01")) == count


SAMPLED = """
import torch
from torch import nn
from kernels import sample


class Down(nn.Module):
    def __init__(self, width, stride):
        super().__init__()
        self.linear = nn.Linear(3, width)
        self.stride = stride

    def forward(self, parts):
        points, rows, ends = parts
        sizes, count = [ends[0].item() // self.stride], ends[0].item() // self.stride
        for i in range(1, ends.shape[0]):
            count += (ends[i].item() - ends[i - 1].item()) // self.stride
            sizes.append(count)
        sizes = torch.cuda.IntTensor(sizes)
        points = sample(points, ends, sizes)
        ends = sizes
        return [points, self.linear(rows), ends]
"""


def test_numbers_that_the_step_makes_a_tensor_of_are_no_measure() -> None:
    assert findings(SAMPLED, "SYNC01") == []


@pytest.mark.parametrize(
    ("used", "told"),
    [
        ("parts = out.split(sizes)\n(parts[0].mean() + loss).backward()", 0),
        ("longest = max(sizes)\nloss = loss + out[:longest].mean()", 0),
        ("for size in sizes:\n    loss = loss + out[:size].mean()", 0),
        ("print(sizes)", 1),
        ("means.append(sum(sizes) / len(sizes))", 1),
    ],
)
def test_numbers_of_a_list_that_the_step_begins_anew_are_followed(used: str, told: int) -> None:
    code = training("sizes = []\nsizes.append((out > 0).sum().item())\n" + used, "means = []", "print(means)")
    assert len(findings(code, "SYNC01")) == told


@pytest.mark.parametrize(
    ("read", "count"),
    [
        ("metric(out[:, t], y).item()", 1),
        ("metric(out[:, t], threshold=t).item()", 0),  # may be a part of it
        ("out[t].to(device, non_blocking).item()", 0),  # is one
        ("metric(sizes[t], t).item()", 0),
    ],
)
def test_what_is_made_of_several_tensors_and_asked_for_its_number_is_a_measure(read: str, count: int) -> None:
    """Also where the function is out of sight, in a loop over parts of the batch."""
    body = f"for t in range(9):\n    total += {read}"
    head = HEAD + "from elsewhere import metric, non_blocking, sizes\n\n"
    assert len(findings(evaluation(body, "total = 0.0", "return total", head), "SYNC01")) == count


TEMPERED = """
import torch
from base import Base

class Agent(Base):
    def __init__(self, device):
        self.device = device
        self.log_alpha = torch.zeros(1, device=device, requires_grad=True)

    def train(self, steps):
        alphas = []
        for step in range(steps):
            x = self.buffer.sample(32)
            alpha = torch.exp(self.log_alpha.detach())
            alphas.append(alpha.item())
            loss = ({used} * self.actor(x)).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return alphas
"""


@pytest.mark.parametrize(("used", "count"), [("alpha", 1), ("0.5", 0)])
def test_what_a_loss_is_computed_of_need_not_have_a_graph(used: str, count: int) -> None:
    assert len(findings(TEMPERED.format(used=used), "SYNC01")) == count
