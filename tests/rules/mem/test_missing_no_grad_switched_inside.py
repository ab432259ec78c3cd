"""MEM05: functions of other files that run without gradients by themselves, or are the place to switch them off."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.rules.mem.projects import linted
from tests.support import findings


@pytest.mark.parametrize(("uses", "is_fixed"), [("", False), ("    print(net(torch.ones(1, 2)).argmax(1))\n", True)])
def test_what_a_method_of_another_file_is_to_switch_off_is_not_switched_off_twice(
    tmp_path: Path, uses: str, is_fixed: bool
) -> None:
    (tmp_path / "pyproject.toml").touch()
    method = """
    import torch

    class Net(torch.nn.Linear):
        def sample(self, x):
            shown = torch.zeros(4, 2)
            for step in range(4):
                shown[step] = torch.softmax(self(x), 1)[0].argmax()
                x = x + shown[step]
            return shown.argmax(1)
    """
    (tmp_path / "net.py").write_text(dedent(method))
    code = "import torch\nfrom net import Net\n\ndef show(net: Net):\n    net.eval()\n"
    code += "    print(net.sample(torch.ones(1, 2)).tolist())\n" + uses
    (tmp_path / "main.py").write_text(code + "\nshow(Net(2, 2))\n")
    found = linted(tmp_path)
    assert len(found) == 1
    assert (found[0].fix is not None) is is_fixed


AGENT = """
    import torch

    class Agent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.critic = torch.nn.Linear(4, 1)

        @torch.no_grad()
        def estimate(self, rewards, obs):
            return self.value(obs) + rewards

        def value(self, obs):
            return self.critic(obs)

        def training_step(self, batch):
            return (self.value(batch["obs"]) - batch["returns"]).pow(2).mean()
    """
UPDATES = """
    import torch
    from agent import Agent

    def train(agent: Agent, optimizer, data):
        for i in range(9):
            loss = agent.training_step(data)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def main():
        agent: Agent = Agent().cuda()
        optimizer = torch.optim.Adam(agent.parameters())
        obs, rewards = torch.zeros(9, 4).cuda(), torch.zeros(9).cuda()
        for update in range(100):
            with torch.no_grad():
                rewards[0] = agent.value(obs)
            returns = agent.estimate(rewards, obs)
            train(agent, optimizer, {"obs": obs.reshape(-1), "returns": returns.reshape(-1)})
    """


def test_a_method_of_another_file_that_runs_a_helper_without_gradients(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "agent.py").write_text(dedent(AGENT))
    (tmp_path / "main.py").write_text(dedent(UPDATES))
    assert linted(tmp_path) == []


TAGGER = """
    import torch

    class Tagger:
        def __init__(self):
            self.net = torch.nn.Linear(2, 2).cuda()

        def run(self, x, training):
            found = {{}}
            if training:
                self.net.train()
                found["loss"] = self.net(x).mean()
            else:
                self.net.eval()
                {around}
                    y = self.net(x)
                found["best"] = y.argmax(1).cpu()
            return found
    """
TAGGING = """
    import torch
    from tagger import Tagger

    def evaluate(model, batches):
        hits = 0
        for i in range(len(batches)):
            found = model.run(batches[i], training=False)
            hits += found["best"].sum().item()
        return hits

    def main(batches, optimizer):
        model = Tagger()
        for x in batches:
            model.run(x, training=True)["loss"].backward()
            optimizer.step()
        evaluate(model, batches)
    """


@pytest.mark.parametrize(("around", "count"), [("with torch.no_grad():", 0), ("if x.shape[0]:", 1)])
def test_a_method_that_switches_autograd_off_itself_unless_it_trains(tmp_path: Path, around: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "tagger.py").write_text(dedent(TAGGER.format(around=around)))
    (tmp_path / "main.py").write_text(dedent(TAGGING))
    assert len(linted(tmp_path)) == count


CAPTIONER = """
    import torch

    class Captioner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(2, 2)

        def generate(self, x, record):
            self.eval()
            if not record:
                with {without}:
                    return self.{run}(x)
            return self.{run}(x)

        def tokens(self, x):
            return self.net(x)
    """
CAPTIONS = """
    import torch

    def captions(net: torch.nn.Module, x, record=False):
        return net.generate(x, record)
    """
CAPTIONING = """
    import torch
    from captions import captions

    def show(net: torch.nn.Module, batches):
        net.eval()
        for x in batches:
            print(captions(net, x).argmax(1).tolist())
    """


@pytest.mark.parametrize("run", ["net", "tokens"])
@pytest.mark.parametrize(("without", "count"), [("torch.no_grad()", 0), ("torch.autocast('cuda')", 1)])
def test_a_network_that_is_told_whether_to_record_through_a_helper(
    tmp_path: Path, run: str, without: str, count: int
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "captioner.py").write_text(dedent(CAPTIONER.format(run=run, without=without)))
    (tmp_path / "captions.py").write_text(dedent(CAPTIONS))
    assert len(linted(tmp_path, main=CAPTIONING)) == count


CHOSEN = """
import torch

def shown(net, batches, record):
    net.eval()
    for x in batches:
        if record:
            y = net(x)
        else:
            with torch.{without}:
                y = net(x)
        print(y.argmax(1).tolist())
