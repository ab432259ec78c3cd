"""XFER01: tensors that functions make for their callers, of the same file or another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import findings, fixed, marked
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability
from torchlint.semantics.project import Project
from torchlint.source import Source

_HELPER = """
    import torch

    def mask(n):
        upper = torch.triu(torch.ones(n, n)) == 1
        {between}
        return upper.float().masked_fill(upper == 0, float("-inf"))

    def attend(model, x, device):
        return model(x, mask(len(x)).to(device))
"""


def test_a_function_that_makes_a_tensor_for_its_callers() -> None:
    [finding] = findings(_HELPER.format(between="pass"), "XFER01")
    assert finding.line == 9
    assert "pass it the device" in finding.message
    assert fixed(_HELPER.format(between="pass"), "XFER01").count("mask(len(x)).to(device)") == 1
    assert findings(_HELPER.format(between="print(upper)"), "XFER01") == []


def test_a_tensor_that_is_made_here_and_by_a_function_has_no_fix() -> None:
    code = _HELPER.format(between="pass").replace("mask(len(x))", "(torch.ones(4, 4) + mask(4))")
    [finding] = findings(code, "XFER01")
    assert "`torch.ones` fills this tensor" in finding.message
    assert "(torch.ones(4, 4) + mask(4)).to(device)" in fixed(code, "XFER01")


@pytest.mark.parametrize("decorator", ["@functools.lru_cache", "@register"])
def test_a_function_behind_a_decorator_may_return_anything(decorator: str) -> None:
    code = _HELPER.format(between="pass").replace("def mask", f"{decorator}\n    def mask", 1)
    assert findings(code.replace("import torch", "import functools, torch", 1), "XFER01") == []


def test_hidden_states_that_a_method_makes_and_the_loop_copies() -> None:
    code = """
        import torch
        from torch import nn

        class Recurrent(nn.Module):
            def hidden(self, n):
                return torch.zeros(1, n, 8), torch.zeros(1, n, 8)

        def train(x, use_cuda):
            model = Recurrent().cuda()
            h, c = model.hidden(len(x))
            h, c = h.cuda(), c.cuda()
            states = [torch.zeros(3) for _ in x]
            states = [state.cuda() for state in states]
            pair = torch.zeros(3), torch.zeros(4)
            return model(x, h, c), states, pair[0].cuda(), pair[1].cuda()
    """
    assert [finding.line for finding in findings(code, "XFER01")] == [10, 12, 14, 14]


def test_a_function_of_another_file_that_makes_a_tensor(tmp_path: Path) -> None:
    (tmp_path / "masks.py").write_text("import torch\n\ndef ones(n):\n    return torch.ones(n, n).tril()\n")
    main = """
import torch
from masks import ones

def fit(model, x, device):
    model(x, ones(len(x)).to(device)).sum().backward()
"""
    (tmp_path / "main.py").write_text(main)
    source = Source.from_text(main, tmp_path / "main.py")
    found = lint(source, Settings.selecting("XFER01"), strict=True, project=Project())
    assert [finding.line for finding in found] == [6]


_LIGHTNING = "import pytorch_lightning as pl\nfrom decoder import start\n\npl.Trainer().fit(start)\n"


@pytest.mark.parametrize(
    ("move", "main", "found"),
    [
        (".type_as(batch)", "from decoder import start\n\nstart(net.cuda()(data))\n", 1),
        (".type_as(batch)", "from decoder import start\n\nstart(net.to(device)(data))\n", 1),
        (".type_as(batch)", "from decoder import start\n\nstart(net.train()(data))\n", 0),
        (".type_as(batch)", _LIGHTNING, 1),
        (".type_as(batch)", "import numpy\n\nnet.cuda()\n", 1),  # nobody uses it here: it is for others
        (".type_as(batch)", "import numpy\n\nnet.train()\n", 0),
        (".type(batch.type())", "from decoder import start\n\nstart(net.cuda()(data))\n", 1),
        (".type(batch)", "from decoder import start\n\nstart(net.cuda()(data))\n", 0),
        (".to(batch)", "from decoder import start\n\nstart(net.cuda()(data))\n", 0),
    ],
)
def test_a_file_that_names_no_device_but_is_used_on_one(tmp_path: Path, move: str, main: str, found: int) -> None:
    code = f"import torch\n\n\ndef start(batch):\n    return torch.ones(1, 1){move}\n"
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "decoder.py").write_text(code)
    (tmp_path / "main.py").write_text(main)
    source = Source.from_text(code, tmp_path / "decoder.py")
    assert len(lint(source, Settings.selecting("XFER01"), strict=True, project=Project())) == found


def test_numbers_beside_what_is_drawn_are_put_into_a_tensor() -> None:
    code = """
        import torch

        def weights(n, drawn, device):
            if drawn:
                alpha = torch.rand(n)
            else:
                alpha = torch.FloatTensor([{numbers}])
            return alpha.to(device)
    """
    for numbers, makes in (("0.5", "fills this tensor"), ("0.5, 0.25", "puts numbers into a tensor")):
        drawn, written = (finding.message for finding in findings(code.replace("{numbers}", numbers), "XFER01"))
        assert "`torch.rand` draws this tensor" in drawn
        assert f"`torch.FloatTensor` {makes}" in written
        assert "with `torch.tensor` or `torch.empty`, and `device=`" in written


NOISE = """\
import torch
from torch import nn

