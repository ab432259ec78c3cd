"""MEM05: networks that are run by a part, by a method in another file, by a helper, or again and again."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

CLUSTERING = """
    import torch

    def cluster(model: torch.nn.Module, batches, optimizer, fit):
        model.train()
        features = []
        for x in batches:
            features.append(model.{part})
        centers = fit(torch.cat(features).numpy())
        for x in batches:
            optimizer.zero_grad()
            loss = (model(x) - centers).pow(2).mean()
            loss.backward()
            optimizer.step()
    """


@pytest.mark.parametrize(
    ("part", "count"),
    [("encoder(x).detach().cpu()", 1), ("encoder(x).data.cpu()", 1), ("state_dict()['mean'].detach()", 0)],
)
def test_a_part_of_a_network_out_of_sight_whose_result_is_detached(part: str, count: int) -> None:
    found = findings(CLUSTERING.format(part=part), "MEM05", "MEM09")
    assert [finding.line for finding in found] == [7] * count


SAMPLING = """
    import numpy as np
    import torch

    model = torch.nn.Linear(2, 2)
    model.load_state_dict(torch.load("flow.pt", weights_only=True))

    def histogram(model, rounds):
        points = np.hstack([{drawn} for {each} in range(rounds)])
        return np.histogram2d(points[0], points[1])

    def main():
        histogram(model, 100)
    """


@pytest.mark.parametrize(
    ("drawn", "each", "count"),
    [
        ("model(torch.randn(1000, 2)).data.numpy()", "_", 1),
        ("model(torch.full((1, 2), float(part))).data.numpy()", "part", 0),
        ("(torch.randn(1000, 2) @ model.weight).data.numpy()", "_", 0),
    ],
)
def test_passes_that_a_comprehension_repeats(drawn: str, each: str, count: int) -> None:
    assert len(findings(SAMPLING.format(drawn=drawn, each=each), "MEM05", "MEM09")) == count


EXTRACTOR = """
    import torch
    from torch import nn

    class Stages(nn.Module):
        def __init__(self, names):
            super().__init__()
            self.names = names
            for name in names:
                self.add_module(name, nn.Conv2d(3, 3, 3))

        def features(self, x):
            {off}
            for name in self.names:
                x = self._modules[name](x)
            return x

    def features_of(net, x):
        net.eval()
        {off}
        return net(x).cpu()
    """
METHOD = """
    from extractor import Stages

    def extract(loader, write):
        net = Stages(["first", "second"])
        net.load_state_dict(torch.load("net.pt", weights_only=True))
        net.eval()
        for x, name in loader:
            write(name, net.features(x.cuda()).data.cpu().numpy())
    """
HELPER = """
    from extractor import features_of

    def extract(net, batches):
        net.eval()
        found = {}
        for x, names in batches:
            for name, feature in zip(names, features_of(net, x)):
                found[name] = feature
        return found
    """


@pytest.mark.parametrize(("off", "count"), [("pass", 1), ("torch.set_grad_enabled(False)", 0)])
@pytest.mark.parametrize("script", [METHOD, HELPER], ids=["a method that runs what `_modules` holds", "a helper"])
def test_what_another_file_runs(tmp_path: Path, script: str, off: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "extractor.py").write_text(dedent(EXTRACTOR).format(off=off))
    (tmp_path / "main.py").write_text("import torch\n" + dedent(script))
    source = Source.read(tmp_path / "main.py")
    found = lint(source, Settings.selecting("MEM05"), strict=True, project=Project())
    assert len(found) == count


STAGES = """
    import torch
    from torch import nn

    class Stages(nn.Module):
        def __init__(self, valid_stages):
            super().__init__()
            self.valid_stages = valid_stages

        def features(self, x):
            for name in self.valid_stages:
                x = {layer}(x)
            return x

    def rate(model, valid_sets):
        model.eval()
        return [model.features(x) for x in valid_sets]

    def fit(model, x):
        model(x).sum().backward()
    """


@pytest.mark.parametrize("layer", ["self._modules[name]", "getattr(self, name)"])
def test_layers_whose_list_has_a_name_as_data_has(layer: str) -> None:
    lines = [finding.line for finding in findings(STAGES.format(layer=layer), "MEM05", "MEM09")]
    assert 11 not in lines


BRANCHES = """
    import torch
    from torch import nn

    class Branches(nn.Sequential):
        def __init__(self, function, *branches):
            super().__init__(*branches)
            self.function = function

        def outputs(self, x):
            found = []
            for module in self._modules.values():
                found.append(module(x))
            return found if found else x

    class Reduced(Branches):
        def forward(self, x):
            return self.function(self.outputs(x))

    class Mapped(Branches):
        def forward(self, x):
            return list(map(self.function, self.outputs(x)))
    """


def test_a_method_of_a_module_that_derived_classes_call() -> None:
    assert findings(BRANCHES, "MEM05", "MEM09") == []


DECODED = """
    import torch
    from torch import nn
    import torch.nn.functional as F

    class Forced:
        def __init__(self, targets):
            self.targets = targets

        def generate(self, decoder, state):
            found = []
            for target in self.targets:
                scores, state = decoder(target, state)
                found.append(scores)
            return torch.cat(found)

    class Translator(nn.Module):
        def __init__(self, encoder, decoder):
            super().__init__()
            self.encoder, self.decoder = encoder, decoder

        def forward(self, source, helper):
            {around}
            return helper.{called}(self.decoder, self.encoder(source))

    model = Translator(make_encoder(), make_decoder())
    helper = Forced(make_targets())
    for source in range(3):
        print(F.cross_entropy(helper.generate(model.decoder, model.encoder(source)), helper.targets))
    """


@pytest.mark.parametrize(
    ("around", "called", "is_left_alone"),
    [("", "generate", True), ("", "decode", False), ("torch.set_grad_enabled(False)", "generate", False)],
)
def test_a_method_that_the_forward_pass_of_a_module_runs_is_a_part_of_training(
    around: str, called: str, is_left_alone: bool
) -> None:
    code = dedent(DECODED).format(around=around or "pass", called=called)
    assert (not findings(code, "MEM05", "MEM09")) is is_left_alone


EPISODE = """
    import torch

    def run(model: torch.nn.Module, optimizer, states, reward):
        model.train()
        while True:
            values, scores = [], []
            for state in states:
                score, value = model(state)
                for kept, found in zip((values, scores), (value, score)):
                    kept.append(found{end})
                print(score.argmax().item())
            loss = (torch.cat(values) - reward).pow(2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """


@pytest.mark.parametrize(("end", "count"), [("", 0), (".detach()", 1)])
def test_what_a_loop_over_lists_collects_is_in_those_lists(end: str, count: int) -> None:
    code = dedent(EPISODE).format(end=end)
    assert len(findings(code, "MEM05", "MEM09")) == count


@pytest.mark.parametrize(("name", "count"), [("__initv2__", 0), ("_set_up", 1)])
def test_a_part_of_a_constructor_is_no_evaluation(name: str, count: int) -> None:
    code = f"""
        import torch
        from torch import nn

        class Scanner:
            def __init__(self):
                self.{name}()

            def {name}(self):
                self.net = nn.Linear(2, 2)
                self.net.eval()
                for _ in range(3):
                    print(self.net(torch.ones(2)).argmax().item())
        """
    assert len(findings(code, "MEM05", "MEM09")) == count