"""


@pytest.mark.parametrize(("without", "count"), [("no_grad()", 0), ("inference_mode()", 0), ("autocast('cuda')", 1)])
def test_a_function_that_chooses_whether_to_record_does_it_on_purpose(without: str, count: int) -> None:
    assert len(findings(CHOSEN.format(without=without), "MEM05")) == count


PADDING = """
    import torch

    def padded(image, mirrors):
        if mirrors:
            layer = torch.nn.ReflectionPad2d(1)
        else:
            layer = torch.nn.{layer}
        return layer(image)
    """
PADDED = """
    import torch
    from padding import padded

    def main(net, images):
        net.eval()
        for image in images:
            image = torch.unsqueeze(image.cuda(), 0)
            image = padded(image, mirrors=True)
            print(net(image).cpu().numpy())
    """


@pytest.mark.parametrize(("layer", "count"), [("ZeroPad2d(1)", 0), ("LazyConv2d(3, 3)", 1)])
def test_a_function_of_another_file_that_only_pads_records_no_graph(tmp_path: Path, layer: str, count: int) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "padding.py").write_text(dedent(PADDING.format(layer=layer)))
    (tmp_path / "main.py").write_text(dedent(PADDED))
    assert len(linted(tmp_path)) == count


DECODERS = """
    import abc
    import torch

    class Decoding(torch.nn.Module, abc.ABC):
        @abc.abstractmethod
        def decode_code(self, rows):
            '''The picture of the rows.'''
            {declared}

    class Decoder(Decoding):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(4, 4)

        @torch.no_grad()
        def decode_code(self, rows):
            return self.net(rows)
    """
SHOWN = """
    import torch
    from factory import build

    def main(path, batches):
        decoder, config = build(path)
        decoder = decoder.to("cuda")
        decoder.eval()
        for rows in batches:
            pixels = torch.cat([decoder.decode_code(rows[i : i + 1]) for i in range(rows.size(0))])
            print(pixels.cpu().numpy())
    """


@pytest.mark.parametrize(("declared", "count"), [("pass", 0), ("raise NotImplementedError", 0), ("return rows + 1", 1)])
def test_a_method_that_an_interface_only_declares_is_none_of_those_meant(
    tmp_path: Path, declared: str, count: int
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "decoders.py").write_text(dedent(DECODERS.format(declared=declared)))
    (tmp_path / "factory.py").write_text(
        "from registry import known\n\ndef build(path):\n    return known[path](), path\n"
    )
    (tmp_path / "main.py").write_text(dedent(SHOWN))
    assert len(linted(tmp_path)) == count


RUNNER = """
    class Runner:
        def __init__(self, net):
            self.net = net

        def decode_code(self, batches):
            return [batch + 1 for batch in batches]
    """


def test_a_method_of_the_file_that_is_of_no_network_is_not_the_one_meant(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "decoders.py").write_text(dedent(DECODERS.format(declared="pass")))
    (tmp_path / "factory.py").write_text(
        "from registry import known\n\ndef build(path):\n    return known[path](), path\n"
    )
    (tmp_path / "main.py").write_text(dedent(SHOWN) + dedent(RUNNER))
    assert linted(tmp_path) == []


WRITTEN_OUT = """
    import torch

    class Net(torch.jit.ScriptModule):
        def __init__(self, path):
            super().__init__()
            self.weights = torch.load(path, weights_only=True)

        @torch.jit.script_method
        def run(self, x):
            {switch}
                x = self.weights["first"] @ x
                return self.weights["last"] @ torch.relu(x)

        def forward(self, x):
            return self.run(x)

    def main(path, batches):
        net = Net(path).cuda()
        for x in batches:
            y = net.forward(x.cuda())
            print(y.softmax(0).argmax().item())
    """


@pytest.mark.parametrize(("switch", "count"), [("with torch.no_grad():", 0), ("with torch.autocast('cuda'):", 1)])
def test_a_network_written_out_whose_pass_switches_autograd_off(tmp_path: Path, switch: str, count: int) -> None:
    assert len(linted(tmp_path, main=WRITTEN_OUT.format(switch=switch))) == count


SERVED = """
import torch
from {package} import Reader

def show(queries, {parameter}):
    model = Reader.from_pretrained("large").to("cuda")
    model.eval()
    texts = []
    for query in queries:
        texts.append(" ".join(query))
        print(model.{run})
"""


@pytest.mark.parametrize(
    ("run", "count"),
    [
        ("inference(image=files[:4])", 0),
        ("predict(files)", 0),
        ("encode(texts)", 0),
        ("encode('a text')", 0),
        ("encode(files)", 1),
        ("features(files)", 1),
    ],
)
def test_what_a_package_serves_with_is_its_own_matter(run: str, count: int) -> None:
    code = SERVED.format(package="readers.api", parameter="files", run=run)
    assert len(findings(code, "MEM05")) == count


def test_a_class_of_the_project_may_be_run_with_autograd_on(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    network = "import torch\n\nclass Reader(torch.nn.Linear):\n    def inference(self, x):\n        return self(x)\n"
    (tmp_path / "readers.py").write_text(network)
    code = SERVED.format(package="readers", parameter="files", run="inference(files)")
    (tmp_path / "main.py").write_text(code.replace('.from_pretrained("large")', "(2, 2)"))
    assert len(linted(tmp_path)) == 1
