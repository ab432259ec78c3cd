"""What tells that a value is a network, and that a method runs it."""

from __future__ import annotations

import pytest

from tests.semantics.programs import binding_of, call_on, function_of, model_of, value_of
from torchlint.semantics.values import Grad, Kind, Place


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        ("torch.jit.load(path)", Kind.MODULE),
        ("PeftModel.from_pretrained(net, path).to(device)", Kind.MODULE),
        ("torch.jit.load(path).model.to(device)", Kind.MODULE),
        ("torch.nn.Embedding.from_pretrained(net)", Kind.MODULE),
        ("torch.utils.data.DataLoader.from_pretrained(net)", Kind.UNKNOWN),
        ("torch.nn.utils.spectral_norm(torch.nn.Linear(3, 3))", Kind.MODULE),
        ("torch.nn.utils.weight_norm(net, dim=None)", Kind.MODULE),
        ("torch_geometric.nn.conv.GCNConv(3, 3)", Kind.MODULE),
        ("joblib.load(path)", Kind.UNKNOWN),
        ("joblib.load(path).model", Kind.UNKNOWN),
        ("torch.jit.load(path).classes", Kind.UNKNOWN),
    ],
)
def test_networks_that_are_loaded(made: str, kind: Kind) -> None:
    head = "import torch\nimport torch_geometric\nimport joblib\nfrom peft import PeftModel\n\n"
    model = model_of(f"{head}def load(net, path, device):\n    found = {made}\n    return found\n")
    assert value_of(model, "found", "load").kind is kind


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


@pytest.mark.parametrize(("given", "runs"), [("", False), ("x", True)])
def test_what_is_asked_of_a_network_without_data_is_a_part_of_it(given: str, runs: bool) -> None:
    model = model_of(f"import torch\ndef show(net, x):\n    net.eval()\n    return net.get_input_embeddings({given})\n")
    (call,) = (call for call in model.calls if call.method == "get_input_embeddings")
    assert call.is_forward is runs


@pytest.mark.parametrize(
    ("use", "kind"),
    [
        ("trainer.model.eval()", Kind.MODULE),
        ("torch.optim.SGD(trainer.model.parameters(), lr=0.1)", Kind.MODULE),
        ('trainer.model.eval("rate > 0")', Kind.UNKNOWN),
        ("trainer.model.step()", Kind.UNKNOWN),
        ("trainer.other.eval()", Kind.UNKNOWN),
        ("other.model.eval()", Kind.UNKNOWN),
    ],
)
def test_a_part_of_what_was_handed_in_is_a_network_where_it_is_used_as_one(use: str, kind: Kind) -> None:
    model = model_of(f"import torch\n\ndef run(trainer, other, x):\n    {use}\n    return trainer.model(x)\n")
    call = call_on(model, "trainer.model(x)")
    assert model.value(call.node.func).kind is kind
    assert call.is_forward is (kind is Kind.MODULE)


def test_a_part_of_an_attribute_is_a_network_in_all_methods_of_the_class() -> None:
    model = model_of(
        """
        import torch

        class Tester:
            def __init__(self, trainer):
                self.trainer = trainer

            def prepare(self):
                self.trainer.model.eval()

            def run(self, x):
                return self.trainer.model(x)
        """
    )
    assert call_on(model, "self.trainer.model(x)").is_forward


@pytest.mark.parametrize(
    ("buffer", "kind"),
    [("torch.linspace(0, 1, n)", Kind.TENSOR), ("schedule(n)", Kind.TENSOR), ("None", Kind.UNKNOWN)],
)
def test_a_buffer_is_a_tensor_that_takes_no_gradients_and_is_where_its_module_is(buffer: str, kind: Kind) -> None:
    model = model_of(
        f"""
        from schedules import schedule
        import torch
        from torch import nn

        class Noise(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.register_buffer("steps", {buffer})

            def forward(self, x):
                steps = self.steps
                return x * steps
        """
    )
    value = value_of(model, "steps", "Noise.forward")
    assert value.kind is kind
    assert value.place is Place.UNKNOWN
    assert (value.grad is Grad.DETACHED) is (kind is Kind.TENSOR)


@pytest.mark.parametrize(("wanted", "grad"), [("True", Grad.CARRIES), ("False", Grad.DETACHED)])
def test_a_buffer_that_is_made_to_take_gradients_takes_them(wanted: str, grad: Grad) -> None:
    model = model_of(
        f"""
        import torch
        from torch import nn

        class Task(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.register_buffer("theta", torch.zeros(2, n, requires_grad={wanted}))

            def forward(self):
                theta = self.theta
                return theta.sum()
        """
    )
    assert value_of(model, "theta", "Task.forward").grad is grad


@pytest.mark.parametrize("method", ["from_pretrained", "load_from_checkpoint"])
def test_a_class_of_the_file_loads_an_object_of_itself(method: str) -> None:
    model = model_of(
        f"""
        import torch
        from transformers import BertPreTrainedModel

        class Tagger(BertPreTrainedModel):
            def forward(self, x):
                return self.bert(x)

        def load(path, x):
            net = Tagger.{method}(path)
            return net(x)
        """
    )
    assert value_of(model, "net", "load").ref == "Tagger"
    assert call_on(model, "net(x)").target is function_of(model, "Tagger.forward")


@pytest.mark.parametrize(
    ("options", "grad"),
    [
        ("table", Grad.UNKNOWN),
        ("table, True", Grad.UNKNOWN),
        ("table, freeze=False", Grad.CARRIES),
        ("table, freeze=frozen", Grad.UNKNOWN),
        ("table, **options", Grad.UNKNOWN),
    ],
)
def test_a_loaded_embedding_takes_gradients_where_it_is_told_to(options: str, grad: Grad) -> None:
    model = model_of(
        f"""
        import torch
        from torch import nn

        def embed(table, frozen, options, words):
            embedding = nn.Embedding.from_pretrained({options})
            found = embedding(words)
            return found
        """
    )
    assert value_of(model, "found", "embed").grad is grad


@pytest.mark.parametrize(
    ("method", "callee"),
    [("zero_grad", "torch.nn.Module.zero_grad"), ("forward", "torch.nn.Module.forward"), ("adapt", None)],
)
def test_a_method_is_that_of_torch_only_where_every_module_has_it(method: str, callee: str | None) -> None:
    model = model_of(f"import torch\n\nnet = torch.nn.Linear(3, 3)\nnet.{method}()\n")
    assert call_on(model, f"net.{method}()").callee == callee


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("local_model", Kind.MODULE),
        ("target_net", Kind.MODULE),
        ("get_local_model", Kind.UNKNOWN),
        ("_build_net", Kind.UNKNOWN),
        ("load_network", Kind.UNKNOWN),
    ],
)
def test_what_is_named_for_making_a_network_is_none(name: str, kind: Kind) -> None:
    model = model_of(f"import torch\n\nclass Saver(Base):\n    def save(self, x):\n        return self.{name}(x)\n")
    assert model.value(call_on(model, f"self.{name}(x)").node.func).kind is kind
