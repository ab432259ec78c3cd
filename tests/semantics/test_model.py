"""What the model believes about small programs: values, graphs, effects, roles, guards and flow."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import libcst as cst
import pytest

from torchlint.semantics.entities import Binding, Role
from torchlint.semantics.model import Model
from torchlint.semantics.values import Grad, Kind, Place, Value
from torchlint.source import Source


def model_of(code: str) -> Model:
    source = Source.from_text(dedent(code).lstrip("\n"), Path("module.py"))
    return Model.build(source, cst.parse_module(source.text))


def binding_of(model: Model, name: str, function: str = "") -> Binding:
    scope = next(f.scope for f in model.functions if f.qualname == function)
    return scope.bindings[name]


def last_value(model: Model, name: str, function: str = "") -> Value:
    """Value of a variable after its last write."""
    return model.value(binding_of(model, name, function).writes[-1].target)


LOOP = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader as DL

    net = nn.Linear(3, 1).to("cuda")
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    crit = nn.MSELoss()
    loader = DL(dataset, batch_size=4)
    for epoch in range(3):
        for i, (x, y) in enumerate(loader):
            x, y = x.to("cuda"), y.to("cuda")
            out = net(x)
            loss = crit(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            value = loss.item()
        with torch.no_grad():
            for x, y in loader:
                guess = net(x.cuda())
                hits = (guess.argmax(1) == y.cuda()).sum()
"""


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
    assert last_value(model_of(LOOP), name).kind is kind


def test_the_loss_carries_a_graph_on_the_accelerator_and_has_no_dimensions() -> None:
    loss = last_value(model_of(LOOP), "loss")
    assert (loss.grad, loss.place, loss.rank) == (Grad.CARRIES, Place.ACCELERATOR, 0)


def test_nothing_carries_a_graph_under_no_grad() -> None:
    model = model_of(LOOP)
    assert last_value(model, "guess").grad is Grad.DETACHED
    assert last_value(model, "hits").dtype == "int"


def test_loops_have_roles() -> None:
    assert [loop.role for loop in model_of(LOOP).loops] == [Role.EPOCHS, Role.STEPS, Role.EVALUATION]


def test_a_loop_over_a_helper_that_runs_the_whole_epoch_is_an_epoch_loop() -> None:
    model = model_of(
        """
        import torch
        def train(net, loader, opt):
            for x in loader:
                loss = net(x).sum()
                loss.backward()
                opt.step()
        for epoch in range(9):
            train(net, loader, opt)
        """
    )
    roles = {loop.function.qualname: loop.role for loop in model.loops}
    assert roles == {"train": Role.STEPS, "": Role.EPOCHS}


@pytest.mark.parametrize("run", ["out = net(x)", "out = [net(x) for net in nets]"], ids=["a loop", "a comprehension"])
def test_a_loop_over_the_models_of_an_ensemble_is_part_of_an_evaluation(run: str) -> None:
    inner = f"for k, net in enumerate(nets):\n                    {run}" if "for" not in run else run
    model = model_of(
        f"""
        import torch
        def evaluate(nets, batches, device):
            for x, y in batches:
                x = x.to(device)
                {inner}
        """
    )
    assert [loop.role for loop in model.loops] == [Role.EVALUATION, Role.MODULES]


NETWORK = """
import torch

class Net(torch.nn.Module):
    def {name}(self, batches):
        {first}
        for x, y in batches:
            out = self.layers(x)
"""


@pytest.mark.parametrize(
    ("name", "first", "role"),
    [
        ("evaluate", "self.layers.eval()", Role.EVALUATION),
        ("fit", "self.train()", Role.EVALUATION),
        ("multiscale", "self.layers.eval()", Role.PLAIN),
        ("forward", "pass", Role.PLAIN),
    ],
)
def test_a_method_of_a_network_that_switches_its_mode_goes_over_data(name: str, first: str, role: Role) -> None:
    code = NETWORK.format(name=name, first=first).replace(
        "class Net(torch.nn.Module):",
        "class Net(torch.nn.Module):\n    def __init__(self):\n        "
        "super().__init__()\n        self.layers = torch.nn.Linear(2, 2)\n",
    )
    assert [loop.role for loop in model_of(code).loops] == [role]


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("torch.jit.load(path)", Kind.MODULE),
        ("PeftModel.from_pretrained(net, path).to(device)", Kind.MODULE),
        ("torch.jit.load(path).model.to(device)", Kind.MODULE),
        ("joblib.load(path)", Kind.UNKNOWN),
        ("joblib.load(path).model", Kind.UNKNOWN),
        ("torch.jit.load(path).classes", Kind.UNKNOWN),
    ],
)
def test_networks_that_are_loaded(made: str, kind: Kind) -> None:
    head = "import torch\nimport joblib\nfrom peft import PeftModel\n\n"
    model = model_of(f"{head}def load(net, path, device):\n    found = {made}\n    return found\n")
    assert last_value(model, "found", "load").kind is kind


