"""SYNC01: evaluations of networks that a function moves to the host, or makes there, beside a training on a GPU; and
networks that put themselves on it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.rules.sync.test_steps_of_other_files import lines_of
from tests.support import findings

PROGRAM = """
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)


def evaluate(net, batches):
    {made}
    net.eval()
    total = 0
    with torch.no_grad():
        for x, y in batches:
            total += F.cross_entropy(net({x}), y).item()
    {after}
    return total


def train(batches):
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(net(x.cuda()), y.cuda()).backward()
        optimizer.step()
    print(evaluate(net, batches))
"""


@pytest.mark.parametrize(
    ("made", "x", "after", "count"),
    [
        ("pass", "x", "pass", 1),
        ("net.cpu()", "x", "pass", 0),
        ("net.to('cpu')", "x", "pass", 0),
        ("net = net.to('cpu')", "x", "pass", 0),
        ("device = torch.device('cpu'); net.to(device)", "x.to(device)", "pass", 0),
        ("net = Net()", "x", "pass", 0),
        ("pass", "x", "net.cpu()", 1),
        ("net.cpu(); net.cuda()", "x.cuda()", "pass", 1),
        ("if len(batches) > 9: net.cpu()", "x", "pass", 1),
        ("other = Net().cpu()", "x", "pass", 1),
    ],
)
def test_an_evaluation_of_a_network_on_the_host(made: str, x: str, after: str, count: int) -> None:
    assert len(findings(PROGRAM.format(made=made, x=x, after=after), "SYNC01")) == count


BACK = """
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)

    def distance(self, x, y):
        return F.mse_loss(self.linear(x), given(y))


gpu = torch.device("cuda")
net = Net().to(gpu)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for x, y in batches:
    optimizer.zero_grad()
    F.mse_loss(net(x.to(gpu)), y.to(gpu)).backward()
    optimizer.step()
{moved}
total = 0
with torch.no_grad():
    for x, y in batches:
        total += {loss}.item()
"""


@pytest.mark.parametrize("loss", ["net(x).mean()", "F.mse_loss(net(x), y)", "net.distance(x, y)"])
@pytest.mark.parametrize(("moved", "count"), [("net = net.to('cpu')", 0), ("net = net.eval()", 1)])
def test_what_a_network_computes_that_is_back_on_the_host(moved: str, loss: str, count: int) -> None:
    assert len(findings(BACK.format(moved=moved, loss=loss), "SYNC01")) == count


TRUTH = """
import torch
from torch import nn
from torch.utils.data import DataLoader

def evaluate(model, device, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data in loader:
            images, labels = data[0].to(device), data[1].to(device)
            guess = model(images).argmax(1)
            correct += (guess == labels).sum().item()
    return correct

net = nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
print(evaluate(net, torch.device("{device}"), DataLoader(images, 8)))
"""


@pytest.mark.parametrize(("device", "count"), [("cpu", 0), ("cuda", 1)])
def test_a_guess_is_where_the_truth_is(device: str, count: int) -> None:
    assert len(findings(TRUTH.format(device=device), "SYNC06")) == count


PLACED = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self, device):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            {moved}

        def forward(self, x, y):
            return (self.linear(x) - y).square().mean()
"""
TRAINED = """
import torch
from net import Net

def train(batches):
    net, total = Net(0), 0.0
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for x, y in batches:
        optimizer.zero_grad()
        loss = net(x, y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


@pytest.mark.parametrize(
    ("moved", "lines"),
    [
        ("self.cuda()", [12]),
        ("if torch.cuda.is_available(): self.cuda()", [12]),
        ("self.to(device)", [12]),
        ("self.to('cpu')", []),
        ("self.noise = torch.zeros(2).cuda()", []),
        ("pass", []),
    ],
)
def test_a_network_of_another_file_that_puts_itself_on_the_device(tmp_path: Path, moved: str, lines: list[int]) -> None:
    (tmp_path / "net.py").write_text(dedent(PLACED.format(moved=moved)))
    assert lines_of(tmp_path, TRAINED, "") == lines


MEETING = """
import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Linear(4, 3)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
loader = DataLoader([(torch.ones(4), 1)] * 9)
for x, y in loader:
    {moved}
    guess = net(x)
    loss = criterion(guess, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    right = (guess.argmax(1) == y).squeeze()
    found += right.sum().item()
"""


@pytest.mark.parametrize(("moved", "lines"), [("pass", []), ("x, y = x.to(device), y.to(device)", [17, 19])])
def test_what_meets_a_batch_that_was_not_moved_is_on_the_host(moved: str, lines: list[int]) -> None:
    assert [finding.line for finding in findings(MEETING.format(moved=moved), "SYNC")] == lines


COLLATED = """
def gather(rows):
    xs, ys = [x for x, _ in rows], [y for _, y in rows]
    return torch.stack(xs){moved}, torch.tensor(ys){moved}

loader = DataLoader([(torch.ones(4), 1)] * 9, collate_fn=gather)
"""


@pytest.mark.parametrize(("moved", "count"), [("", 0), (".to(device)", 2)])
def test_what_meets_a_batch_may_be_put_on_a_device_where_it_is_collated(moved: str, count: int) -> None:
    loader = COLLATED.format(moved=moved)
    source = MEETING.format(moved="pass").replace("loader = DataLoader([(torch.ones(4), 1)] * 9)\n", loader)
    assert len(findings(source, "SYNC")) == count


HELD = """
from torch.utils.data import TensorDataset

loader = DataLoader(TensorDataset(torch.ones(9, 4){moved}, torch.ones(9).long(){moved}), batch_size=3)
"""


@pytest.mark.parametrize(("moved", "count"), [("", 0), (".to(device)", 2)])
def test_what_meets_a_batch_may_be_on_a_device_from_the_start(moved: str, count: int) -> None:
    source = MEETING.format(moved="pass")
    made = "loader = DataLoader([(torch.ones(4), 1)] * 9)\n"
    assert made in source
    assert len(findings(source.replace(made, HELD.format(moved=moved)), "SYNC")) == count


ARRAYS = """
import torch
from torch import nn
from data import features, labels

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Linear(4, 3).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x, y = torch.from_numpy(features).float(){moved}, torch.from_numpy(labels).long(){moved}
losses = []
for epoch in range(100):
    loss = criterion(net(x), y)
    losses.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("moved", "count"), [("", 0), (".to(device)", 1)])
def test_a_loss_of_what_numpy_gave_is_on_the_host(moved: str, count: int) -> None:
    assert len(findings(ARRAYS.format(moved=moved), "SYNC01")) == count


GRAPHS = """
import torch
import torch.nn.functional as F
from torch_geometric.loader import NeighborLoader
from data import graph

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = torch.nn.Linear(4, 3).to(device)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
loader = NeighborLoader(graph.to(device, "x", "y"), num_neighbors=[9], batch_size=99)
total = found = 0
for batch in loader:
    y = batch.y[:batch.batch_size].to(torch.long)
    guess = net(batch.x)[:batch.batch_size]
    loss = F.cross_entropy(guess, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += float(loss)
    found += int((guess.argmax(1) == y).sum())
"""


def test_a_part_of_a_graph_may_lie_on_the_device() -> None:
    assert [finding.line for finding in findings(GRAPHS, "SYNC")] == [18, 19]
