"""MEM05: what else of a class, or between two places that evaluate, its fix takes along or stops at."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.rules.mem.recorded_evaluations import SETUP
from tests.support import findings, fixed


@pytest.mark.parametrize(
    ("name", "returned", "is_fixed"),
    [
        ("decode_beam", "self.search(self.net(images))", False),
        ("sample", "self.search(self.net(images))", False),
        ("decode_beam", "self.search(self.other(images))", False),
        ("sample", "self.search(self.other(images))", True),
        ("loss_of", "self.search(self.net(images))", True),
    ],
    ids=["in another way", "by its name", "twin", "of another network", "may be trained"],
)
def test_a_method_beside_that_evaluates_in_another_way(name: str, returned: str, is_fixed: bool) -> None:
    code = "import torch\nfrom torch import nn\n\nclass Captioner:\n    def __init__(self):\n"
    code += "        self.net, self.other = nn.Linear(3, 4).cuda(), nn.Linear(3, 4).cuda()\n\n"
    code += "    def decode_greedy(self, images):\n        self.net.eval()\n"
    code += "        return self.net(images).argmax(1).cpu().numpy()\n\n"
    code += f"    def {name}(self, images):\n        return {returned}\n"
    assert len(findings(code, "MEM05")) == 1
    assert ("@torch.no_grad()" in fixed(code, "MEM05")) is is_fixed


def test_loops_with_a_word_between_them_go_into_one_block() -> None:
    code = (
        "import torch\nfrom torch import nn\nnet = nn.Linear(3, 4).cuda()\nnet.eval()\nx = torch.randn(2, 3).cuda()\n"
    )
    first, second = "for _ in range(4):\n    y = net(x)\n", "for _ in range(90):\n    y = net(x)\n"
    word = "print('timed')\nspent = list()\n"
    assert fixed(code + first + word + second, "MEM05").count("with torch.no_grad():") == 1
    assert fixed(code + first + "net.bias.zero_()\n" + second, "MEM05").count("with torch.no_grad():") == 2


@pytest.mark.parametrize(("between", "count"), [("b = other.to('cpu')", 1), ("b = D(other)", 2)])
def test_a_copy_between_two_statements_goes_along(between: str, count: int) -> None:
    code = SETUP + "G, D = nn.Linear(3, 4), nn.Linear(4, 1)\nfixed, other = torch.randn(2, 3), torch.randn(2, 4)\n"
    code += (
        "for step in range(4):\n    opt.zero_grad()\n    D(G(torch.randn(2, 3))).mean().backward()\n    opt.step()\n"
    )
    code += (
        f"    a = G(fixed)\n    {between}\n    c = D(b.mean() + other)\n    print(a.argmax(), b.argmax(), c.argmax())\n"
    )
    assert fixed(code, "MEM05", "MEM09").count("with torch.no_grad():") <= count
    assert ("        b = other" in fixed(code, "MEM05", "MEM09")) is (count == 1)


@pytest.mark.parametrize(("given", "is_fixed"), [("student(x)", False), ("student(x).detach()", True)])
def test_what_is_trained_may_go_through_a_function_that_evaluates(given: str, is_fixed: bool) -> None:
    code = f"""
        import torch
        from torch import nn

        def probe(teacher: nn.Module, head: nn.Module, features, x):
            first, features, second = teacher(x), features.to("cuda"), head(x)
            print(first.argmax(1), second.argmax(1))
            return features

        def train(teacher: nn.Module, student: nn.Module, loader, optimizer):
            for x, y in loader:
                optimizer.zero_grad()
                shown = probe(teacher, teacher, {given}, x)
                (shown.mean() * student.scale).backward()
                optimizer.step()
    """
    assert ("@torch.no_grad()" in fixed(code, "MEM05")) is is_fixed


@pytest.mark.parametrize(("copied", "count"), [("features.to('cpu')", 2), ("other.to('cpu')", 1)])
def test_a_copy_of_what_may_be_trained_elsewhere_does_not_go_along(copied: str, count: int) -> None:
    code = SETUP + "G, D = nn.Linear(3, 4), nn.Linear(4, 1)\nfixed, other = torch.randn(2, 3), torch.randn(2, 4)\n"
    code += "def steps(features):\n    for step in range(4):\n        opt.zero_grad()\n"
    code += "        D(G(torch.randn(2, 3))).mean().backward()\n        opt.step()\n"
    code += f"        a = G(fixed)\n        b = {copied}\n        c = D(other)\n        print(a.argmax(), c.argmax())\n"
    assert fixed(code + "    return b\n", "MEM05", "MEM09").count("with torch.no_grad():") == count


CAPTIONER = """
import torch
from torch import nn

class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(3, 4), nn.Linear(4, 4)

    def generate(self, images, beam):
        self.eval()
        GENERATE

    def sampling(self, features):
        words = []
        for _ in range(9):
            features = self.decoder(features)
            words.append(features.argmax(1).tolist())
        return words

def show(images):
    net = Captioner()
    net.load_state_dict(torch.load("x.pt", weights_only=True))
    return net.generate(images, 3)
"""


@pytest.mark.parametrize(
    ("generate", "lines"),
    [
        ("return self.sampling(self.encoder(images))", ["generate"]),
        ("if beam:\n            with torch.no_grad():\n                return self.sampling(images)\n"
         "        return self.sampling(images)", []),
        ("return self.sampling(images)", ["sampling"]),
    ],
    ids=["all that call it", "on one of two ways", "nothing there evaluates itself"],
)  # fmt: skip
def test_a_method_whose_callers_switch_autograd_off(generate: str, lines: list[str]) -> None:
    after = fixed(CAPTIONER.replace("GENERATE", generate), "MEM05").splitlines()
    switched = [after[at + 1] for at, line in enumerate(after) if line.strip() == "@torch.no_grad()"]
    assert [line.split("(")[0].split()[-1] for line in switched] == lines


@pytest.mark.parametrize(("line", "is_fixed"), [("optimizer.step()", False), ("print(x.shape)", True)])
def test_a_step_that_lost_its_backward_pass_is_left(line: str, is_fixed: bool) -> None:
    code = f"""\
    import torch

    def find_rate(net: torch.nn.Linear, loader, optimizer):
        losses = []
        for x, y in loader:
            scores = net(x)
            {line}
            losses.append((scores.argmax(1) == y).sum().item())
        return losses
    """
    [found] = findings(dedent(code), "MEM05", "MEM09")
    assert (found.fix is not None) is is_fixed
    assert ("backward pass is missing" in found.no_fix) is not is_fixed
