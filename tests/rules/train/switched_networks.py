"""Programs that switch a network to the mode that each pass needs, or may do so; behind the SETUP of the others."""

from __future__ import annotations

from tests.rules.train.evaluated_networks import AROUND

SCORE = """\
def in_sample_score(model, batches):
    model.train()
    with torch.no_grad():
        for x, y in batches:
            print(F.cross_entropy(model(x), y))
    {end}

train_all(net)
in_sample_score(net, test_loader)
teacher.eval()
"""


KEPT = {
    "training mode is wanted, and evaluation mode behind it": SCORE.format(end="model.eval()"),
    "the inner network is switched beside the outer": AROUND.format("    inner.eval()\n", "    inner.train()\n")
    + "drawer = Sampler(net)\ntrain_all(net)\nsample(drawer, net)\n",
    "the inner network is switched before it is wrapped": AROUND.format("", "")
    + "train_all(net)\nnet.eval()\nteacher.eval()\ndrawer = Sampler(net).to('cpu')\nsample(drawer, net)\n",
    "the caller switches": "train_all(net)\nnet.eval()\nprint(evaluate(net, test_loader))\n",
    "the caller's caller switches": """\
def report(model):
    print(evaluate(model, test_loader))

train_all(net)
net.eval()
report(net)
""",
    "a function called before switches": """\
def prepare(model):
    model.eval()

train_all(net)
prepare(net)
print(evaluate(net, test_loader))
""",
    "under another name": "train_all(net)\nsame = net\nsame.eval()\nprint(evaluate(net, test_loader))\n",
    "all networks in a loop": """\
train_all(net)
for each in (net, teacher):
    each.eval()
print(evaluate(net, test_loader))
""",
    "the code that may switch is out of sight": """\
from helpers import eval_all

train_all(net)
eval_all(net)
print(evaluate(net, test_loader))
""",
    "one way leads past eval()": """\
import sys

train_all(net)
if len(sys.argv) > 1:
    net.eval()
print(evaluate(net, test_loader))
""",
    "all layers are in sight and none minds": """\
net = nn.Linear(4, 3)
train_all(net)
print(evaluate(net, test_loader))
teacher.eval()
""",
}
