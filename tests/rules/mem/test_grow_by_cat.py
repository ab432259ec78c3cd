"""MEM10: tensors that a loop makes longer, what becomes of them, and the sequences that have to grow."""

from __future__ import annotations

import pytest
import torch

from tests.support import findings, fixed
from torchlint.finding import Applicability, Confidence

HEAD = "import torch\nfrom torch import nn\n\n\n"

GROWING = {
    "from nothing": """\
def f(xs):
    out = torch.empty(0, 3)
    for x in xs:
        out = torch.cat([out, x * 2])
    return out
""",
    "copied first": """\
def f(xs):
    out = torch.empty(0, 3)
    for x in xs:
        out = torch.cat([out.clone(), x * 2])
    return out
""",
    "along another dimension": """\
def f(xs):
    out = torch.zeros(4, 0)
    for x in xs:
        y = x.sum(1, keepdim=True)
        out = torch.cat((out, y), dim=-1)
    return out + 1
""",
    "several parts at once": """\
def f(xs):
    out = torch.zeros(0)
    for x in xs:
        out = torch.cat([out, x[0].exp(), x[1].exp()], 0)
    return out
""",
    "across two loops": """\
def f(xs):
    out = torch.ones(1, 3)
    for x in xs:
        for row in x:
            out = torch.cat([out, row[None]])
    return out
""",
    "of another type than the first": """\
def f(xs):
    out = torch.tensor([])
    for x in xs:
        out = torch.concat([out, x.argmax(0)])
    return out
""",
    "with a comment": """\
def f(xs):
    out = torch.zeros(0, 3)  # nothing yet
    for x in xs:
        # one more
        out = torch.cat([out, x])  # longer
        # and on
    return out
""",
    "under a name that was something else before, and is after": """\
def f(xs):
    for out in xs:
        out = out * 2
    out = torch.zeros(0, 3)
    for x in xs:
        out = torch.cat([out, x * 2])
    out = out + 1
    return out
""",
    "anew in each of several passes": """\
def f(xs):
    best = torch.zeros(1, 3)
    for scale in (1, 2, 3):
        out = torch.zeros(0, 3)
        for x in xs:
            out = torch.cat([out, x * scale])
        out = out.sum(0, keepdim=True)
        best = torch.maximum(best, out)
    return best
""",
    "a column for each neuron": """\
def f(xs):
    neurons = [nn.Linear(3, 1) for _ in range(len(xs))]
    for k, neuron in enumerate(neurons):
        nn.init.constant_(neuron.weight, k), nn.init.zeros_(neuron.bias)
    out = torch.Tensor().to("cpu")
    for i in range(len(xs)):
        out = torch.cat((out, neurons[i](xs[0])), 1)
    return out
""",
    "layers that a range counts, in two steps": """\
def f(xs):
    neurons = [nn.Linear(3, 1) for _ in range(len(xs))]
    for k, neuron in enumerate(neurons):
        nn.init.constant_(neuron.weight, k), nn.init.zeros_(neuron.bias)
    bends = [nn.Tanh() for _ in range(len(xs))]
    out = torch.Tensor().to("cpu")
    for i in range(len(xs)):
        shifted = neurons[i](xs[0])
        out = torch.cat((out, bends[i](shifted)), 1)
    return out
""",
    "in an early stop": """\
def f(xs):
    out = torch.zeros(0, 3)
    for x in xs:
        if x.sum() > 4:
            break
        out = torch.cat([out, torch.exp(x)])
    return out
""",
}


def called(code: str, count: int) -> torch.Tensor:
    space: dict[str, object] = {}
    exec(code, space)
    torch.manual_seed(3)
    result = space["f"]([torch.randn(4, 3) for _ in range(count)])  # type: ignore[operator]
    assert isinstance(result, torch.Tensor)
    return result


@pytest.mark.parametrize("name", GROWING)
def test_parts_are_collected_and_put_together_once(name: str) -> None:
    before = HEAD + GROWING[name]
    after = fixed(before, "MEM10")
    assert "out_parts" in after
    assert findings(after, "MEM10") == []
    for count in (0, 1, 5):
        old, new = called(before, count), called(after, count)
        assert old.dtype == new.dtype
        assert torch.equal(old, new)


def test_the_list_is_laid_out_like_the_loop() -> None:
    code = fixed(HEAD + GROWING["with a comment"], "MEM10").removeprefix(HEAD)
    assert code == (
        "def f(xs):\n    out_parts = [torch.zeros(0, 3)]  # nothing yet\n    for x in xs:\n        # one more\n"
        "        out_parts.append(x)  # longer\n        # and on\n    out = torch.cat(out_parts)\n    return out\n"
    )


