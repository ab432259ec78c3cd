"""MEM05 is silent for functions that their own file only tries, and that another file trains through."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.rules.mem.recorded_evaluations import SETUP
from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

SAMPLED = """
    import torch

    def sample_logits(embedding, labels, inputs):
        return torch.einsum("ik,jk->ij", [embedding(labels), inputs])

    if __name__ == "__main__":
        print(sample_logits(torch.nn.Embedding(9, 3), torch.arange(4), torch.ones(5, 3)).shape)
    """
ADAPTIVE = """
    import torch
    from sampled import sample_logits

    class Adaptive(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(9, 3)

        def forward(self, labels, hidden):
            {use}
    """


@pytest.mark.parametrize(
    ("use", "count"),
    [
        ("return sample_logits(self.words, labels, hidden).log_softmax(-1)", 0),
        (
            "with torch.set_grad_enabled(hidden.numel() > 9):\n"
            "                return sample_logits(self.words, labels, hidden).log_softmax(-1)",
            0,
        ),
        ("print(sample_logits(self.words, labels, hidden))\n            return self.words(labels)", 1),
    ],
)
def test_a_function_that_its_own_file_only_tries_and_another_trains_through(
    tmp_path: Path, use: str, count: int
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "sampled.py").write_text(dedent(SAMPLED))
    (tmp_path / "adaptive.py").write_text(dedent(ADAPTIVE.format(use=use)))
    source = Source.read(tmp_path / "sampled.py")
    assert len(lint(source, Settings.selecting("MEM05"), strict=True, project=Project())) == count


@pytest.mark.parametrize(("taken", "count"), [("sample_logits", 0), ("torch", 1)])
def test_a_function_that_its_own_file_only_tries_and_another_takes(tmp_path: Path, taken: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "sampled.py").write_text(dedent(SAMPLED))
    (tmp_path / "adaptive.py").write_text(f"from sampled import {taken}\n\nloss_of = [{taken}]\n")
    source = Source.read(tmp_path / "sampled.py")
    assert len(lint(source, Settings.selecting("MEM05"), strict=True, project=Project())) == count


SHOWN = """
import torch

class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x)

if __name__ == "__main__":
    net = Head()
    {more}
    for label in (None, 1):
        loss = net(torch.randn(3, 4)).sum()
        loss.backward()
        answer = net(torch.randn(3, 4))
        assert answer.shape == (3, 2)
"""


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ("pass", 0),
        ("net.load_state_dict(torch.load('a.pt', weights_only=True))", 1),
    ],
)
def test_what_a_file_does_with_its_own_network_when_it_is_run(more: str, count: int) -> None:
    assert len(findings(SHOWN.format(more=more), "MEM05")) == count


@pytest.mark.parametrize(("image", "count"), [("frame.numpy()", 0), ("frame.cuda()", 1)])
def test_an_object_out_of_sight_that_takes_arrays_is_no_network(image: str, count: int) -> None:
    code = f"""
        import torch
        from keypoints import Detector

        model = Detector(top_k=4096)

        def detect(frames):
            for frame in frames:
                image = {image}
                found = model(image)
                print(found.mean().item())
        """
    assert len(findings(code, "MEM05")) == count


@pytest.mark.parametrize(
    ("warm_up", "count"),
    [("blank = torch.ones(1, 3, 8, 8).cuda(); model(blank)", 0), ("score = model(first).mean().item()", 1)],
)
def test_a_pass_that_warms_up_leaves_no_graph(warm_up: str, count: int) -> None:
    code = f"""
        import torch

        def evaluate(model: torch.nn.Module, loader, first):
            model.eval()
            {warm_up}
            with torch.no_grad():
                for x in loader:
                    print(model(x.cuda()).mean().item())
        """
    assert len(findings(code, "MEM05")) == count


@pytest.mark.parametrize(("parts", "count"), [("known_values", 0), ("devices", 0), ("valParts", 1), ("val_parts", 1)])
def test_values_are_no_validation(parts: str, count: int) -> None:
    code = f"""
        import torch
        from torch import nn

        class World(nn.Module):
            def __init__(self, net: nn.Module):
                super().__init__()
                self.net = net

            def passes(self, x, {parts}):
                return torch.cat([self.net(x[i], each) for i, each in enumerate({parts})])
        """
    assert len(findings(code, "MEM05")) == count


UNFINISHED = """
class Recurrent({base}):
    def __init__(self):
        super().__init__()
        self.step, self.score = nn.Linear(4, 4), nn.CrossEntropyLoss()

    def exits(self, states, labels):
        for _ in range(3):
            states = self.step(states)
            loss = self.score(states, labels)
        return labels
"""


@pytest.mark.parametrize(("base", "found"), [("nn.Module", 0), ("object", 1)])
def test_a_pass_of_a_module_of_which_nobody_takes_the_result_is_in_the_making(base: str, found: int) -> None:
    assert len(findings(SETUP + UNFINISHED.format(base=base), "MEM05")) == found


@pytest.mark.parametrize(
    ("more", "count"), [("pass", 0), ("coders.load_state_dict(torch.load('a.pt', weights_only=True))", 1)]
)
def test_a_method_of_a_network_that_its_own_file_only_tries(more: str, count: int) -> None:
    code = f"""
        import torch

        class Coders(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.coders = torch.nn.ModuleDict({{"2": torch.nn.Linear(2, 2), "3": torch.nn.Linear(2, 2)}})
                self.current = 2

            def rate(self, x):
                return self.coders[str(self.current)](x).square().mean()

        def try_coders():
            coders = Coders()
            {more}
            for current in (2, 3):
                coders.current = current
                print(coders.rate(torch.randn(4, 2)).item())
        """
    assert len(findings(code, "MEM05")) == count


@pytest.mark.parametrize(("library", "count"), [("ultralytics", 0), ("detectors", 1)])
def test_an_object_that_switches_autograd_off_by_itself(library: str, count: int) -> None:
    code = f"""
        import torch
        from {library} import YOLO

        class Finder:
            def __init__(self):
                self.detection_model = YOLO("weights.pt")

            def evaluate(self, paths):
                for path in paths:
                    print(self.detection_model(path)[0].boxes.conf.cpu().numpy())
        """
    assert len(findings(code, "MEM05")) == count


SCRIPT = """
    import sys

    import torch
    from torch import nn
    from torchvision.io import read_image

    def test_pictures():
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten())
        {load}
        net.eval()
        for path in sys.argv[1:]:
            print(net(read_image(path)[None].float()).argmax(1).tolist())

    {run}
    """
LOAD = 'net.load_state_dict(torch.load("net.pt", weights_only=True))'
RUN = 'if __name__ == "__main__":\n        test_pictures()'


@pytest.mark.parametrize(
    ("path", "load", "run", "count"),
    [
        ("test_net.py", LOAD, RUN, 1),
        ("test_net.py", LOAD, "", 0),
        ("test/test_net.py", LOAD, RUN, 0),
        ("tests/test_net.py", LOAD, RUN, 0),
        ("test_net.py", "net.train(False)", RUN, 0),
    ],
)
def test_a_script_that_is_named_for_a_test_and_loads_what_was_trained(
    tmp_path: Path, path: str, load: str, run: str, count: int
) -> None:
    file = tmp_path / path
    file.parent.mkdir(exist_ok=True)
    (tmp_path / "pyproject.toml").touch()
    file.write_text(dedent(SCRIPT).format(load=load, run=dedent(run)).lstrip())
    settings = Settings.selecting("MEM05")
    assert len(lint(Source.read(file), settings, strict=True, project=Project())) == count
