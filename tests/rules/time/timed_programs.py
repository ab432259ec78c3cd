"""Programs whose clock does not wait for the device, marked `here`, and what looks like them; behind SETUP."""

from __future__ import annotations

SETUP = """\
import time
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).to(device)
x = torch.randn(2, 4, device=device)
y = torch.tensor([0, 2], device=device)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader([(torch.randn(4), 1) for _ in range(4)], batch_size=2)
"""

RENAMED_READING = """\
start = time.time()
for batch, _ in loader:
    end = time.time()
    waited = end - start
    start = end
    out = net(x)
"""
NEXT_ROUND = """\
    print(waited, end - start)
    start = time.time()
"""
PASS = """\
batch = torch.ones(2, 4).to(where) / 2
t0 = time.time()
out = net.to(where)(batch)
"""


UNSYNCHRONISED = {
    "a reading that gets another name": RENAMED_READING + "    end = time.time()  # here\n" + NEXT_ROUND,
    "a pass on a GPU, before one on the CPU": (
        f"where = device\n{PASS}print(time.time() - t0)  # here\n"
        f'where = torch.device("cpu")\n{PASS}print(time.time() - t0)\n'
    ),
    "a forward pass": """\
t0 = time.time()
out = net(x)
print(time.time() - t0)  # here
""",
    "functions that are handed in": """\
def measure(label, fn):
    for _ in range(2):
        fn()
    t0 = time.perf_counter()
    for _ in range(10):
        fn()
    return label, (time.perf_counter() - t0) / 10  # here

print(measure("one", lambda: net(x)), measure("loss", lambda: F.cross_entropy(net(x), y).item()))
""",
    "a decorator": """\
def timed(fn):
    def run(*args):
        t0 = time.time()
        result = fn(*args)
        print(time.time() - t0)  # here
        return result
    return run

@timed
def predict(batch):
    return net(batch)

predict(x)
""",
    "two spans that are added up": """\
def timed(a):
    start = time.perf_counter()
    out = net(a)
    end = time.perf_counter()  # here
    total = end - start
    ones = torch.ones_like(out)
    start = time.perf_counter()
    (gradient,) = torch.autograd.grad(out, a, ones)
    end = time.perf_counter()  # here
    total += end - start
    return total, gradient
""",
    "two names": """\
with torch.no_grad():
    start = time.perf_counter()
    out = net(x)
    end = time.perf_counter()  # here
elapsed = end - start
print(elapsed)
""",
    "a loop of repetitions": """\
start = time.time()
for _ in range(10):
    out = net(x)
print((time.time() - start) / 10)  # here
""",
    "a time that is kept for each batch": """\
seconds = []
for images, _ in loader:
    images = images.to(device)
    start = time.perf_counter()
    logits = net(images)
    seconds.append(time.perf_counter() - start)  # here
    print(logits.argmax(1).tolist())
print(sum(seconds))
""",
    "a sum of times": """\
total = 0
for images, _ in loader:
    images = images.to(device)
    start = time.time()
    logits = net(images)
    total += time.time() - start  # here
    print(logits.sum().item())
print(total)
""",
    "the backward pass alone": """\
loss = F.cross_entropy(net(x), y)
start = time.time()
loss.backward()
print("backward", time.time() - start)  # here
""",
    "a training step that nothing waits for": """\
for step in range(5):
    start = time.time()
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    seconds = time.time() - start  # here
    print(step, seconds, loss.item())
""",
    "a product of matrices": """\
a = torch.randn(1000, 1000, device="cuda")
start = time.time()
b = a @ a
print(f"{time.time() - start:.4f}")  # here
""",
    "one operation": """\
a = torch.randn(100_000, device=device)
start = time.time()
b = torch.sort(a).values
print(time.time() - start)  # here
""",
    "a function of this file": """\
def run(batch):
    return F.softmax(net(batch), 1)

start = time.time()
probabilities = run(x)
stop = time.time()  # here
print(stop - start)
""",
    "a clock in a helper": """\
def now():
    return time.perf_counter()

start = now()
out = net(x)
print(now() - start)  # here
""",
    "datetime": """\
from datetime import datetime
start = datetime.now()
out = net(x)
print(datetime.now() - start)  # here
""",
    "a time that is returned": """\
def latency(model, batch):
    start = time.monotonic()
    model(batch.to(device))
    return time.monotonic() - start  # here

print(latency(net, x))
""",
    "the later of two intervals, the earlier is waited for": """\
t0 = time.time()
print(net(x).sum().item())
t1 = time.time()
out = net(x)
t2 = time.time()  # here
print(t1 - t0, t2 - t1)
""",
    "layers that stand in other files": """\
from layers import Encoder

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

    def forward(self, x):
        return self.encoder(x)

model = Net().cuda()
start = time.time()
out = model(x)
print(time.time() - start)  # here
""",
    "a wait before the work": """\
start = time.time()
print(net(x).sum().item())
out = net(x)
print(time.time() - start)  # here
""",
    "another name for the module": """\
import time as t
start = t.time()
out = net(x)
print(t.time() - start)  # here
""",
}


