"""Regions that torch.compile traces."""

from __future__ import annotations

import pytest

from tests.semantics.programs import call_on, function_of, model_of, value_of
from tests.support import findings
from torchlint.analyses.compiled import is_compiled
from torchlint.semantics.entities import Role

BODY = """
    out = []
    for i in range(x.shape[0]):
        out.append(x[i] * 2)
    return torch.stack(out)
"""
PLAIN = "import torch\nx = torch.ones(3, 4)\ndef f(x: torch.Tensor):" + BODY
COMPILED = {
    "decorator": "import torch\n@torch.compile\ndef f(x: torch.Tensor):" + BODY,
    "decorator with options": "import torch\n@torch.compile(fullgraph=True)\ndef f(x: torch.Tensor):" + BODY,
    "call": PLAIN + "f = torch.compile(f)\ny = f(x)\n",
    "helper of a compiled function": PLAIN + "@torch.compile\ndef g(x):\n    return f(x)\n",
}
USED_PLAINLY_TOO = PLAIN + "@torch.compile\ndef g(x):\n    return f(x)\ny = f(x)\n"


@pytest.mark.parametrize("code", COMPILED.values(), ids=COMPILED)
def test_a_loop_in_a_compiled_region_is_not_to_be_vectorised(code: str) -> None:
    model = model_of(code)
    assert is_compiled(model, function_of(model, "f"))
    assert findings(code, "VEC", "LIN") == []


@pytest.mark.parametrize("code", [PLAIN, USED_PLAINLY_TOO], ids=["never compiled", "used plainly too"])
def test_a_loop_outside_of_compiled_regions_is(code: str) -> None:
    model = model_of(code)
    assert not is_compiled(model, function_of(model, "f"))
    assert [found.code for found in findings(code, "VEC01")] == ["VEC01"]


@pytest.mark.parametrize("how", ["net = torch.compile(Net())", "net = Net(); net.compile()"])
def test_a_compiled_module_is_compiled_with_its_layers(how: str) -> None:
    model = model_of(
        f"""
        import torch
        from torch import nn
        class Block(nn.Module):
            def forward(self, x):
                return x
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = Block()
            def forward(self, x):
                return self.block(x)
            def loss(self, x):
                return x
        {how}
        """
    )
    compiled = {function.qualname for function in model.functions if is_compiled(model, function)}
    assert compiled == {"Net.forward", "Block.forward"}


def test_a_compiled_function_is_that_function() -> None:
    model = model_of(
        """
        import torch
        net = torch.nn.Linear(2, 2)
        opt = torch.optim.SGD(net.parameters(), lr=1)
        def step(x):
            opt.zero_grad()
            loss = net(x).sum()
            loss.backward()
            opt.step()
            return 3
        fast = torch.compile(step, mode="max-autotune")
        for x in data:
            number = fast(x)
        """
    )
    assert call_on(model, "fast(x)").target is function_of(model, "step")
    assert value_of(model, "number").constant == 3
    assert model.loops[0].role is Role.STEPS