{head}
device = torch.device("cuda")
{top}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.noise = {made}

    def forward(self, x):
        return x + torch.randn(8).to(device)
"""


@pytest.mark.parametrize(
    ("head", "made", "loop", "count"),
    [
        ("", "torch.zeros(8).to(device)", "", 2),
        ("", "torch.randn(8).to(device)", "", 1),
        ("", "0", "fixed = torch.randn(8).to(device)", 1),
        ("", "0", "rows = [torch.randn(8).to(device) for _ in range(9)]", 2),
        ("torch.manual_seed(3)", "torch.zeros(8).to(device)", "", 1),
        ("def set_seed(seed): ...", "0", "", 0),
        ("import delu\ndelu.random.seed(0)", "0", "", 0),
        ("import np\nnp.random.seed(0)", "0", "", 1),
    ],
)
def test_a_draw_moves_to_the_device_where_it_is_repeated_and_nothing_seeds_it(
    head: str, made: str, loop: str, count: int
) -> None:
    code = NOISE.format(head=head, made=made, top=loop)
    assert fixed(code, "XFER01").count("device=device)") == count
    assert len(findings(code, "XFER01")) == (made != "0") + bool(loop) + 1


SCALED_NOISE = """
    import torch

    def noisy(y, power):
        y = y.cuda()
        return y + ({scale}).cuda()
"""


@pytest.mark.parametrize(
    ("scale", "factory"),
    [
        ("torch.randn(y.size()) * torch.sqrt(torch.tensor([power / 2]))", "torch.randn"),
        ("torch.sqrt(torch.tensor([power / 2])) * torch.randn(y.size())", "torch.randn"),
        ("torch.sqrt(torch.tensor([power / 2]))", None),  # it may be data, and has to be copied anyway
        ("torch.randn(y.size()) * torch.tensor(power)", None),  # a tensor of a device stays there
        ("torch.randn(y.size()) * torch.tensor([power.mean()])", None),
        ("torch.randn(y.size()) * torch.tensor([power / 2], dtype=torch.float)", "torch.randn"),
        ("torch.randn(y.size()) * torch.tensor([power / 2], device=y.device)", None),
        ("torch.tensor([0.5], requires_grad=True)", None),  # the leaf would lie on the device
    ],
)
def test_what_looks_like_a_number_in_a_list_scales_what_is_drawn_beside_it(scale: str, factory: str | None) -> None:
    found = findings(SCALED_NOISE.format(scale=scale), "XFER01")
    assert [finding.message.split("`")[1] for finding in found] == ([factory] if factory else [])
    assert all(finding.fix is None for finding in found)


def test_a_function_that_returns_what_it_returns_itself_ends_the_search() -> None:
    code = """\
        import torch

        device = torch.device("cuda")

        def pairs(n, kept, device):
            if n not in kept:
                kept[n] = {}
                return pairs(n, kept, device)
            return [torch.LongTensor(range(n)), torch.ones(n)]

        def both(n):
            return [x.to(device) for x in pairs(n, {}, "cpu")] + [torch.ones(n).to(device)]  # here
    """
    assert [finding.line for finding in findings(code, "XFER01")] == marked(code)


@pytest.mark.parametrize(
    ("grid", "moved", "count"),
    [
        ("ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w))", "(xs[None] + ys[None]).cuda()", 1),
        ("ys, xs = torch.meshgrid([torch.arange(h), torch.arange(w)])", "xs.cuda() + ys.cuda()", 1),
        ("pass", "torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w))).cuda()", 1),
        ("ys, xs = torch.meshgrid(torch.arange(h), points)", "(xs + ys).cuda()", 0),
        ("ys, xs = torch.meshgrid(*points)", "(xs + ys).cuda()", 0),
        ("ys, xs = torch.meshgrid(torch.arange(h), *points)", "(xs + ys).cuda()", 0),
        ("axes = [torch.arange(h)]; axes.append(points)", "torch.stack(axes).cuda()", 0),
    ],
)
def test_a_grid_of_ranges_is_made_of_sizes(grid: str, moved: str, count: int) -> None:
    code = f"import torch\n\ndef places(h: int, w: int, points):\n    {grid}\n    return {moved}\n"
    assert len(findings(code, "XFER01")) == count


@pytest.mark.parametrize(
    ("program", "own", "is_fixed"),
    [
        ("import utils\n\nutils.set_seed(3)\n", "", False),
        ("import utils\n\nutils.run(3)\n", "", True),
        ("import utils\n\nutils.set_seed(3)\n", 'if __name__ == "__main__":\n    noisy(torch.ones(3))\n', True),
        ("import agents\nimport utils\n\nutils.set_seed(3)\n", "", False),
        ("import agents\nimport utils\n\nutils.run(3)\n", "", True),
    ],
)
def test_a_draw_is_seeded_by_the_programs_that_reach_its_file_or_may(
    tmp_path: Path, program: str, own: str, is_fixed: bool
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "pretrain.py").write_text(program)
    if "agents" in program:
        (tmp_path / "agents.py").write_text("from agent import noisy\n")
    code = "import torch\n\n\ndef noisy(y):\n    for _ in range(9):\n        y = y + torch.randn(3).to(y.device)\n"
    (tmp_path / "agent.py").write_text(code + "    return y\n\n\n" + own)
    [found] = lint(Source.read(tmp_path / "agent.py"), Settings.selecting("XFER01"), strict=True, project=Project())
    assert found.fix is not None
    assert (found.fix.applicability is not Applicability.DISPLAY) is is_fixed
