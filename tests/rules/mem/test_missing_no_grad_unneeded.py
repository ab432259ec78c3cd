"""MEM05: nothing is recorded, or the graph is needed: frozen parts, mere transforms, steps and callers out of sight."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.mem.test_missing_no_grad_of_callers import found_in
from tests.support import findings

FROZEN = """
import torch
from torch import nn

class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        {head}
        {freeze}

    def forward(self, x):
        return self.features(x)

class Learner:
    def __init__(self, net):
        self.net = net.cuda()
        self.features = Features()
        self.features.eval()
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def step(self, batches):
        for x, y in batches:
            y = y.cuda()
            real = self.features(y).detach()
            loss = (self.features(self.net(x.cuda())) - real).abs().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

Learner(nn.Linear(4, 4)).step([(torch.randn(2, 4), torch.randn(2, 4))])
"""
OF_ITS_PART = "for name, weight in self.features.named_parameters():\n            weight.requires_grad = False"


@pytest.mark.parametrize(
    ("head", "freeze", "count"),
    [
        ("", OF_ITS_PART, 0),
        ("", "self.features.requires_grad_(False)", 0),
        ("", "", 1),
        ("self.head = nn.Linear(4, 4)", OF_ITS_PART, 1),
        ("self.head = nn.Linear(4, 4)", "self.requires_grad_(False)", 0),
    ],
)
def test_a_class_that_freezes_all_parts_it_has_records_nothing(head: str, freeze: str, count: int) -> None:
    assert len(findings(FROZEN.format(head=head, freeze=freeze), "MEM05", "MEM09")) == count


BLURRED = """
import torch
from torch import nn
from torchvision import transforms

def inference(net, image, blurred=False):
    blur = {made}
    scripted = torch.jit.script(blur)
    prepare = transforms.Compose([transforms.ToTensor()])
    image = prepare(image)
    if blurred:
        image = scripted(image)
    with torch.no_grad():
        out = net(image.cuda())["out"][0]
    return out.argmax(0).cpu().numpy()

net = torch.hub.load("segments", "net")
net.eval()
print(inference(net, None))
"""


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ("nn.Sequential(transforms.GaussianBlur(7))", 0),
        ("transforms.GaussianBlur(7)", 0),
        ("nn.Sequential(transforms.GaussianBlur(7), nn.Conv2d(3, 3, 1))", 1),
        ("nn.Sequential(transforms.GaussianBlur(7), *others())", 1),
    ],
)
def test_a_scripted_transform_has_nothing_to_record(made: str, count: int) -> None:
    assert len(findings(BLURRED.format(made=made), "MEM05", "MEM09")) == count


BLOCKS = """
import torch
from torch import nn

class Blocks(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = torch.ones(8, 8) / 100

    def set_quality(self, quality):
        self.quality = quality
        self.factor = (quality < 50).type(self.quality.type()) * 2

    def forward(self, x):
        return x * self.table.mean() * {used}

blocks = Blocks(None)
total = 0
for _ in range(20):
    total += (blocks(torch.ones(8, 8)) ** 2).sum()
print(total)
"""


@pytest.mark.parametrize(("used", "count"), [("self.factor", 0), ("self.quality(x)", 1)])
def test_a_module_of_plain_tensors_brings_no_graph_into_a_sum(used: str, count: int) -> None:
    assert len(findings(BLOCKS.format(used=used), "MEM02")) == count


PIPELINE = """
import torch

class Pipeline:
    def __init__(self, model, framework):
        self.model, self.framework = model.eval(), framework

    def scores(self, batches):
        found = []
        for x in batches:
            if self.framework == {library!r}:
                out = self.model(x)
                out = out.numpy()
            else:
                with torch.no_grad():
                    out = self.model(x.cuda()).cpu().numpy()
            found.append(out)
        return found

Pipeline(torch.nn.Linear(2, 2), "").scores([])
"""


@pytest.mark.parametrize(("library", "count"), [("tf", 0), ("flax", 0), ("pt", 1)])
def test_the_branch_of_another_library_has_no_autograd(library: str, count: int) -> None:
    code = PIPELINE.format(library=library).replace("out.numpy()", "out.argmax(1).cpu()")
    assert len(findings(code, "MEM05", "MEM09")) == count


TAUGHT = """
import torch
from torch import nn
from torch.utils.data import DataLoader

class Shift(nn.Module):
    def forward(self, pose, points):
        return pose.mean() + points.mean()

def train(student):
    teacher = nn.Linear(4, 4).cuda()
    teacher.eval()
    student = nn.Linear(4, 4).cuda()
    optimizer = torch.optim.Adam(student.parameters())
    shift = Shift()
    for x in DataLoader([torch.randn(4) for _ in range(10)]):
        optimizer.zero_grad()
        x = x.cuda()
        pose = teacher(x)
        loss = {loss}
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("loss", "count"),
    [
        ("(pose - student(x)).abs().mean()", 1),
        ("(pose - x).abs().mean() + shift(pose, x)", 0),
        ("student(pose).abs().mean()", 0),
    ],
)
def test_a_loss_that_comes_through_a_teacher_alone_needs_its_graph(loss: str, count: int) -> None:
    assert len(findings(TAUGHT.format(loss=loss), "MEM05", "MEM09")) == count


