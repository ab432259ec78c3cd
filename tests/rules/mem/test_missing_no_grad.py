"""MEM05: an evaluation records an autograd graph that nobody uses. The programs stand in files of their own."""

from __future__ import annotations

import pytest

from tests.rules.mem.gradients_off import GRADIENTS_OFF
from tests.rules.mem.needed_graphs import NEEDED
from tests.rules.mem.recorded_evaluations import EVALUATIONS, SETUP
from tests.rules.mem.recorded_while_training import WHILE_TRAINING
from tests.support import findings, marked

RECORDED = {**EVALUATIONS, **WHILE_TRAINING}
LOOK_ALIKES = {**NEEDED, **GRADIENTS_OFF}


def found(code: str) -> list[int]:
    """Lines of the findings, counted behind SETUP."""
    return [finding.line - SETUP.count("\n") for finding in findings(SETUP + code, "MEM05", "MEM09")]


@pytest.mark.parametrize("code", RECORDED.values(), ids=RECORDED.keys())
def test_finds(code: str) -> None:
    assert found(code) == marked(code)


@pytest.mark.parametrize("code", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_stays_silent(code: str) -> None:
    assert found(code) == []


def test_message_names_the_bare_call() -> None:
    code = SETUP + EVALUATIONS["a bare call of no_grad"]
    line = 1 + code[: code.index("torch.no_grad()")].count("\n")
    assert f"line {line}" in findings(code, "MEM05", "MEM09")[0].message


def test_a_program_that_makes_its_model_and_trains_it_is_no_smoke_test() -> None:
    code = """
        import torch
        from torch import nn
        from torchvision.utils import save_image

        def main(batches, noise):
            net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for epoch in range(10):
                for x in batches:
                    optimizer.zero_grad()
                    net(x).mean().backward()
                    optimizer.step()
                net.eval()
                samples = net(noise)
                net.train()
                save_image(samples, f"{epoch}.png")
        """
    (finding,) = findings(code, "MEM05", "MEM09")
    assert finding.line == 14


def test_a_loop_that_nobody_takes_results_of() -> None:
    code = """
        import time
        import torch

        def measure(model, x):
            start = time.perf_counter()
            for _ in range(100):
                model(x)
            return time.perf_counter() - start

        measure(torch.nn.Linear(4, 4), torch.ones(1, 4))
        """
    assert len(findings(code, "MEM05", "MEM09")) == 1
    assert findings(code.replace("import time", "import time  # register_forward_hook("), "MEM05", "MEM09") == []


def test_a_script_that_shows_what_layers_return() -> None:
    code = """
        import torch

        cell = torch.nn.RNN(4, 2)
        for x in torch.randn(3, 1, 1, 4):
            out, hidden = cell(x)
            print(out.size(), out.tolist())
        """
    assert findings(code, "MEM05", "MEM09") == []
    assert len(findings(code.replace("nn.RNN(4, 2)", "nn.RNN(4, 2); cell.load_state_dict({})"), "MEM05", "MEM09")) == 1


@pytest.mark.parametrize("wrapper", ["net.cuda()", "nn.DataParallel(net).cuda()", "torch.compile(net)"])
def test_a_wrapped_model_is_in_the_mode_of_the_model(wrapper: str) -> None:
    code = f"""
        import torch
        from torch import nn

        net = nn.Linear(4, 2)
        wrapped = {wrapper}
        other = nn.Linear(4, 2)

        def evaluate(batches, state):
            net.eval()
            for x in batches:
                y, state = wrapped(x, state)
                state = repackage(state)
                print(y.sum().item())
            return state
        """
    assert [finding.line for finding in findings(code, "MEM05", "MEM09")] == [8]
    assert not findings(code.replace("net.eval()", "other.eval()"), "MEM05", "MEM09")


@pytest.mark.parametrize(("name", "count"), [("Agent", 1), ("TestAgent", 0)])
def test_an_agent_in_a_file_that_tries_it_out(name: str, count: int) -> None:
    code = f"""
        import torch

        class {name}:
            def __init__(self):
                self.net = torch.nn.Linear(4, 2)

            def select_action(self, state):
                return self.net(state).argmax().item()

        agent = {name}()
        for state in states:
            agent.select_action(state)
        """
    assert len(findings(code, "MEM05", "MEM09", path="test_agent.py")) == count


TRANSFORM = """
import torchaudio

class Spectrum(nn.Module):
    def __init__(self, size, scale):
        super().__init__()
        self.register_buffer("window", torch.hann_window(size))
        self.size = size
        {layers}

    def forward(self, x):
        return (x * self.window).abs()

spectrum = Spectrum(4, 2)
shown = []
for x, y in loader:
    shown.append(spectrum(x).detach())
"""


@pytest.mark.parametrize(
    ("layers", "count"),
    [
        ("self.scale = scale", 0),
        ("self.act = nn.ReLU()", 0),
        ("self.mel = torchaudio.transforms.MelScale(size)", 0),
        ("self.scale = nn.Parameter(torch.ones(4))", 1),
        ("self.lin = nn.Linear(4, 4)", 1),
        ("self.register_parameter('scale', None)", 1),
        ("self.lin = make_layer(size)", 1),
        ("self.layers = nn.ModuleList([nn.Linear(4, 4)])", 1),
        ("self.lins = [nn.Linear(4, 4)]", 1),
        ("self.layers = nn.Sequential(nn.ReLU(), nn.Flatten())", 0),
        ("self.layers: nn.ModuleList = nn.ModuleList([nn.ReLU() for _ in range(size)])", 0),
        ("self.layers = nn.ModuleList(nn.ReLU() for _ in range(size))", 0),
        ("self.layers = nn.Sequential(nn.ReLU(), nn.Linear(4, 4))", 1),
        ("self.layers = nn.Sequential(nn.ReLU(), *scale)", 1),
        ("self.layers = nn.ModuleList()", 1),
        ("self.prior = torch.distributions.Normal(0.0, 1.0)", 0),
    ],
)
def test_a_transform_without_parameters_has_no_graph_to_record(layers: str, count: int) -> None:
    assert len(found(TRANSFORM.format(layers=layers))) == count


@pytest.mark.parametrize(("default", "count"), [("torch.tanh", 0), ("nn.functional.relu", 0), ("None", 1)])
def test_what_is_a_function_by_default_is_no_layer(default: str, count: int) -> None:
    code = TRANSFORM.format(layers="self.act = act").replace("size, scale):", f"size, scale, act={default}):")
    assert len(found(code.replace("return (", "return self.act("))) == count


WRAPPER = """
from zoo import load

def narrow(net, x):
    return net.narrow(x)

def wide(net, x):
    return net.wide(x)

class Wrapper(nn.Module):
    def __init__(self, net, run):
        super().__init__()
        self.net = net
        self.run = run

    def forward(self, x):
        return {passed}

def make(net, size):
    return Wrapper(net, narrow) if size < 3 else Wrapper(net, wide)

wrapper = make(load(), len(loader))
wrapper.eval()
for x, y in loader:
    print(wrapper(x).detach())
"""


@pytest.mark.parametrize(("passed", "count"), [("self.run(self.net, x)", 1), ("torch.add(self.net, x)", 0)])
def test_a_module_that_hands_what_it_holds_to_a_function_may_hold_a_network(passed: str, count: int) -> None:
    assert len(found(WRAPPER.format(passed=passed))) == count


def test_what_a_transform_without_parameters_returns_is_kept_without_a_graph() -> None:
    kept = (
        TRANSFORM.format(layers="")
        + "table = {i: spectrum(x).cpu() for i, (x, y) in enumerate(loader)}\nprint(table)\n"
    )
    layer = kept.replace("super().__init__()", "super().__init__()\n        self.lin = nn.Linear(4, 4)")
    assert findings(SETUP + kept, "MEM01") == []
    assert len(findings(SETUP + layer, "MEM01")) == 1


HANDED_IN = """
def report(torch, net, x):
    net.eval()
    {context}:
        return net(x).argmax(1).tolist()

def train():
    import torch
    return report(torch, nn.Linear(4, 3), torch.zeros(2, 4))
"""


@pytest.mark.parametrize(("context", "count"), [("with torch.no_grad()", 0), ("with torch.autocast('cpu')", 1)])
@pytest.mark.parametrize("called", [True, False])
def test_a_torch_that_is_handed_in_switches_autograd(context: str, count: int, called: bool) -> None:
    code = HANDED_IN.format(context=context)
    assert len(found(code if called else code[: code.index("def train")])) == count


STEPS = """
class Trainer:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer

    def step(self, x, y, training):
        loss = F.cross_entropy(self.net(x), y)
        if training:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return float(loss)

    def epoch(self, batches, training):
        return [self.step(x, y, training) for x, y in batches]

    def train(self, batches):
        return self.epoch(batches, training=True)

    def validate(self, batches):
        {context}:
            return self.epoch(batches, training=False)
"""


@pytest.mark.parametrize(("context", "count"), [("with torch.no_grad()", 0), ("if batches", 1)])
def test_a_step_whose_phase_a_caller_of_its_caller_switches(context: str, count: int) -> None:
    assert len(found(STEPS.format(context=context))) == count


@pytest.mark.parametrize(
    ("read", "count"),
    [
        ("net(x).numpy().mean()", 0),
        ("net(x)[0].cpu().numpy().mean()", 0),
        ("net(x).argmax(1).numpy().mean()", 1),
        ("net(x).detach().numpy().mean()", 1),
        ("float(net(x).mean())", 1),
    ],
)
def test_a_result_that_numpy_reads_as_it_is_has_no_graph(read: str, count: int) -> None:
    evaluate = (
        "\ndef evaluate(net):\n    total = 0\n    for x, y in val_loader:\n        total += {}\n    return total\n"
    )
    assert len(found(evaluate.format(read))) == count


@pytest.mark.parametrize(("read", "count"), [("out.cpu().numpy()", 0), ("out.detach().cpu().numpy()", 1)])
def test_a_variable_that_numpy_reads_as_it_is_has_no_graph(read: str, count: int) -> None:
    lines = "    for x, y in val_loader:\n        out = net(x)\n        print({})\n"
    assert len(found("\ndef evaluate(net):\n" + lines.format(read))) == count


@pytest.mark.parametrize(
    ("again", "count"),
    [("torch.tanh(out / 3)", 0), ("out[:, 0]", 0), ("out.detach()", 1), ("out.argmax(1)", 1), ("torch.ones(3)", 1)],
)
def test_what_is_made_of_a_part_of_the_result_and_read_so_has_no_graph_either(again: str, count: int) -> None:
    lines = f"        out = net(x)[0]\n        if y.sum() > 3:\n            out = {again}\n"
    code = f"\ndef evaluate(net):\n    for x, y in val_loader:\n{lines}        print(out.cpu().numpy())\n"
    assert len(found(code)) == count


VALIDATION = """
from diffusers import StableDiffusionPipeline
from transformers import CLIPModel

def log_validation(model, prompts):
    for prompt in prompts:
        print(model(prompt, num_inference_steps=20).images[0])

def train(prompts):
    model = {maker}("weights")
    model = model.to("cuda")
    log_validation(model, prompts)
"""


@pytest.mark.parametrize(
    ("maker", "count"), [("StableDiffusionPipeline.from_pretrained", 0), ("CLIPModel.from_pretrained", 1)]
)
def test_a_pipeline_of_diffusers_switches_autograd_off_by_itself(maker: str, count: int) -> None:
    code = VALIDATION.format(maker=maker)
    assert len(found(code)) == count
    assert len(found(code.replace("model(prompt, num_inference_steps=20)", "model.get_features(prompt)"))) == count


GENERATES = """
from {library} import AutoModelForSeq2SeqLM

def predict(name, prompts, batch):
    model = AutoModelForSeq2SeqLM.from_pretrained(name)
    model = model.to("cuda")
    model.eval()
    answers = []
    for prompt in prompts:
        ids = model{method}(torch.LongTensor([prompt]).to("cuda"))[0]
        answers.append(ids.tolist())
    return answers
"""


@pytest.mark.parametrize(
    ("library", "method", "count"),
    [("transformers", ".generate", 0), ("transformers", "", 1), ("writers", ".generate", 1)],
)
def test_what_hugging_face_generates_has_no_graph(library: str, method: str, count: int) -> None:
    assert len(found(GENERATES.format(library=library, method=method))) == count


@pytest.mark.parametrize(
    ("called", "count"),
    [("model.encode(batch, convert_to_tensor=True)", 0), ("model.encode_query(batch)", 0), ("model(batch)", 1)],
)
def test_sentence_transformers_encode_without_a_graph(called: str, count: int) -> None:
    code = f"""\
import torch
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("small").cuda()
model.eval()
for batch in open("sentences"):
    emb = {called}
    print(emb.shape, emb.norm().item())
"""
    assert len(findings(code, "MEM05")) == count


@pytest.mark.parametrize(("call", "count"), [("test_net(net, images)", 1), ("test_net()", 0)])
def test_a_function_that_a_script_calls_with_its_network_is_no_unit_test(call: str, count: int) -> None:
    code = f"""
        import torch

        net = torch.nn.Linear(4, 2)
        net.load_state_dict(torch.load("net.pt"))
        net.eval()

        def test_net(net=net, images=()):
            for image in images:
                print(net(image).argmax().item())

        if __name__ == "__main__":
            {call}
        """
    assert len(findings(code, "MEM05", "MEM09", path="test_net.py")) == count
    assert len(findings(code, "MEM05", "MEM09", path="tests/test_net.py")) == 0


@pytest.mark.parametrize(("around", "count"), [("with torch.no_grad():", 0), ("if True:", 1)])
def test_a_loss_of_answers_without_a_graph_has_none(around: str, count: int) -> None:
    code = f"""
        import torch

        def evaluate(model, criterion, loader: torch.utils.data.DataLoader):
            model.eval()
            total = 0.0
            for x, y in loader:
                x, y = x.cuda(), y.cuda()
                {around}
                    out = model(x)
                total += criterion(out, y).item()
            return total
        """
    assert len(findings(code, "MEM05", "MEM09")) == count


FED = """
    import torch

    def run(net, optimizer, xs, y):
        optimizer.zero_grad()
        net.reset(y.size(1))
        for x in xs:
            {feed}
        out = torch.stack([net() for _ in range(len(y))])
        loss = (out - y).square().mean()
        {update}
        return loss.item()
    """


@pytest.mark.parametrize(
    ("feed", "update", "count"),
    [
        ("net(x)", "loss.backward()", 0),
        ("state = net(x)", "loss.backward()", 0),
        ("print(net(x).mean().item())", "loss.backward()", 1),
        ("net(x)", "print(loss)", 2),
    ],
)
def test_a_network_that_keeps_what_it_is_fed_needs_the_graph(feed: str, update: str, count: int) -> None:
    assert len(findings(FED.format(feed=feed, update=update), "MEM05", "MEM09")) == count


@pytest.mark.parametrize(
    ("given", "count"),
    [("x.numpy()", 0), ("sample=x.numpy()", 0), ("sample=x", 1), ("x, lam=numpy.random.beta(2, 2, 8)", 1)],
)
def test_what_takes_arrays_is_no_network_of_torch(given: str, count: int) -> None:
    code = f"""
    import numpy
    import torch

    class Pipeline:
        def run(self, loader):
            for x, y in loader:
                out = self.unet({given})
                print(out[0].argmax(1) == y)

    pipeline = Pipeline()
    pipeline.run(torch.utils.data.DataLoader(data))
    """
    assert len(findings(code, "MEM05")) == count
