"""MEM05: its fix takes in what goes with an evaluation, or leaves all of it to the author."""

from __future__ import annotations

import pytest
from torchlint.fixers.mem._going_on import goes_on_elsewhere, made_for_it

from tests.rewriting import model_of
from tests.rules.mem.recorded_evaluations import SETUP
from tests.support import fixed
from torchlint.analyses.mem.evaluation import Evaluation, Extent
from torchlint.semantics.model import Model

NET = "import torch\nfrom torch import nn\n\nnet, body = nn.Linear(4, 4), load()\n"


def evaluation(code: str) -> tuple[Model, Evaluation]:
    """The last statement of the module that runs `net(rows)`."""
    model = model_of(code)
    [call] = [call for call in model.calls if model.code(call.node) == "net(rows)"]
    [region] = [node for node in (call.node, *model.ancestors(call.node)) if model.parent(node) is model.module]
    return model, Evaluation(call, Extent.BLOCK, region, certain=True)


@pytest.mark.parametrize(
    ("made", "on", "cut", "goes_on"),
    [
        ("pose = net(rows)", "body(pose=pose)", ".detach()", True),
        ("pose = net(rows)", "body(pose=pose)", ".data", True),
        ("pose = net(rows)", "body(pose=rows)", ".detach()", False),
        ("pose = net(rows)", "body(pose=pose)", "", False),
        ("pose = net(rows)", "torch.tanh(pose)", ".detach()", False),
        ("given = {}\nfor row in rows:\n    given[row] = net(rows)", "body(**given)", ".detach()", True),
    ],
)
def test_another_network_goes_on_with_a_result(made: str, on: str, cut: str, goes_on: bool) -> None:
    model, found = evaluation(f"{NET}{made}\nout = {on}\nprint(out.vertices{cut}.numpy())\n")
    assert (goes_on_elsewhere(found.region, found, model) is not None) is goes_on


SOUGHT = """
given = nn.Linear(4, 4)(torch.rand(2, 4))
if given.dim() == 2:
    given = given[:, None]
for _ in range(9):
    rows = {source} + 1
    print(net(rows))
{more}
"""


@pytest.mark.parametrize(
    ("source", "more", "is_for_it"),
    [("given", "", True), ("1", "print(given)", False), ("given", "print(given)", False)],
)
def test_a_network_above_runs_for_a_loop_alone(source: str, more: str, is_for_it: bool) -> None:
    model, found = evaluation(NET + SOUGHT.format(source=source, more=more))
    assert (made_for_it(found.region, found, model) is not None) is is_for_it


STEPS = """
policy, critic = nn.Linear(4, 4), nn.Linear(4, 1)
for x, y in loader:
    chosen = policy(x).chunk(2)[0]
    {between}
    score = critic(noise)
    with torch.no_grad():
        target = score * 2
    loss = (critic(x) - target).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("between", "is_one"),
    [
        ("noise = chosen.abs()", True),
        ("wide = chosen.abs()\n    noise = wide.tanh()\n", True),
        ("noise = chosen.abs()  # positive\n", True),
        ("noise = chosen.abs() + x", True),
        ("noise = torch.cat([chosen, x])[:2]", True),
        ("noise = torch.stack([torch.abs(row) for row, _ in zip(chosen, x)])", True),
        ("# a comment\n    noise = chosen.abs()", False),
        ("noise = chosen.abs(); print(noise)", False),
        ("noise = chosen.abs()\n    kept = noise.sum()\n    print(kept)", False),
    ],
)
def test_lines_that_hand_a_result_on_go_into_the_block(between: str, is_one: bool) -> None:
    code = SETUP + STEPS.format(between=between)
    after = fixed(code, "MEM05", "MEM09")
    assert after.count("torch.no_grad()") == (1 if is_one else 2)
    inside = between.replace("\n    ", "\n        ").rstrip()
    assert (f"    with torch.no_grad():\n        chosen = policy(x).chunk(2)[0]\n        {inside}\n" in after) is is_one
    exec(code, {})
    exec(after, {})


ROLLED_OUT = """
policy, dynamics, score = nn.Linear(4, 4), nn.Linear(8, 4), nn.Linear(12, 1)
for x, y in loader:
    action = policy(x)
    pair = torch.cat([x, action], 1)
    following = dynamics(pair)
    triple = torch.cat([pair, following], 1)
    wanted = score(triple).detach()
    loss = (score(torch.cat([x, x, x], 1)) - wanted).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_lines_between_several_go_into_the_block_together() -> None:
    code = SETUP + ROLLED_OUT
    after = fixed(code, "MEM05", "MEM09")
    assert after.count("torch.no_grad()") == 1
    assert "        triple = torch.cat([pair, following], 1)\n        wanted = score(triple)\n    loss" in after


@pytest.mark.parametrize("cuts", ["detach().cpu().data", "data.cpu().detach()", "data.detach().cpu()"])
def test_what_cuts_a_result_off_twice_goes_at_once(cuts: str) -> None:
    code = SETUP + "def scores(net: nn.Module, rows):\n    net.eval()\n    kept = []\n    for x, y in rows:\n"
    code += f"        out = net(x)\n        kept.append(out.{cuts}.numpy())\n    return kept\n"
    assert "kept.append(out.cpu().numpy())" in fixed(code, "MEM05", "MEM09")


SEARCH = """
def searched(policy: nn.Module, states, old, target):
    for power in range(15):
        candidate = copy.deepcopy(policy)
        with_step(candidate, 0.5 ** power)
        scores = candidate(states)
        distance = torch.mean(torch.square(old - scores))
        better = candidate(target).sum()
        {line}
        if better > 0 and {read}:
            print(power)
            print(distance < 2)
            print(better < 2)
            break
    return policy(states) * power


def with_step(candidate, step):
    nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(candidate.parameters()) * step, candidate.parameters())


searched(nn.Linear(4, 1), torch.randn(3, 4), torch.randn(3, 1), torch.randn(2, 4)).sum().backward()
"""


@pytest.mark.parametrize(
    ("line", "read", "is_one"), [("", "distance < 1", True), ("gone.append(distance)", "1", False)]
)
def test_a_line_between_that_gives_a_number_to_compare_goes_into_the_block(line: str, read: str, is_one: bool) -> None:
    code = "import copy\n" + SETUP + "gone = []\n" + SEARCH.format(line=line, read=read)
    code += "sum(gone, torch.zeros(())).backward()\n" if line else ""
    after = fixed(code, "MEM05", "MEM09")
    block = "        with torch.no_grad():\n            scores = candidate(states)\n            distance = torch.mean("
    assert (block in after) is is_one
    assert after.count("with torch.no_grad():") == (1 if is_one else 0)
    exec(after, {})
