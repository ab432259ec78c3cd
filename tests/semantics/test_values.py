"""What the model believes of the values in small programs: kinds, places, ranks."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.semantics.programs import TRAINING_LOOP, binding_of, model_of, value_of
from torchlint.semantics.values import Grad, Kind, Place


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("net", Kind.MODULE),
        ("opt", Kind.OPTIMIZER),
        ("crit", Kind.MODULE),
        ("loader", Kind.LOADER),
        ("out", Kind.TENSOR),
        ("loss", Kind.TENSOR),
        ("value", Kind.NUMBER),
    ],
)
def test_kinds_of_a_plain_training_loop(name: str, kind: Kind) -> None:
    assert value_of(model_of(TRAINING_LOOP), name).kind is kind


def test_the_loss_carries_a_graph_on_the_accelerator_and_has_no_dimensions() -> None:
    loss = value_of(model_of(TRAINING_LOOP), "loss")
    assert (loss.grad, loss.place, loss.rank) == (Grad.CARRIES, Place.ACCELERATOR, 0)


def test_nothing_carries_a_graph_under_no_grad() -> None:
    model = model_of(TRAINING_LOOP)
    assert value_of(model, "guess").grad is Grad.DETACHED
    assert value_of(model, "hits").dtype == "int"


@pytest.mark.parametrize(
    ("code", "rank"),
    [
        ("x = torch.randn(4, 5, 6)", 3),
        ("x = torch.randn(4, 5, 6)[0]", 2),
        ("x = torch.zeros((2, 3)).unsqueeze(0)", 3),
        ("x = torch.randn(4, 5) @ torch.randn(5)", 1),
        ("x = torch.randn(4, 5).sum(1)", 1),
        ("x = torch.randn(4, 5).sum()", 0),
        ("x = torch.randn(4, 5).view(-1)", 1),
        ("x = torch.stack([torch.randn(3), torch.randn(3)])", 2),
        ("x = torch.arange(5)[None, :]", 2),
        ("x = unknown(3)", None),
        ("x = torch.zeros(3, 4, 5).sum(axis=1)", 2),
        ("x = torch.argmax(torch.zeros(3, 4), axis=1)", 1),
        ("x = torch.zeros(3, 4).mean(axis=0, keepdims=True)", 2),
        ("x = torch.sum(a=torch.zeros(3, 4), axis=0)", 1),
        ("x, places = torch.zeros(3, 4).max(axis=1)", 1),
        ("x = torch.nn.CrossEntropyLoss()(a, b)", 0),
        ("x = torch.nn.CrossEntropyLoss(reduction='sum')(a, b)", 0),
        ("x = torch.nn.CrossEntropyLoss(reduction='none')(a, b)", None),
        ("x = torch.nn.MSELoss(None, False)(a, b)", 0),
        ("x = torch.nn.MSELoss(reduce=False)(a, b)", None),
        ("x = torch.nn.MSELoss(**options)(a, b)", None),
    ],
)
def test_ranks(code: str, rank: int | None) -> None:
    assert value_of(model_of("import torch\n" + code), "x").rank == rank


def test_the_element_of_what_has_no_dimensions_is_a_number() -> None:
    model = model_of("import torch\nloss = torch.rand(3).mean()\nx = loss.data[0]\ny = loss[None]")
    assert value_of(model, "x").kind is Kind.NUMBER
    assert (value_of(model, "y").kind, value_of(model, "y").rank) == (Kind.TENSOR, 1)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("time.time()", Kind.NUMBER),
        ('time.strftime("%H:%M")', Kind.STRING),
        ("time.ctime()", Kind.STRING),
        ("time.localtime()", Kind.UNKNOWN),
        ("math.frexp(3.0)", Kind.UNKNOWN),
    ],
)
def test_what_the_clock_and_the_mathematics_of_the_standard_library_return(made: str, kind: Kind) -> None:
    assert value_of(model_of(f"import math\nimport time\nvalue = {made}\n"), "value").kind is kind


def test_unpacking_a_shape_says_how_many_dimensions_there_are() -> None:
    model = model_of(
        """
        import torch
        def f(x: torch.Tensor):
            b, n, _ = x.shape
            y = x[0]
        """
    )
    assert value_of(model, "y", "f").rank == 2


UNLIKE = """
    import torch
    def step(net, x, both):
        if both:
            return net(x).mean(), torch.ones(2).cuda(), torch.zeros(1).cuda()
        return {short}
    a, b, c = step(torch.nn.Linear(2, 2).cuda(), data, flag)