LOOK_ALIKES = {
    "a reading that gets another name, and a wait": (
        RENAMED_READING + "    torch.cuda.synchronize()\n    end = time.time()\n" + NEXT_ROUND
    ),
    "two names that take turns": """\
start, end = time.time(), time.time()
for batch, _ in loader:
    out = net(x)
    start = end
    end = start
    print(end - start)
""",
    "a pass on the CPU, before one on a GPU": (
        f'where = torch.device("cpu")\n{PASS}print(time.time() - t0)\n'
        f"where = device\n{PASS}out = out.tolist()\nprint(time.time() - t0)\n"
    ),
    "a decorator of a function that waits": """\
def timed(fn):
    def run(*args):
        t0 = time.time()
        result = fn(*args)
        print(time.time() - t0)
        return result
    return run

@timed
def predict(batch):
    return net(batch).argmax(1).tolist()

predict(x)
""",
    "functions that wait, handed in": """\
def measure(label, fn):
    t0 = time.perf_counter()
    for _ in range(10):
        fn()
    return label, (time.perf_counter() - t0) / 10

print(measure("loss", lambda: F.cross_entropy(net(x), y).item()), measure("no work", lambda: len(loader)))
""",
    "synchronize before the second reading": """\
torch.cuda.synchronize()
start = time.time()
out = net(x)
torch.cuda.synchronize()
print(time.time() - start)
""",
    "a guarded synchronize": """\
start = time.time()
out = net(x)
if torch.cuda.is_available():
    torch.cuda.synchronize()
print(time.time() - start)
""",
    "a helper that waits": """\
def now():
    torch.cuda.synchronize()
    return time.time()

start = now()
out = net(x)
print(now() - start)
""",
    "a helper of another file that waits by its name": """\
from utils import time_synchronized
start = time_synchronized()
out = net(x)
print(time_synchronized() - start)
""",
    "a value that is read": """\
start = time.time()
loss = F.cross_entropy(net(x), y).item()
print(time.time() - start, loss)
""",
    "a copy to the host": """\
start = time.time()
out = net(x).cpu()
print(time.time() - start)
""",
    "a tensor that is printed": """\
start = time.time()
print(net(x))
print(time.time() - start)
""",
    "a tensor in an f-string, the time behind it": """\
start = time.time()
loss = F.cross_entropy(net(x), y)
print(f"{loss:.4f} {time.time() - start:.2f}")
""",
    "a tensor in a formatted text": """\
start = time.time()
loss = F.cross_entropy(net(x), y)
text = "{:.4f}".format(loss)
print(text, time.time() - start)
""",
    "a tensor in a text made with %": """\
start = time.time()
loss = F.cross_entropy(net(x), y)
text = "%d %.4f" % (1, loss)
print(text, time.time() - start)
""",
    "a branch on a tensor": """\
start = time.time()
out = net(x)
if out.sum() > 0:
    print("positive")
print(time.time() - start)
""",
    "a mask as an index": """\
start = time.time()
out = net(x)
kept = out[out > 0]
print(time.time() - start)
""",
    "an epoch over a loader": """\
for epoch in range(2):
    start = time.time()
    for images, labels in loader:
        opt.zero_grad()
        F.cross_entropy(net(images.to(device)), labels.to(device)).backward()
        opt.step()
    print(epoch, time.time() - start)
""",
    "the wall clock of a run": """\
def train():
    for images, labels in loader:
        opt.zero_grad()
        F.cross_entropy(net(images.to(device)), labels.to(device)).backward()
        opt.step()

start = time.time()
for epoch in range(10):
    train()
print("total", time.time() - start)
""",
    "meters of data and batch time": """\
meter = []
end = time.time()
for images, labels in loader:
    meter.append(time.time() - end)
    loss = F.cross_entropy(net(images.to(device)), labels.to(device))
    print(loss.item())
    opt.zero_grad()
    loss.backward()
    opt.step()
    meter.append(time.time() - end)
    end = time.time()
""",
    "the next step waits for the tail of this one": """\
for step in range(5):
    start = time.time()
    loss = F.cross_entropy(net(x), y)
    value = loss.item()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(time.time() - start, value)
""",
    "loading data": """\
start = time.time()
batches = list(loader)
print(time.time() - start)
out = net(x)
""",
    "saving": """\
start = time.time()
torch.save(net.state_dict(), "net.pt")
print(time.time() - start)
""",
    "a limit": """\
start = time.time()
while time.time() - start < 0.01:
    out = net(x)
""",
    "a time that nobody reads": """\
start = time.time()
out = net(x)
elapsed = time.time() - start
""",
    "work on the host": """\
model = nn.Linear(4, 3).cpu()
data = torch.randn(2, 4)
start = time.time()
out = model(data)
print(time.time() - start)
""",
    "the backward pass of a graph on the host": """\
w = torch.randn(3, requires_grad=True)
start = time.time()
w.exp().sum().backward()
print(time.time() - start)
""",
    "arrays": """\
import numpy as np
a = np.ones((10, 10))
start = time.time()
b = a @ a
print(time.time() - start)
""",
    "code out of sight that is given the model": """\
from engine import evaluate
start = time.time()
accuracy = evaluate(net, loader)
print(time.time() - start, accuracy)
""",
    "text that a library generates": """\
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("gpt2").to(device)
start = time.time()
tokens = model.generate(x)
print(time.time() - start)
""",
    "metrics from a model of a library": """\
from torch_geometric.nn import GAE
model = GAE(nn.Linear(4, 4)).to(device)
start = time.time()
z = model.encode(x)
area, precision = model.test(z, y, y)
print(time.time() - start)
""",
    "a buffer that is made": """\
start = time.time()
buffer = torch.zeros(2, 4, device="cuda")
print(time.time() - start)
""",
    "only views": """\
start = time.time()
z = x.view(4, 2).transpose(0, 1)
print(time.time() - start)
""",
    "a profiler that waits at its end": """\
start = time.time()
with torch.profiler.profile() as profiler:
    out = net(x)
print(time.time() - start)
""",
    "a barrier": """\
import torch.distributed as dist
start = time.time()
out = net(x)
dist.barrier()
print(time.time() - start)
""",
    "launches that wait": """\
import os
os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
start = time.time()
out = net(x)
print(time.time() - start)
""",
    "a function of another file": """\
from engine import finish
start = time.time()
out = net(x)
finish()
print(time.time() - start)
""",
    "readings in two functions": """\
class Timer:
    def start(self):
        self.began = time.time()

    def stop(self):
        self.seconds = time.time() - self.began
        return self.seconds
""",
    "a reading from another iteration": """\
last = time.time()
for step in range(5):
    out = net(x)
    now = time.time()
    print(now - last)
    last = now
""",
}
