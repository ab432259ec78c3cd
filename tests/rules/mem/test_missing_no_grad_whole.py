"""MEM05: the fix covers all that evaluates together, or is only shown."""

from __future__ import annotations

import pytest

from tests.rules.mem.recorded_evaluations import SETUP
from tests.support import findings, fixed

IN_BRANCHES = """\
G, D = nn.Linear(3, 4), nn.Linear(4, 1)
fixed = torch.randn(2, 3)
for step in range(4):
    opt.zero_grad()
    D(G(torch.randn(2, 3))).mean().backward()
    opt.step()
    if step % 2 == 0:
        a = G(fixed)
        {tail}
    else:
        {other}
    print(a.detach().sum())
    if step > 2:
        print(b.detach().sum())
"""


@pytest.mark.parametrize(
    ("tail", "other", "blocks"),
    [
        ("a = a.view(4, 2).max(dim=1)[0]", "a = G(fixed)", 1),
        ("print(step)", "a = G(fixed)", 1),
        ("a = a.tanh()", 'raise ValueError("odd")', 1),
        ("for _ in range(2): print(a)", "a = G(fixed)", 0),
        ("for _ in range(2): print(a)", "b = G(fixed)", 2),
    ],
)
def test_branches_that_evaluate_and_compute_go_under_one_switch(tail: str, other: str, blocks: int) -> None:
    after = fixed(SETUP + IN_BRANCHES.format(tail=tail, other=other), "MEM05", "MEM09")
    assert after.count("with torch.no_grad():") == blocks
    assert ("    with torch.no_grad():\n        if step % 2 == 0:\n" in after) is (blocks == 1)


@pytest.mark.parametrize(
    ("beside", "is_fixed"),
    [
        ("pool.put(H(torch.randn(2, 3)))", False),
        ("pool.put(torch.randn(2, 3))", True),
        ("F.mse_loss(H(torch.randn(2, 3)), torch.randn(2, 4)).backward()", True),
    ],
)
def test_one_of_several_networks_of_what_only_evaluates(beside: str, is_fixed: bool) -> None:
    code = (
        SETUP
        + f"""\
from queue import SimpleQueue

G, H, pool = nn.Linear(3, 4), nn.Linear(3, 4), SimpleQueue()
G.load_state_dict(H.state_dict())
{beside}
for i in range(4):
    a = G(torch.randn(2, 3)).detach().numpy()
    print(a)
"""
    )
    assert len(findings(code, "MEM05")) == 1
    assert ("with torch.no_grad():" in fixed(code, "MEM05")) is is_fixed


@pytest.mark.parametrize(("other", "is_fixed"), [("print(H(x).detach().numpy())", False), ("print(x)", True)])
def test_several_places_of_a_loop_that_only_evaluates(other: str, is_fixed: bool) -> None:
    code = SETUP + "G, H, names = nn.Linear(3, 4), nn.Linear(3, 4), []\nG.load_state_dict(H.state_dict())\n"
    code += "for i in range(9):\n    x = torch.randn(2, 3)\n    a = G(x)\n    print(a.detach().numpy())\n"
    code += f"    if i > 3:\n        {other}\n" + "    names.append(i)\n" * 12
    assert len(findings(code, "MEM05")) == 1
    assert ("with torch.no_grad():" in fixed(code, "MEM05")) is is_fixed


@pytest.mark.parametrize(("name", "is_fixed"), [("__init__", False), ("label", True)])
def test_a_constructor_gets_no_decorator(name: str, is_fixed: bool) -> None:
    code = (
        SETUP
        + f"""\
class Labelled(torch.utils.data.Dataset):
    def {name}(self, rows):
        net = nn.Linear(4, 2)
        net.load_state_dict(torch.load("labeler.pt", weights_only=True))
        net.eval()
        probs = []
        for x, _ in loader:
            probs.append(net(x).softmax(1).data.numpy())
        self.probs, self.rows = probs, rows
"""
    )
    assert len(findings(code, "MEM05")) == 1
    assert ("@torch.no_grad()" in fixed(code, "MEM05")) is is_fixed


@pytest.mark.parametrize(
    ("row", "outer"), [("", True), ("    report(model, depth)\n", False)], ids=["nothing beside it", "a call beside it"]
)
def test_a_loop_around_another_goes_under_the_switch_with_it(row: str, outer: bool) -> None:
    code = SETUP + "from reports import report\nmodel.eval()\nfor depth in range(3):\n"
    code += "    for x, y in val_loader:\n        print(model(x).argmax(1).tolist(), report(model, depth))\n" + row
    after = fixed(code, "MEM05", "MEM09")
    assert ("with torch.no_grad():\n    for depth in range(3):" in after) is outer
    assert ("    with torch.no_grad():\n        for x, y in val_loader:" in after) is not outer