@pytest.mark.parametrize(
    ("use", "kind"),
    [
        ("discriminator.feature_extraction(x)", Kind.MODULE),
        ("discriminator.forward_lip(x)", Kind.MODULE),
        ("discriminator.predict(x)", Kind.UNKNOWN),
        ("judge.extract_features(x)", Kind.UNKNOWN),
        ("judge(x, judge.zero_grad())", Kind.MODULE),
        ("judge.zero_grad()", Kind.UNKNOWN),
        ("judge.score(x, judge.zero_grad())", Kind.UNKNOWN),
    ],
)
def test_a_parameter_that_has_what_only_networks_have(use: str, kind: Kind) -> None:
    model = model_of(f"import torch\n\ndef run(discriminator, judge, x):\n    return {use}\n")
    name = "judge" if "judge" in use else "discriminator"
    assert model.value(binding_of(model, name, "run").reads[0]).kind is kind


@pytest.mark.parametrize(
    ("method", "runs"),
    [
        *((name, True) for name in ("features", "extract_features", "get_image_features", "forward_features")),
        *((name, True) for name in ("calculate_loss", "batchNLLLoss", "loss", "predict_proba", "encode", "log_prob")),
        *((name, False) for name in ("num_features", "set_features", "update_loss", "plot_loss", "save", "adapt")),
    ],
)
def test_the_name_of_a_method_of_a_network_tells_whether_it_runs_it(method: str, runs: bool) -> None:
    model = model_of(f"import torch\ndef show(net, x):\n    net.eval()\n    return net.{method}(x)\n")
    (call,) = (call for call in model.calls if call.method == method)
    assert call.is_forward is runs


def test_a_step_spread_over_methods_is_one_step() -> None:
    model = model_of(
        """
        import torch
        class Trainer:
            def __init__(self, net):
                self.net = net
                self.optimizer = torch.optim.Adam(net.parameters())
            def reset(self):
                self.optimizer.zero_grad()
            def step(self, x):
                self.reset()
                loss = self.net(x).mean()
                loss.backward()
                self.optimizer.step()
                return loss
            def fit(self, loader):
                for x in loader:
                    self.step(x)
        """
    )
    loop = model.loops[0]
    effects = model.effects(loop)
    assert loop.role is Role.STEPS
    assert len(effects.backward) == len(effects.zero_grads) == len(effects.optimizer_steps) == 1


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("import torch.nn as nn\nthing = nn.DataParallel", "torch.nn.DataParallel"),
        ("from torch.nn.parallel import DataParallel as DP\nthing = DP", "torch.nn.DataParallel"),
        ("import torch as t\nthing = t.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("from torch.utils.data import *\nthing = DataLoader", "torch.utils.data.DataLoader"),
        ("try:\n    from torch import vmap\nexcept ImportError:\n    vmap = None\nthing = vmap", "torch.vmap"),
        ("from here import DataLoader\nthing = DataLoader", "here.DataLoader"),
        ("try:\n    from a import f\nexcept ImportError:\n    from b import f\nthing = f", None),
    ],
)
def test_qualified_names(spelling: str, name: str | None) -> None:
    model = model_of(spelling)
    value = binding_of(model, "thing").writes[0].value
    assert model.qualified(value) == name


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
    ],
)
def test_ranks(code: str, rank: int | None) -> None:
    assert last_value(model_of("import torch\n" + code), "x").rank == rank


def test_the_element_of_what_has_no_dimensions_is_a_number() -> None:
    model = model_of("import torch\nloss = torch.rand(3).mean()\nx = loss.data[0]\ny = loss[None]")
    assert last_value(model, "x").kind is Kind.NUMBER
    assert (last_value(model, "y").kind, last_value(model, "y").rank) == (Kind.TENSOR, 1)


def test_unpacking_a_shape_says_how_many_dimensions_there_are() -> None:
    model = model_of(
        """
        import torch
        def f(x: torch.Tensor):
            b, n, _ = x.shape
            y = x[0]
        """
    )
    assert last_value(model, "y", "f").rank == 2


def test_arguments_behind_a_dict_in_sight_are_found() -> None:
    model = model_of(
        """
        from torch.utils.data import DataLoader
        kwargs = {"num_workers": 4} if cuda else {}
        kwargs.update(pin_memory=True)
        kwargs["batch_size"] = 8
        loader = DataLoader(ds, **kwargs)
        """
    )
    call = model.calls_to("torch.utils.data.DataLoader")[0]
    states = {name: call.argument(name).state.value for name in ("num_workers", "pin_memory", "batch_size", "sampler")}
    assert states == {"num_workers": "given", "pin_memory": "given", "batch_size": "given", "sampler": "absent"}