"""


@pytest.mark.parametrize(
    ("short", "kind"),
    [
        ("net(x).mean(), torch.ones(2).cuda()", Kind.TENSOR),
        ("net(x).mean(), 0.5", Kind.UNKNOWN),
    ],
)
def test_of_returned_tuples_that_differ_in_length_the_parts_are_known_where_all_are_alike(
    short: str, kind: Kind
) -> None:
    model = model_of(UNLIKE.format(short=short))
    assert {value_of(model, name).kind for name in "abc"} == {kind}


@pytest.mark.parametrize(
    ("given_back", "known"),
    [
        ("net, opt = train(net, opt, 3)", [True, True]),
        ("net = train(net, opt)", [True, True]),
        ("opt, net = train(net, opt)", [True, True]),
        ("net, opt = train(3)", [False, False]),
        ("net, opt = train(other, opt)", [False, True]),
    ],
)
def test_a_function_out_of_sight_gives_back_what_goes_by_the_same_name(given_back: str, known: list[bool]) -> None:
    code = f"""
        import torch
        from somewhere import train
        def run(other):
            net = torch.nn.Linear(2, 2)
            opt = torch.optim.SGD(net.parameters(), 0.1)
            {given_back}
    """
    model = model_of(code)
    assert [value_of(model, name, "run").ref is not None for name in ("net", "opt")] == known


def test_an_attribute_that_another_file_sets_is_what_its_use_says() -> None:
    model = model_of(
        """
        import torch
        from project import Base
        class Experiment(Base):
            def evaluate(self, x):
                self.model.eval()
                out = self.model(x)
        """
    )
    assert next(call for call in model.calls if call.method == "model").is_forward
    assert value_of(model, "out", "Experiment.evaluate").carries


def test_an_object_with_methods_that_no_tensor_has_is_no_tensor() -> None:
    model = model_of("""
        import torch
        from somewhere import make

        loss = make()
        loss.reset()
        loss.backward()
        """)
    assert value_of(model, "loss").kind is Kind.UNKNOWN


OUTPUTS = """
    import torch
    from transformers import AutoModelForCausalLM

    network = AutoModelForCausalLM.from_pretrained("gpt2").cuda()
    outputs = network(tokens)
    found = outputs{}
