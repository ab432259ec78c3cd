"""Idioms of torch before 0.4, marked `here`, and what looks like them; behind SETUP."""

from __future__ import annotations

SETUP = """\
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Linear(4, 3)
x = torch.randn(2, 4)
loss = F.cross_entropy(net(x), torch.tensor([0, 2]))
"""


LEGACY = {
    "a variable around a batch": """\
from torch.autograd import Variable
out = net(Variable(x))  # here
""",
    "the first element of a loss": "value = loss.data[0]  # here\n",
    "values that are printed": "print(net.weight.data.norm())  # here\n",
    "values that live on": "weights = net.weight.data  # here\n",
    "the best class": "_, best = net(x).data.max(1)  # here\n",
    "samples that are scaled before they are shown": """\
fake = net(x)
fake.data = fake.data.mul(0.5)  # here
print(fake.data.tolist())  # here
""",
    "weights that an average follows": """\
def follow(module, averages):
    for name, p in module.named_parameters():
        averages[name].data = 0.9 * averages[name].data + 0.1 * p.data  # here
""",
    "a new tensor beside one": "def mask(x):\n    return x.data.new(3).bernoulli_(0.5)  # here\n",
    "a chain that ends in place": "shown = net(x).data.float().clamp_(0, 1)  # here\n",
    "a point between two batches": "y = (0.5 * x.data + 0.5).requires_grad_(True)  # here\n",
    "the input of a module": """\
class Distance(nn.Module):
    def forward(self, first, second):
        return measure(first.data, second)  # here
""",
    "the target of a batch": """\
from torch.utils.data import DataLoader
def show_all(dataset):
    for batch in DataLoader(dataset):
        show(batch["target"].data)  # here
""",
    "what is asked whether it is a parameter": """\
def load(own, state):
    for name, p in state.items():
        if isinstance(p, nn.Parameter):
            p = p.data  # here
        own[name].copy_(p)
""",
    "values that a decay adds": """\
def decay(group):
    for p in group["params"]:
        step = p.grad.add(0.1, p.data)  # here
""",
    "a state like a parameter": "def start(state, p):\n    state['average'] = torch.zeros_like(p.data)  # here\n",
    "noise beside logits": """\
noise = torch.empty(2, 3)
noise.uniform_()
noise = net(x).data - noise.log()  # here
""",
    "kernels for another layer": """\
def widen(layer, other):
    new = layer.weight.data.mean(dim=1, keepdim=True)  # here
    other.weight.data = new
""",
    "weights that are copied before an exchange": """\
def average(parameters, averages, kept):
    for p in parameters:
        kept[p] = p.grad.data.clone()  # here
        kept[p] = p.data.clone()  # here
        p.data = averages[p]
""",
    "what a module keeps from its first call on": """\
from torch.autograd import Variable

class Flow(nn.Module):
    def forward(self, z):
        if not hasattr(self, "inverse"):
            self.inverse = Variable(z.inverse())  # here
        return self.inverse @ z
""",
    "samples that are saved": """\
def save(fake, path):
    from torchvision.utils import save_image
    save_image(fake.data, path)  # here
""",
    "a function that only looks at what it is given": """\
def show(tensor, std):
    std.zero_()
    print(tensor)

show(net.weight.data, torch.ones(2))  # here
""",
    "a type": "kind = net.weight.data.dtype  # here\n",
}


LOOK_ALIKES = {
    "a parameter that is declared as something else": """\
from arguments import Wrapper

def is_understood(wrapper: Wrapper):
    return wrapper.data.given and wrapper.requires_grad.given
""",
    "an initialisation": "net.weight.data.normal_(0, 0.1)\n",
    "an update in place": "net.weight.data -= 0.1 * x[:1]\n",
    "an update by assignment": "net.weight.data = 0.9 * net.weight.data\n",
    "a step by hand": "net.weight.data = net.weight.data - 0.1 * net.weight.grad.data\n",
    "what older releases need": """\
from torch.autograd import Variable
inputs = x if hasattr(torch, "no_grad") else Variable(x)
if not hasattr(torch, "no_grad"):
    inputs = Variable(x)
""",
    "blobs of another package": "def read(layer, make):\n    return make(layer.blobs[0].data)\n",
    "entries of a memory": "def last(memory, i):\n    return memory.transitions.data[i].state\n",
    "settings of an object out of sight": """\
def stretched(hps, mask):
    lengths = mask.sum([1, 2]).long() * hps.data.hop_length
    return make(lengths, hps.data)
""",
    "an initialiser that is handed in": """\
def prepare(module, weight_init, gain):
    weight_init(module.weight.data, gain=gain)
""",
    "a statement that does nothing": "net.weight.data\n",
    "a packed sequence that a module gets": """\
class Wrapper(nn.Module):
    def forward(self, packed):
        return process(packed.data), packed.batch_sizes
""",
    "an update in two statements": "new = 0.9 * net.weight.data\nnet.weight.data = new\n",
    "weights that are exchanged": """\
def swap(parameters, averages):
    kept = []
    for p, average in zip(parameters, averages):
        kept.append(p.data)
        p.data = average
    return kept

swap(net.parameters(), [torch.zeros(3, 4), torch.zeros(3)])
""",
    "an initialiser": "nn.init.zeros_(net.bias.data)\n",
    "a function that fills what it is given": """\
def spread(tensor, std):
    tensor.zero_()
    tensor.normal_(std=std)

spread(net.weight.data, 0.1)
""",
    "a function of another file that is called by what it fills with": "truncated_normal(net.weight.data, 0.1)\n",
    "the data of a packed sequence": """\
packed = nn.utils.rnn.pack_sequence([torch.ones(2, 4)])
values = packed.data
""",
    "an object of a class of tensors, seen from inside": """\
class Tagged(torch.Tensor):
    def __deepcopy__(self, memo):
        return type(self)(self.data.clone())
""",
    "the data of an object of its own, seen from inside": """\
class Batch:
    def __init__(self, data):
        self.data = data

    def mask(self):
        return self.data.new(3).bernoulli_(0.5)
""",
}


def run(code: str) -> dict[str, object]:
    namespace: dict[str, object] = {"__name__": "program"}
    exec(compile(code, "program", "exec"), namespace)
    return namespace


OF_A_BATCH = """\
import torch
from torch.autograd import Variable
from torch.utils.data import DataLoader

def train(data, net, criterion, optimizer):
    for batch in DataLoader(data):
        optimizer.zero_grad()
        inputs, labels = Variable(batch[0]), Variable(batch[1])
        criterion(net(inputs), labels).backward()
        optimizer.step()
"""