def test_a_comment_inside_of_the_call_is_not_lost() -> None:
    code = "def f(xs):\n    out = torch.zeros(0, 3)\n    for x in xs:\n        out = torch.cat(\n"
    code += "            [out, x * 2],  # twice\n        )\n    return out\n"
    assert len(findings(HEAD + code, "MEM10")) == 1
    assert fixed(HEAD + code, "MEM10") == HEAD + code


def test_what_one_loop_collects_is_put_together_in_its_order() -> None:
    head = "import torch\n\ndef f(xs):\n    a = torch.zeros(0, 3)\n    b = torch.zeros(0, 3)\n    for x in xs:\n"
    code = head + "        a = torch.cat((a, x + 1))\n        b = torch.cat((b, x + 2))\n    return a, b\n"
    assert fixed(code, "MEM10").endswith("    a = torch.cat(a_parts)\n    b = torch.cat(b_parts)\n    return a, b\n")


def test_a_new_part_is_safe_and_a_borrowed_one_is_not() -> None:
    (new,) = findings(HEAD + GROWING["from nothing"], "MEM10")
    (borrowed,) = findings(HEAD + GROWING["with a comment"], "MEM10")
    assert new.fix is not None
    assert new.fix.applicability is Applicability.SAFE
    assert borrowed.fix is not None
    assert borrowed.fix.applicability is Applicability.UNSAFE
    assert "in place" in borrowed.fix.why


SCALING = "def scale(t):\n    t.mul_(2)\n\n\ndef show(t):\n    print(t.shape)\n\n\n"


@pytest.mark.parametrize(
    ("made", "later", "how"),
    [
        ("part = torch.exp(x)", "show(part)", Applicability.SAFE),
        ("part = torch.exp(x)\n        part[0] = 0", "show(part)", Applicability.UNSAFE),
        ("part = torch.exp(x)", "keep(part)", Applicability.UNSAFE),
        ("part = torch.exp(x)", "scale(part)", None),
        ("part = torch.exp(x)", "part.zero_()", None),
        ("part = torch.exp(x)", "other = part.view(-1)\n        other += 1", None),
        ("part = torch.exp(x)", "torch.distributed.all_reduce(part)", None),
    ],
)
def test_a_part_is_kept_as_it_is_if_nothing_writes_to_it_later(
    made: str, later: str, how: Applicability | None
) -> None:
    code = f"{HEAD}{SCALING}def f(xs):\n    out = torch.zeros(0, 3)\n    for x in xs:\n        {made}\n"
    code += f"        out = torch.cat([out, part])\n        {later}\n    return out\n"
    [finding] = findings(code, "MEM10")
    assert (finding.fix.applicability if finding.fix else None) is how
    [of_view] = findings(code.replace("[out, part]", "[out, part.detach()]"), "MEM10")
    assert (of_view.fix is None) == (finding.fix is None)
    if how is Applicability.SAFE:
        assert torch.equal(called(code, 3), called(fixed(code, "MEM10"), 3))


def test_a_part_that_one_buffer_holds_in_all_iterations_is_not_collected() -> None:
    code = f"{HEAD}def f(xs):\n    out = torch.zeros(0, 3)\n    part = torch.empty(4, 3)\n    for x in xs:\n"
    code += "        torch.exp(x, out=part)\n        out = torch.cat([out, part])\n    return out\n"
    assert fixed(code, "MEM10") == code


@pytest.mark.parametrize("inside", ["first.mul_(2)", "first[0] = x[0]"])
def test_what_it_begins_with_is_not_written_to_before_it_is_copied(inside: str) -> None:
    code = f"{HEAD}def f(xs):\n    first = torch.ones(1, 3)\n    out = first\n    for x in xs:\n        {inside}\n"
    code += "        out = torch.cat([out, x * 2])\n    first.zero_()\n    return out\n"
    assert fixed(code, "MEM10") == code
    after = code.replace(f"        {inside}\n", "")
    assert fixed(after, "MEM10") != after
    assert torch.equal(called(after, 3), called(fixed(after, "MEM10"), 3))


# Reported, and left as it is.
KEPT = {
    "nobody reads it": """\
def f(xs):
    out = torch.zeros(0, 3)
    for x in xs:
        out = torch.cat([out, x * 2])
    return xs
""",
    "in front": """\
def f(xs):
    out = torch.zeros(0, 3)
    for x in xs:
        out = torch.cat([x, out])
    return out
""",
    "moved to where the parts are": """\
def f(xs):
    out = torch.zeros(0, 3)
    for x in xs:
        out = torch.cat([out.cpu(), x.cpu()])
    return out
""",
    "a dimension that differs": """\
def f(xs, dim):
    out = torch.zeros(0, 3)
    for x in xs:
        out = torch.cat([out, x], dim)
    return out
""",
    "read before the loop": """\
def f(xs):
    out = torch.zeros(0, 3)
    print(out)
    for x in xs:
        out = torch.cat([out, x])
    return out
""",
    "an error that is caught": """\
def f(xs):
    try:
        out = torch.zeros(0, 3)
        for x in xs:
            out = torch.cat([out, x])
    except RuntimeError:
        pass
    return out
""",
    "anew in every epoch": """\
def f(xs, epochs):
    for _ in range(epochs):
        out = torch.zeros(0, 3)
        for x in xs:
            out = torch.cat([out, x])
            print(len(out))
        print(out.mean())
""",
}


