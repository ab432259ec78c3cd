"""MEM06: caches that are emptied in every step."""

from __future__ import annotations

import pytest

from tests.support import findings, fixed

HEADER = """
import torch
from torch import nn

model = nn.Linear(4, 4).cuda().eval()
"""

FOUND = [
    pytest.param(
        """
@torch.no_grad()
def sample(x, steps):
    for step in reversed(range(steps)):
        x = x - model(x) * step
        torch.cuda.empty_cache()
    return x
""",
        id="sampling",
    ),
    pytest.param(
        """
def warm_up(x):
    with torch.inference_mode():
        for _ in range(10):
            model(x)
            torch.cuda.empty_cache()
""",
        id="warm-up",
    ),
    pytest.param(
        """
@torch.no_grad()
def refine(x, steps):
    for step in range(steps):
        model.eval()
        x = model(x)
        torch.cuda.empty_cache()
""",
        id="the same model, put into evaluation mode in each iteration",
    ),
    pytest.param(
        """
def products(rows: torch.Tensor, size):
    total = torch.zeros(4, 4)
    for i in range(0, len(rows), size):
        part = rows[i : i + size].cuda()
        total = total + torch.matmul(part.t(), part).cpu()
        torch.cuda.empty_cache()
    return total
""",
        id="parts that are copied to the device and computed with there",
    ),
]

SILENT = [
    pytest.param(
        """
for epoch in numpy.arange(9) + 1:
    torch.cuda.empty_cache()
    for x in batches:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
    with torch.no_grad():
        print(model(held_out).mean().item())
""",
        id="once an epoch that ends with an evaluation",
    ),
    pytest.param(
        """
def products(rows: torch.Tensor, size):
    total = torch.zeros(4, 4)
    for i in range(0, len(rows), size):
        part = rows[i : i + size]
        total = total + torch.matmul(part.t(), part)
        torch.cuda.empty_cache()
""",
        id="parts that stay on the host",
    ),
    pytest.param(
        """
def spread(layers, x: torch.Tensor):
    for layer in layers:
        layer.cuda()
        y = x.cuda()
        print(torch.linalg.norm(y @ layer.weight))
        layer.cpu()
        torch.cuda.empty_cache()
""",
        id="layers that take turns on the device",
    ),
    pytest.param(
        """
def show(rows: torch.Tensor, queue):
    for i in range(len(rows)):
        queue.put(rows[i].cuda())
        torch.cuda.empty_cache()
""",
        id="parts that something else takes",
    ),
    pytest.param(
        """
@torch.no_grad()
def compare(models, x):
    for name, candidate in models.items():
        print(name, candidate(x).mean())
        torch.cuda.empty_cache()
""",
        id="a model of its own in each iteration",
    ),
    pytest.param(
        """
@torch.no_grad()
def measure(run, x):
    torch.cuda.empty_cache()
    for _ in range(9):
        run(x)

for name in names:
    candidate = eval(name)()
    candidate.eval()
    torch.cuda.empty_cache()
    measure(candidate, torch.zeros(1, 4).cuda())
""",
        id="a model of its own, of an unknown class, in each iteration",
    ),
    pytest.param(
        """
@torch.no_grad()
def serve(queue):
    while True:
        queue.answer(model(queue.get()))
        torch.cuda.empty_cache()
""",
        id="requests",
    ),
    pytest.param(
        """
@torch.no_grad()
def watch(videos):
    for video in videos:
        for frame in video:
            model(frame)
        torch.cuda.empty_cache()
""",
        id="behind an inner loop",
    ),
    pytest.param(
        """
@torch.no_grad()
def sample(x, steps):
    for step in range(steps):
        x = x - model(x)
        if step % 100 == 0:
            torch.cuda.empty_cache()
""",
        id="now and then",
    ),
]


@pytest.mark.parametrize("code", FOUND)
def test_found(code: str) -> None:
    (finding,) = findings(HEADER + code, "MEM06")
    assert finding.fix is not None


@pytest.mark.parametrize("code", SILENT)
def test_silent(code: str) -> None:
    assert findings(HEADER + code, "MEM06") == []


@pytest.mark.parametrize(
    ("above", "is_fixed"),
    [
        ("y = model(x)", True),
        ("# free the memory", False),
        ("# Clean up", False),
        ("# release what the step held", False),
        ("# and so on", True),
        ("del y", False),
        ("gc.collect()", False),
        ("if x.ndim:\n            del y", False),
        ("if x.ndim:\n            y = x", True),
        ("torch.cuda.ipc_collect()", False),
    ],
    ids=[
        "a pass",
        "a comment says what for",
        "in short",
        "in other words",
        "another comment",
        "a variable is deleted",
        "garbage is collected",
        "a variable is deleted on a condition",
        "another condition",
        "shared memory is collected",
    ],
)
def test_a_cache_that_is_emptied_for_what_was_just_freed_is_left_to_its_author(above: str, is_fixed: bool) -> None:
    code = f"{HEADER}import gc\n\n@torch.no_grad()\ndef warm_up(x):\n    for _ in range(10):\n        y = model(x)\n"
    code += f"        {above}\n        torch.cuda.empty_cache()\n"
    assert len(findings(code, "MEM06")) == 1
    assert ("empty_cache" not in fixed(code, "MEM06")) is is_fixed


def test_of_the_blank_lines_around_a_condition_that_goes_one_gap_stays() -> None:
    code = f"{HEADER}\n@torch.no_grad()\ndef warm_up(x, gpus):\n    for _ in range(10):\n        y = model(x)\n\n"
    code += "        if gpus:\n            torch.cuda.empty_cache()\n\n    return y\n"
    assert fixed(code, "MEM06").endswith("        y = model(x)\n\n    return y\n")


@pytest.mark.parametrize(("test", "count"), [("x.shape[-2] > 2000 and not self.training", 0), ("not self.training", 1)])
def test_a_cache_that_is_emptied_for_large_inputs_is_not_emptied_in_every_step(test: str, count: int) -> None:
    code = f"""
        import torch
        from torch import nn

        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Linear(4, 4)

            def forward(self, x):
                out = self.net(x)
                if {test}:
                    torch.cuda.empty_cache()
                return out
        """
    assert len(findings(code, "MEM06")) == count


@pytest.mark.parametrize(
    ("above", "count"),
    [("pass", 1), ("step(x)", 0)],  # a way to make a step; one that is made again after an error
)
def test_a_branch_that_trains_is_in_every_step_where_nothing_else_trains(above: str, count: int) -> None:
    code = f"""
        import torch
        from torch import nn

        model = nn.Linear(8, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()

        def train(loader, lacks_memory):
            for x in loader:
                x = x.cuda()
                {above}
                if lacks_memory(x):
                    torch.cuda.empty_cache()
                    step(x)
    """
    assert len(findings(code, "MEM06")) == count