"""


@pytest.mark.parametrize(
    ("attribute", "kind"),
    [(".loss", Kind.TENSOR), (".logits", Kind.TENSOR), (".grad", Kind.TENSOR), ("[0].speed", Kind.UNKNOWN)],
)
def test_an_attribute_that_no_tensor_has_may_be_anything_but_comes_from_the_same_graph(
    attribute: str, kind: Kind
) -> None:
    found = value_of(model_of(OUTPUTS.format(attribute)), "found")
    assert (found.kind, found.place) == (kind, Place.ACCELERATOR)
    assert attribute == ".grad" or found.grad is Grad.CARRIES


def test_code_that_libcst_visitors_cannot_walk() -> None:
    many_terms = "x = " + " + ".join(["torch.ones(1)"] * 1500) + "\n"
    reassigned = "y = torch.ones(1)\n" + "y = torch.exp(y)\n" * 2000
    nested = "z = " + "[" * 80 + "]" * 80 + "\n"
    model = model_of("import torch\n" + many_terms + reassigned + nested)
    assert value_of(model, "x").kind is Kind.TENSOR
    assert value_of(model, "y").kind is Kind.TENSOR


@pytest.mark.parametrize(
    ("name", "kind"), [("loss", Kind.TENSOR), ("box_loss", Kind.TENSOR), ("hits", Kind.UNKNOWN), ("more", Kind.UNKNOWN)]
)
def test_parts_of_a_loss_out_of_sight_that_are_named_for_losses_are_losses(name: str, kind: Kind) -> None:
    model = model_of(
        """
        import torch
        def step(net: torch.nn.Module, criterion, x, y):
            loss, (box_loss, hits), more = criterion(net(x), y)
        """
    )
    assert value_of(model, name, "step").kind is kind


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("name.split('_')", Kind.LIST),
        ("name.split()", Kind.LIST),
        ("name.strip().lower()", Kind.STRING),
        ("name.split(2)", Kind.TUPLE),
        ("name.sum(0)", Kind.TENSOR),
    ],
)
def test_a_part_of_a_batch_with_methods_of_strings_is_a_string(made: str, kind: Kind) -> None:
    code = """
        from torch.utils.data import DataLoader

        for name, image in DataLoader(dataset):
            x = {made}
    """
    assert value_of(model_of(dedent(code).format(made=made)), "x").kind is kind


@pytest.mark.parametrize(
    ("use", "kind"),
    [
        ("range(steps, 0, -1)", Kind.NUMBER),
        ("reversed(range(steps))", Kind.NUMBER),
        ("range(steps.max())", Kind.UNKNOWN),
        ("range(len(steps))", Kind.UNKNOWN),
    ],
)
def test_what_a_range_is_counted_by_is_a_number(use: str, kind: Kind) -> None:
    model = model_of(f"import torch\ndef sample(steps):\n    for i in {use}:\n        print(i)\n")
    assert value_of(model, "steps", "sample").kind is kind


def test_a_tensor_that_counts_a_range_stays_a_tensor() -> None:
    model = model_of("import torch\nlongest = torch.tensor(3)\nfor i in range(longest):\n    print(i)\n")
    assert value_of(model, "longest").kind is Kind.TENSOR


def test_a_tensor_that_is_changed_in_place_stays_where_it_is() -> None:
    model = model_of(
        """
        import torch
        def add(parts):
            total, there = torch.zeros(4), torch.zeros(4).cuda()
            for part in parts:
                total += part
                there += part
            return total, there
        """
    )
    places = [model.value(binding_of(model, name, "add").reads[-1]).place for name in ("total", "there")]
    assert places == [Place.HOST, Place.ACCELERATOR]


def test_a_tensor_that_is_changed_in_place_keeps_its_type_and_shape() -> None:
    model = model_of(
        """
        import torch
        def add(n: int, losses):
            total, counts = torch.zeros(4), torch.zeros(4, 2, dtype=torch.long)
            for loss in losses:
                total += loss
                counts += loss
            return total, counts
        """
    )
    for name, dtype, rank in (("total", "float", 1), ("counts", "int", 2)):
        value = model.value(binding_of(model, name, "add").reads[-1])
        assert (value.dtype, value.rank) == (dtype, rank)


@pytest.mark.parametrize(
    ("made", "kind", "place"),
    [
        ("weights.cuda().sum()", Kind.TENSOR, Place.ACCELERATOR),
        ("weights.to(device).mean(0)", Kind.TENSOR, Place.ACCELERATOR),
        ("weights.sum()", Kind.UNKNOWN, Place.UNKNOWN),  # an array, a list of a class of its own
        ("weights.cpu().sum()", Kind.UNKNOWN, Place.UNKNOWN),
        ("weights.to(device).transpose(0, 1)", Kind.UNKNOWN, Place.UNKNOWN),  # boxes and graphs have that, too
        ("weights.to(device).children()", Kind.UNKNOWN, Place.UNKNOWN),
    ],
)
def test_what_is_summed_on_a_device_is_a_tensor(made: str, kind: Kind, place: Place) -> None:
    value = value_of(model_of(f"import torch\ndef f(weights, device):\n    total = {made}\n"), "total", "f")
    assert (value.kind, value.place) == (kind, place)


@pytest.mark.parametrize(
    ("use", "kind"),
    [
        ("y = x.size(0)", Kind.TENSOR),
        ("y = x.size()[-1]", Kind.TENSOR),
        ("n, *rest = x.size()", Kind.TENSOR),
        ("y = x.dim()", Kind.TENSOR),
        ("y = x.new_zeros(3)", Kind.TENSOR),
        ("y = x.size()", Kind.UNKNOWN),
        ("y = x.size('train')", Kind.UNKNOWN),
        ("y = x.size(0), x.get_group()", Kind.UNKNOWN),
        ("y = x.shape[0]", Kind.UNKNOWN),
    ],
)
def test_a_parameter_that_is_asked_for_its_dimensions_is_a_tensor(use: str, kind: Kind) -> None:
    code = f"import torch\n\ndef f(x):\n    {use}\n    z = x\n"
    assert value_of(model_of(code), "z", "f").kind is kind


@pytest.mark.parametrize(
    ("owner", "kind"),
    [
        ("torch.optim.SGD(net.parameters(), lr=0.1)", Kind.TENSOR),
        ("Own(net.parameters())", Kind.TENSOR),
        ("unknown()", Kind.UNKNOWN),
    ],
)
def test_the_groups_of_an_optimizer_hold_parameters(owner: str, kind: Kind) -> None:
    code = f"""
        import torch

        class Own(torch.optim.Optimizer):
            def step(self):
                for group in self.param_groups:
                    for own in group["params"]:
                        own.add_(own.grad, alpha=-group["lr"])

        net = torch.nn.Linear(2, 1)
        held = {owner}
        for group in held.param_groups:
            for each in group["params"]:
                print(each)
        first = held.param_groups[0]["params"][0]
    """
    model = model_of(dedent(code))
    assert value_of(model, "own", "Own.step").ref == "torch.nn.Parameter"
    assert value_of(model, "each").kind is value_of(model, "first").kind is kind
