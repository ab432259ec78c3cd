"""Networks whose parameters `requires_grad_(False)` has switched off, as wholes: what they compute has no graph."""

from __future__ import annotations

import pytest

from tests.support import findings

KEPT = """
    import copy
    import torch
    from torch import nn

    class Sampler(nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net, self.head = copy.deepcopy(net), nn.Linear(3, 3)

        def forward(self, c):
            return self.head(self.net(c)).square()

    def measure(net, batches, quick):
        sampler = Sampler(net)
        {off}
        found = []
        for batch in batches:
            y = sampler(batch.cuda()).clone()
            found.append(y)
        return torch.cat(found).cpu().numpy()
"""
OFF = "sampler.eval().requires_grad_(False).cuda()"


@pytest.mark.parametrize(
    "off",
    [
        OFF,
        "sampler.requires_grad_(requires_grad=False)",
        OFF + "; sampler = torch.jit.trace(sampler, [batches[0]])",
        f"{OFF}\n        if quick:\n            sampler = torch.jit.trace(sampler, [batches[0]])",
        "sampler = copy.deepcopy(sampler.requires_grad_(False)).eval()",
        "sampler = load(net).train().requires_grad_(False).cuda()",
        "sampler.head.requires_grad_(True); " + OFF,
    ],
)
def test_what_such_a_network_computes_has_no_graph(off: str) -> None:
    assert findings(KEPT.format(off=off), "MEM01", "MEM05") == []


@pytest.mark.parametrize(
    "off",
    [
        "sampler.eval().cuda()",
        OFF + "; sampler.requires_grad_()",
        OFF + "; sampler.head = nn.Linear(3, 3)",
        OFF + "; sampler.head.requires_grad_(True)",
        "copy.deepcopy(sampler).requires_grad_(False)",
    ],
)
def test_a_network_that_has_a_part_to_train_records_a_graph(off: str) -> None:
    assert [found.code for found in findings(KEPT.format(off=off), "MEM01")] == ["MEM01"]


def test_a_graph_goes_through_a_critic_that_is_switched_off() -> None:
    code = """
    import torch
    from torch import nn

    maker, critic = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(maker.parameters())
    losses = []
    for noise in torch.randn(9, 8, 2):
        critic.requires_grad_(False)
        loss = -critic(maker(noise)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    """
    assert [found.code for found in findings(code, "MEM01")] == ["MEM01"]


def test_a_copy_of_a_network_that_was_switched_off_is_off() -> None:
    """An average of the weights, copied before each phase switches the parameters of the network itself on."""
    code = """
    import copy
    import torch

    def train(make, batches):
        net = {made}.to("cuda")
        average = copy.deepcopy(net).eval()
        optimizer = torch.optim.SGD(net.parameters())
        for batch in batches:
            net.requires_grad_(True)
            net(batch.cuda()).sum().backward()
            net.requires_grad_(False)
            optimizer.step()
            optimizer.zero_grad()
            print(torch.cat([average(z).cpu() for z in batch.cuda()]).numpy())
    """
    for made in ("make(3)", "torch.nn.Linear(3, 3)"):
        assert findings(code.format(made=f"{made}.train().requires_grad_(False)"), "MEM05") == []
    assert [found.code for found in findings(code.format(made="torch.nn.Linear(3, 3).train()"), "MEM05")] == ["MEM05"]


OWN = """
    import torch
    from nets import load

    def describe(path, files):
        net: torch.nn.Module = load(path)
        net.eval()
        {off}
        texts = []
        for file in files:
            texts.append(net(file).argmax(1).tolist())
        return texts
"""


@pytest.mark.parametrize(
    ("off", "count"),
    [
        ("net.freeze()", 0),
        ("net.eval_and_disable_grad()", 0),
        ("net.freeze_encoder()", 1),
        ("net.enable_gradient_checkpointing()", 1),
    ],
)
def test_a_method_that_says_that_it_switches_all_off(off: str, count: int) -> None:
    assert len(findings(OWN.format(off=off), "MEM05")) == count


CHECKPOINT = """
    import torch
    from lightning import LightningModule

    class Sampler(LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.net(x)
{own}
    def sample(path, batches):
        net = {made}
        {off}
        found = []
        for batch in batches:
            y = net.forward(batch)
            found.append(y)
        return torch.cat(found).detach().numpy()
"""
OF_ITS_OWN = """
        def freeze(self):
            print("nothing is drawn at random any more")
"""


@pytest.mark.parametrize(
    ("made", "off", "own", "count"),
    [
        ("Sampler.load_from_checkpoint(path)", "net.freeze()", "", 0),
        ("Sampler.load_from_checkpoint(path)", "net.eval()", "", 1),
        ("Sampler()", "net.freeze()", "", 0),
        ("Sampler()", "net.freeze(); net.unfreeze()", "", 1),
        ("Sampler()", "net.freeze()", OF_ITS_OWN, 1),
    ],
)
def test_a_network_of_lightning_that_is_frozen_as_a_whole(made: str, off: str, own: str, count: int) -> None:
    assert len(findings(CHECKPOINT.format(made=made, off=off, own=own), "MEM01")) == count


LOADED = """
    import torch
    from torch import nn

    def load(path):
        net = nn.Sequential(nn.Linear(3, 3), nn.Dropout()).eval()
        net.load_state_dict(torch.load(path, weights_only=True))
        for weight in net.parameters(): {off}
        return net

    def main(path, batches):
        net = load(path).to("cuda")
        for batch in batches:
            print(net(batch.cuda()).argmax(1).tolist())
"""


@pytest.mark.parametrize(("off", "count"), [("weight.requires_grad = False", 0), ("print(weight.shape)", 1)])
def test_a_network_that_is_switched_off_where_it_is_loaded_and_moved_after_that(off: str, count: int) -> None:
    assert len(findings(LOADED.format(off=off), "MEM05")) == count