@pytest.mark.parametrize("name", KEPT)
def test_what_cannot_be_rewritten_is_reported(name: str) -> None:
    (finding,) = findings(HEAD + KEPT[name], "MEM10")
    assert finding.fix is None
    assert "`out`" in finding.message


def test_a_loop_that_watches_the_length_is_less_certain() -> None:
    assert findings(HEAD + KEPT["anew in every epoch"], "MEM10")[0].confidence is Confidence.LIKELY
    assert findings(HEAD + KEPT["in front"], "MEM10")[0].confidence is Confidence.CERTAIN


LOOK_ALIKES = {
    "scales, of which there are three by default": """\
def collect(x, scales=[0.5, 1, 2]):
    out = torch.zeros(0, 3)
    for k, scale in enumerate(scales):
        out = torch.cat([out, x * scale])
    return out
""",
    "along each dimension of a shape": """\
def widened(old, new):
    out = old.clone()
    for d in range(len(new.shape)):
        out = torch.cat([out, new.narrow(d, 0, 2)], dim=d)
    return out
""",
    "generated tokens": """\
def generate(model, ids, count):
    for _ in range(count):
        new = model(ids).argmax(-1)
        ids = torch.cat([ids, new], dim=1)
    return ids
""",
    "a skip connection": """\
def decode(x, skips, blocks):
    for skip in skips:
        x = upsample(x)
        x = torch.cat([x, skip], dim=1)
    return x
""",
    "a window": """\
def f(xs):
    window = torch.zeros(8)
    for x in xs:
        window = torch.cat([window[1:], x])
    return window
""",
    "one anew in every iteration": """\
def f(xs):
    for x in xs:
        row = x.mean(0)
        row = torch.cat([row, x[0]])
    return row
""",
    "features of layers": """\
class Net(nn.Module):
    def forward(self, x):
        out = x
        for i in range(self.depth):
            out = torch.cat([out, self.layers[i](x)], 1)
        return out
""",
    "features of layers, from nothing": """\
class Net(nn.Module):
    def forward(self, x):
        out = torch.Tensor()
        for layer in self.layers:
            out = torch.cat([out, layer(x)], 1)
        return out
""",
    "features of layers that are counted, each from those of the one before, from nothing": """\
class Net(nn.Module):
    def forward(self, x):
        out = torch.Tensor()
        for i in range(self.depth):
            x = self.layers[i](x)
            out = torch.cat([out, x], 1)
        return out
""",
    "three parts": """\
def f(x):
    out = x
    for k in range(3):
        out = torch.cat([out, x.roll(k)])
    return out
""",
    "kinds of nodes": """\
def f(nodes):
    out = torch.zeros(0)
    for kind, x in nodes.items():
        out = torch.cat([out, x])
    return out
""",
    "no loop": "def f(a, b):\n    a = torch.cat([a, b])\n    return a\n",
    "until it is long enough": """\
def f(source, count):
    out = source.sample()
    while len(out) < count:
        out = torch.cat([out, source.sample()])
    return out
""",
    "what another function reads": """\
def f(xs):
    seen = torch.zeros(0)
    def known():
        return seen.unique()
    for x in xs:
        seen = torch.cat([seen, x[~torch.isin(x, known())]])
    return seen
""",
    "arrays": """\
import numpy as np
def f(xs):
    out = np.zeros(0)
    for x in xs:
        out = np.concatenate([out, x])
    return out
""",
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_is_not_reported(name: str) -> None:
    assert findings(HEAD + LOOK_ALIKES[name], "MEM10") == []


@pytest.mark.parametrize(("made", "is_fixed"), [("[torch.relu(x) for x in xs]", False), ("torch.stack(xs)", True)])
def test_what_is_in_a_list_already_is_not_put_into_another(made: str, is_fixed: bool) -> None:
    code = f"import torch\n\ndef f(xs):\n    parts = {made}\n    out = parts[0] + 0\n"
    code += "    for k in range(len(parts) - 1):\n        out = torch.cat((out, parts[k + 1]), 1)\n    return out\n"
    first = code.replace("parts[0] + 0", "parts[0]")
    assert "out_parts" in fixed(code, "MEM10", unsafe=True)
    assert ("out_parts" in fixed(first, "MEM10", unsafe=True)) is is_fixed