@pytest.mark.parametrize(
    "prelude",
    [
        "def make(kwargs):",
        "def make(cfg):\n    kwargs = vars(cfg)",
        "def make():\n    kwargs = {'a': 1}\n    fill(kwargs)",
        "def make(k):\n    kwargs = {}\n    kwargs[k] = 1",
    ],
    ids=["parameter", "foreign call", "handed to a function that may write to it", "unknown key"],
)
def test_arguments_behind_a_dict_out_of_sight_are_hidden(prelude: str) -> None:
    model = model_of(f"from torch.utils.data import DataLoader\n{prelude}\n    return DataLoader(ds, **kwargs)\n")
    assert model.calls_to("torch.utils.data.DataLoader")[0].argument("pin_memory").hidden


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
    assert last_value(model, "out", "Experiment.evaluate").carries


def test_gradients_are_off_where_every_caller_turned_them_off() -> None:
    model = model_of(
        """
        import torch
        def score(net, x):
            y = net(x)
            return y
        with torch.no_grad():
            score(net, x)
        """
    )
    assert last_value(model, "y", "score").grad is Grad.DETACHED
    assert model.grad_enabled(binding_of(model, "y", "score").writes[0].target) is False


@pytest.mark.parametrize(
    ("decorator", "enabled"),
    [("@torch.no_grad()", False), ("@functools.lru_cache", True), ("@smart_inference_mode()", None)],
)
def test_a_decorator_of_the_users_own_may_switch_gradients(decorator: str, enabled: bool | None) -> None:
    model = model_of(f"import functools, torch\n{decorator}\ndef score(net, x):\n    y = net(x)\n    return y\n")
    assert model.grad_enabled(binding_of(model, "y", "score").writes[0].target) is enabled


def test_gradients_are_on_where_one_caller_leaves_them_on() -> None:
    model = model_of(
        """
        import torch
        def score(net, x):
            y = net(x)
            return y
        with torch.no_grad():
            score(net, x)
        score(net, x)
        """
    )
    assert model.grad_enabled(binding_of(model, "y", "score").writes[0].target) is True


@pytest.mark.parametrize(
    ("condition", "gated"),
    [
        ("if step % 10 == 0:", True),
        ("if args.log_interval and ready:", True),
        ("if rank == 0:", False),
        ("if x is not None:", False),
        ("if training:", False),
    ],
)
def test_log_gates(condition: str, gated: bool) -> None:
    model = model_of(f"import torch\nfor step in range(9):\n    {condition}\n        print(loss)\n")
    call = next(call for call in model.calls if call.callee == "builtins.print")
    assert model.is_log_gated(call.node) is gated


def test_a_skip_at_the_top_of_the_loop_gates_what_follows() -> None:
    model = model_of("import torch\nfor i in range(9):\n    if i % 5:\n        continue\n    print(loss)\n")
    assert model.is_log_gated(next(c.node for c in model.calls if c.callee == "builtins.print"))


@pytest.mark.parametrize(
    ("use", "reaches"),
    [
        ("sum(losses).backward()", True),
        ("total = torch.stack(losses).mean()\ntotal.backward()", True),
        ("scaler.scale(losses[-1]).backward()", True),
        ("torch.autograd.grad(losses[0], w)", True),
        ("print(sum(losses) / len(losses))", False),
        ("history = [l.item() for l in losses]", False),
        ("plot(losses)", None),
    ],
)
def test_what_becomes_of_a_list_of_losses(use: str, reaches: bool | None) -> None:
    model = model_of(f"import torch\nlosses = []\nfor x in data:\n    losses.append(net(x).sum())\n{use}\n")
    assert model.reaches_backward(binding_of(model, "losses")) is reaches


@pytest.mark.parametrize(
    "use",
    ["", "sum(kept)", "f = lambda: kept[-1]", "for old in kept:\n        print(old)"],
    ids=["nothing", "a sum", "a lambda", "a loop"],
)
def test_what_a_loop_puts_into_a_list_is_in_it_in_later_iterations(use: str) -> None:
    model = model_of(f"import torch\nkept = []\nfor x in data:\n    {use or 'pass'}\n    kept.append(torch.ones(2))\n")
    added_to = next(read for read in binding_of(model, "kept").reads if isinstance(model.parent(read), cst.Attribute))
    assert model.value(added_to).element == Value(Kind.TENSOR, Grad.DETACHED, Place.HOST, rank=1, dtype="float")