ATTACKED = """
import torch

class Evaluator:
    def __init__(self, model, attacker):
        self.model, self.attacker = model, attacker

    def accuracy(self, loader):
        self.model.eval()
        hits = 0
        for x, y in loader:
            x = {given}
            hits += (self.model(x).argmax(1) == y).sum().item()
        return hits

Evaluator(torch.nn.Linear(2, 2).cuda(), None).accuracy([])
"""


def test_an_evaluation_that_attacks_the_network_on_the_way_takes_gradients() -> None:
    assert len(findings(ATTACKED.format(given="x.cuda()"), "MEM05", "MEM09")) == 1
    assert findings(ATTACKED.format(given="self.attacker(x.cuda(), y)"), "MEM05", "MEM09") == []


DECODER = """
import torch
from torch import nn

class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 4)

    def forward(self, x):
        return self.head(x)

    def decode_greedy(self, x, length=21):
        words = []
        for _ in range(length):
            x = self.forward(x)
            words.append(x.argmax(-1))
        return words
"""
TRANSLATOR = """
from torch import nn
from main import Decoder

class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = Decoder()

    def forward(self, x):
        return self.decoder(x).mean()

    def search(self, x):
        return self.decoder.decode_greedy(x)
"""
RUN = """
import torch
from translator import Translator

def main(data):
    model = Translator().cuda()
    {switch}
        for x in data:
            print(model.search(x))
"""
CHECK = "from main import Decoder\n\nprint(Decoder().decode_greedy(None))\n"


@pytest.mark.parametrize(("switch", "count"), [("with torch.no_grad():", 0), ("if data:", 1)])
def test_callers_of_callers_switch_autograd_off(tmp_path: Path, switch: str, count: int) -> None:
    found = found_in(tmp_path, main=DECODER, translator=TRANSLATOR, run=RUN.format(switch=switch), sanity_check=CHECK)
    assert len(found) == count


GENERATOR = """
import torch
from torch import nn

class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(4, 4)

    def forward(self, x):
        return self.main(x)

    def infer(self, x):
        return self.forward(x)

if __name__ == "__main__":
    print(Generator().cuda().infer(torch.randn(2, 4)).shape)
    generator = Generator().cuda()
    print(generator.infer(torch.randn(2, 4)).shape)
"""
TRAINER = """
import torch
import main

class Trainer:
    def fit(self, models, loader):
        gen, dis = models["gen"], models["dis"]
        for x in loader:
            fake = gen.module.infer(x)
            loss = dis(fake).mean()
            {end}

    def show(self, models, x):
        print(models["gen"].infer(x))
"""


@pytest.mark.parametrize(("end", "count"), [("loss.backward()", 0), ("print(loss)", 1)])
def test_what_training_in_another_file_may_go_back_through(tmp_path: Path, end: str, count: int) -> None:
    assert len(found_in(tmp_path, main=GENERATOR, trainer=TRAINER.format(end=end))) == count


PROBED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        {probe}

    def evaluate(self, size=8):
        found = []
        for layer in self.layers:
            found.append(layer(torch.randn(2, 3, size, size)).shape)
        return found

{use}
"""


@pytest.mark.parametrize(
    ("probe", "use", "count"),
    [
        ("self.shapes = self.evaluate()", "", 0),
        ("pass", "print(Net([]).evaluate())", 1),
        ("self.shapes = self.evaluate()", "print(Net([]).evaluate())", 1),
    ],
)
def test_a_method_that_the_constructor_alone_runs_is_run_once(probe: str, use: str, count: int) -> None:
    assert len(findings(PROBED.format(probe=probe, use=use), "MEM05")) == count


BY_HAND = """
import torch
from torch import nn

class Cell:
    def __init__(self, net):
        self.inner = {layer}

    def __call__(self, x, state):
        return self.step(x, state)

    def step(self, x, state):
        {before}return torch.tanh(self.inner(x) + state)

cell = Cell(torch.load("net.pt"))
state = torch.zeros(2, 4)
for x in torch.randn(9, 2, 4):
    state = cell(x, state)
    print(state.mean().item())
"""


def test_a_network_without_a_base_class_may_be_trained_by_whoever_calls_it() -> None:
    assert findings(BY_HAND.format(layer="nn.Linear(4, 4)", before=""), "MEM05") == []
    predictor = BY_HAND.format(layer="net", before="self.inner.eval()\n        ")
    assert len(findings(predictor, "MEM05")) == 1


JUDGED = """
    import torch
    from torch import nn

    def evaluate(preds: torch.Tensor, labels: torch.Tensor, {parameter}):
        judge = {made}
        return judge(preds, labels).item()
"""


@pytest.mark.parametrize(
    ("parameter", "made", "count"),
    [
        pytest.param("loss_class: nn.Module", "loss_class(reduction='mean')", 0, id="by its name"),
        pytest.param("loss: nn.Module = nn.MSELoss", "loss(reduction='mean')", 0, id="by its default"),
        pytest.param("judge: nn.Module", "judge", 1, id="a network"),
    ],
)
def test_a_class_that_is_annotated_as_a_module_runs_nothing(parameter: str, made: str, count: int) -> None:
    assert len(findings(JUDGED.format(parameter=parameter, made=made), "MEM05")) == count