def test_what_is_read_from_a_list_that_its_loop_fills() -> None:
    model = model_of(
        "import torch\nkept = []\nfor x in data:\n    y = [k for k in kept]\n    kept.append(torch.ones(2))\n"
    )
    element = last_value(model, "y").element
    assert element is not None
    assert element.kind is Kind.TENSOR


def test_a_list_returned_to_a_caller_that_calls_backward_reaches_it() -> None:
    model = model_of(
        """
        import torch
        def collect(data):
            losses = []
            for x in data:
                losses.append(net(x).sum())
            return losses
        sum(collect(data)).backward()
        """
    )
    assert model.reaches_backward(binding_of(model, "losses", "collect")) is True


def test_code_that_libcst_visitors_cannot_walk() -> None:
    many_terms = "x = " + " + ".join(["torch.ones(1)"] * 1500) + "\n"
    reassigned = "y = torch.ones(1)\n" + "y = torch.exp(y)\n" * 2000
    nested = "z = " + "[" * 80 + "]" * 80 + "\n"
    model = model_of("import torch\n" + many_terms + reassigned + nested)
    assert last_value(model, "x").kind is Kind.TENSOR
    assert last_value(model, "y").kind is Kind.TENSOR


@pytest.mark.parametrize(
    ("body", "graph"),
    [
        ("loss = f(x)\n    loss.backward()", Grad.CARRIES),
        ("loss = f(x)\n    loss.backward()\n    loss = g(loss)", Grad.UNKNOWN),
        ("loss.backward()\n    loss = g(x)", Grad.CARRIES),
        ("if x:\n        loss = f(x)\n    loss.backward()\n    loss = g(loss)", Grad.CARRIES),
    ],
    ids=["before its pass", "behind its pass", "for the next iteration", "for the next iteration, perhaps"],
)
def test_a_backward_pass_proves_nothing_of_what_its_variable_holds_later(body: str, graph: Grad) -> None:
    model = model_of(
        f"import torch\nfrom somewhere import f, g, loss, data\n\ndef run(loss):\n  for x in data:\n    {body}\n"
    )
    assert last_value(model, "loss", "run").grad is graph


def test_an_object_with_methods_that_no_tensor_has_is_no_tensor() -> None:
    model = model_of("""
        import torch
        from somewhere import make

        loss = make()
        loss.reset()
        loss.backward()
        """)
    assert last_value(model, "loss").kind is Kind.UNKNOWN


# -- attributes of what a network returns

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
    found = last_value(model_of(OUTPUTS.format(attribute)), "found")
    assert (found.kind, found.place) == (kind, Place.ACCELERATOR)
    assert attribute == ".grad" or found.grad is Grad.CARRIES


@pytest.mark.parametrize(
    ("item", "grad"),
    [
        ("f(x)", Grad.UNKNOWN),
        ("w * x", Grad.CARRIES),
        ("x.item()", Grad.DETACHED),
        ("torch.ones(3)", Grad.DETACHED),
    ],
)
def test_a_tensor_that_is_filled_has_the_graph_of_what_goes_in(item: str, grad: Grad) -> None:
    body = f"rows = torch.zeros(3, 3)\n    w = torch.ones(3, requires_grad=True)\n    rows[0] = {item}"
    model = model_of(f"import torch\nfrom m import f\n\ndef fill(x):\n    {body}\n    out = rows\n")
    assert last_value(model, "out", "fill").grad is grad


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        pytest.param('if fast:\n    parts["b"] = [1]', Kind.TENSOR, id="another key in a branch"),
        pytest.param('if fast:\n    parts["a"] = [1]', Kind.UNKNOWN, id="this key in a branch"),
        pytest.param('parts[name] = [1]\nparts["a"] = x', Kind.TENSOR, id="any key, and this one later"),
        pytest.param("parts[name] = [1]", Kind.UNKNOWN, id="any key"),
        pytest.param("parts[name] = x", Kind.TENSOR, id="any key that holds the same"),
        pytest.param('if fast:\n    parts["b"] = 1\nparts.update(b=[1])', Kind.TENSOR, id="an update of another key"),
        pytest.param('if fast:\n    parts["b"] = 1\nparts.update(more)', Kind.UNKNOWN, id="an update with anything"),
    ],
)
def test_what_a_dict_holds_under_one_of_its_keys(change: str, kind: Kind) -> None:
    code = f'import torch\nfrom m import fast, more, name\n\nx = torch.ones(3)\nparts = {{"a": x}}\n{change}\n'
    assert last_value(model_of(f'{code}out = parts["a"]\n'), "out").kind is kind
