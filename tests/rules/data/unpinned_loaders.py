"""Loaders whose batches go to a GPU unpinned, marked `found`, and what looks like them; behind HEADER."""

from __future__ import annotations

from textwrap import dedent

HEADER = """\
import argparse
import functools

import torch
import torch.utils.data
from torch import nn
from torch.utils import data
from torch.utils.data import DataLoader, Dataset
from torch.utils.data import DataLoader as DL
from torchvision import datasets, transforms

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
images = datasets.CIFAR10("data", transform=transforms.ToTensor())
model = nn.Linear(8, 2).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""

LOOP = """\
for x, y in loader:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""


def script(body: str, loop: str = LOOP) -> str:
    return HEADER + dedent(body) + loop


VARIANTS = {
    "loader with workers": script("loader = DataLoader(images, 64, shuffle=True, num_workers=4)  # found\n"),
    "qualified": script("loader = torch.utils.data.DataLoader(images, 64)  # found\n"),
    "module alias": script("loader = data.DataLoader(images, 64)  # found\n"),
    "class alias": script("loader = DL(images, 64)  # found\n"),
    "name bound to the class": script("Loader = DataLoader\nloader = Loader(images, 64)  # found\n"),
    "partial": script("make = functools.partial(DataLoader, batch_size=64)  # found\nloader = make(images)\n"),
    "positional options": script("loader = DataLoader(images, 64, True, None, None, 4, None)  # found\n"),
    "options in a dict literal": script(
        """\
        options = {"batch_size": 64, "num_workers": 4}
        loader = DataLoader(images, **options)  # found
        """
    ),
    "options in dict(...)": script(
        """\
        options = dict(batch_size=64, num_workers=4)
        loader = DataLoader(images, **options)  # found
        """
    ),
    "options in a dict that is extended": script(
        """\
        options = {"batch_size": 64}
        if torch.cuda.is_available():
            options.update({"num_workers": 4})
        options["shuffle"] = True
        loader = DataLoader(images, **options)  # found
        """
    ),
    "explicitly off on a path to the GPU": script("loader = DataLoader(images, 64, pin_memory=False)  # found\n"),
    "train and validation loader": script(
        """\
        loader = DataLoader(images, 64, num_workers=4)  # found
        val_loader = DataLoader(images, 256, num_workers=4)  # found

        def evaluate():
            model.eval()
            with torch.no_grad():
                for x, y in val_loader:
                    print(criterion(model(x.to(device)), y.to(device)))
        """
    ),
    "moved with cuda()": script(
        "loader = DataLoader(images, 64)  # found\n",
        """\
        for x, y in loader:
            loss = criterion(model(x.cuda()), y.cuda())
            loss.backward()
        """.replace("        ", "", 1).replace("\n        ", "\n"),
    ),
    "factory function": script(
        """\
        def make_loader(dataset, train):
            return DataLoader(dataset, 64, shuffle=train)  # found

        loader = make_loader(images, True)
        """
    ),
    "loader handed to a function": HEADER
    + dedent(
        """\
        def train(loader, model, device):
            for step, (x, y) in enumerate(loader):
                x = x.to(device)
                y = y.to(device)
                criterion(model(x), y).backward()

        train(DataLoader(images, 64), model, device)  # found
        """
    ),
    "attribute of a trainer": HEADER
    + dedent(
        """\
        class Trainer:
            def __init__(self, dataset):
                self.loader = self._make_loader(dataset)

            def _make_loader(self, dataset):
                return DataLoader(dataset, batch_size=64, shuffle=True)  # found

            def fit(self):
                for x, y in self.loader:
                    criterion(model(x.to(device)), y.to(device)).backward()

        Trainer(images).fit()
        """
    ),
    "subclass": HEADER
    + dedent(
        """\
        class ShuffledLoader(DataLoader):
            def __init__(self, dataset, batch_size):
                super().__init__(dataset, batch_size=batch_size, shuffle=True)  # found

        loader = ShuffledLoader(images, 64)
        """
    )
    + LOOP,
    "batch moved by a helper of the file": script(
        """\
        def to_device(batch):
            return [part.to(device) for part in batch]

        loader = DataLoader(images, 64)  # found
        """,
        "for batch in loader:\n    x, y = to_device(batch)\n    criterion(model(x), y).backward()\n",
    ),
    "dict batch moved by a comprehension": script(
        "loader = DataLoader(images, 64)  # found\n",
        "for batch in loader:\n"
        "    batch = {k: v.to(device) for k, v in batch.items()}\n"
        "    criterion(model(batch['x']), batch['y']).backward()\n",
    ),
    "iterator and next": script(
        """\
        loader = DataLoader(images, 64)  # found
        batches = iter(loader)
        """,
        "for step in range(100):\n"
        "    x, y = next(batches)\n"
        "    criterion(model(x.to(device)), y.to(device)).backward()\n",
    ),
    "progress bar around the loader": script(
        "from tqdm import tqdm\nloader = DataLoader(images, 64)  # found\n",
        "for x, y in tqdm(loader, desc='train'):\n    criterion(model(x.to(device)), y.to(device)).backward()\n",
    ),
    "copied into a buffer on the GPU": script(
        "loader = DataLoader(images, 64)  # found\nbuffer = torch.empty(64, 8).cuda()\n",
        "for x, y in loader:\n    buffer.copy_(x)\n    criterion(model(buffer), y.cuda()).backward()\n",
    ),
    "batch converted to a type of the GPU": script(
        """\
        Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
        loader = DataLoader(images, 64)  # found
        """,
        "for x, _ in loader:\n    real = torch.autograd.Variable(x.type(Tensor))\n    model(real).sum().backward()\n",
    ),
    "one batch at a time, in a loop": script(
        "loader = DataLoader(images, 64)  # found\n",
        "for step in range(100):\n    x, y = next(iter(loader))\n    criterion(model(x.to(device)), y).backward()\n",
    ),
    "prepared by a method of the model": script(
        "from speech import Synthesizer\nspeaker = Synthesizer().cuda()\nloader = DataLoader(images, 64)  # found\n",
        "for batch in loader:\n    x, y = speaker.parse_batch(batch)\n    criterion(speaker(x), y).backward()\n",
    ),
    "handed to code from elsewhere with the device": script(
        "from engine import train_one_epoch\nloader = DataLoader(images, 64)  # found\n",
        "for epoch in range(10):\n    train_one_epoch(model, loader, optimizer, device)\n",
    ),
    "handed to a trainer that was given the model": script(
        "from engine import Trainer\nloader = DataLoader(images, 64)  # found\ntrainer = Trainer(model, optimizer)\n",
        "trainer.fit(loader, epochs=10)\n",
    ),
    "progress bar in the place of the loader": script(
        "from tqdm import tqdm\nloader = DataLoader(images, 64)  # found\nif device.type:\n    loader = tqdm(loader)\n"
    ),
    "one loader per phase": script(
        'loaders = {phase: DataLoader(images, 64) for phase in ["train", "val"]}  # found\n',
        'for phase in ["train", "val"]:\n'
        "    for x, y in loaders[phase]:\n"
        "        criterion(model(x.to(device)), y.to(device)).backward()\n",
    ),
    "loader that never ends": script(
        """\
        def cycle(loader):
            while True:
                for batch in loader:
                    yield batch

        loader = DataLoader(images, 64)  # found
        batches = cycle(loader)
        """,
        "for step in range(100):\n    x, y = next(batches)\n    criterion(model(x.cuda()), y.cuda()).backward()\n",
    ),
    "progress bar that is entered": script(
        "from tqdm import tqdm\nloader = DataLoader(images, 64)  # found\n",
        "with tqdm(loader) as bar:\n"
        "    for x, y in bar:\n"
        "        criterion(model(x.to(device)), y.to(device)).backward()\n",
    ),
    "moved by a function from elsewhere": script(
        "from batches import to_cuda\nloader = DataLoader(images, 64)  # found\n",
        "for batch in loader:\n    x, y = to_cuda(batch)\n    criterion(model(x), y).backward()\n",
    ),
    "hook of a Lightning module": dedent(
        """\
        import lightning as L
        from torch import nn
        from torch.utils.data import DataLoader
        from torchvision import datasets

        class Classifier(L.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(8, 2)

            def train_dataloader(self):
                return DataLoader(datasets.CIFAR10("data"), 64)  # found

            def training_step(self, batch, index):
                x, y = batch
                return nn.functional.cross_entropy(self.layer(x), y)

        L.Trainer(accelerator="gpu").fit(Classifier())
        """
    ),
    "graph loader": HEADER
    + dedent(
        """\
        from torch_geometric.datasets import PPI
        from torch_geometric.loader import DataLoader as GraphLoader

        loader = GraphLoader(PPI("data"), batch_size=2, shuffle=True)  # found
        for graph in loader:
            graph = graph.to(device)
            criterion(model(graph.x), graph.y).backward()
        """
    ),
    "neighbour loader with options in sight": HEADER
    + dedent(
        """\
        from torch_geometric.datasets import Reddit
        from torch_geometric.loader import NeighborLoader

        graph = Reddit("data")[0]
        options = dict(batch_size=1024, num_workers=4, persistent_workers=True)
        loader = NeighborLoader(graph, num_neighbors=[25, 10], shuffle=True, **options)  # found
        for batch in loader:
            out = model(batch.x.to(device))
            criterion(out, batch.y.to(device)).backward()
        """
    ),
}

LOOK_ALIKES = {
    "a list of samples that another file computed": script(
        """\
        from sklearn.model_selection import train_test_split

        class Training:
            def set_samples(self, samples: list):
                samples, held_out = train_test_split(samples, test_size=0.1)
                self.samples = DataLoader(samples, batch_size=8)

        training = Training()
        loader = training.samples
        """
    ),
    "pinned": script("loader = DataLoader(images, 64, pin_memory=True)\n"),
    "pinned by position": script("loader = DataLoader(images, 64, True, None, None, 4, None, True)\n"),
    "pinned where there is a GPU": script("loader = DataLoader(images, 64, pin_memory=device.type == 'cuda')\n"),
    "pinned by the command line": script(
        """\
        args = argparse.ArgumentParser().parse_args()
        loader = DataLoader(images, 64, pin_memory=args.pin)
        """
    ),
    "options of the caller": script(
        """\
        def make(**options):
            return DataLoader(images, 64, **options)

        loader = make(pin_memory=True)
        """
    ),
    "options from a file": script(
        """\
        import json

        options = json.load(open("loader.json"))
        loader = DataLoader(images, **options)
        """
    ),
    "options pinned in a dict": script(
        """\
        options = dict(batch_size=64, pin_memory=True)
        loader = DataLoader(images, **options)
        """
    ),
    "options pinned on one branch": script(
        """\
        options = {"batch_size": 64}
        if torch.cuda.is_available():
            gpu_options = {"num_workers": 1, "pin_memory": True}
            options.update(gpu_options)
        loader = DataLoader(images, **options)
        """
    ),
    "options chosen by a conditional": script(
        """\
        options = {"num_workers": 1, "pin_memory": True} if torch.cuda.is_available() else {}
        loader = DataLoader(images, 64, **options)
        """
    ),
    "options set by key": script(
        """\
        options = {}
        options["pin_memory"] = True
        loader = DataLoader(images, 64, **options)
        """
    ),
    "options that escape": script(
        """\
        from settings import adapt

        options = {"batch_size": 64}
        adapt(options)
        loader = DataLoader(images, **options)
        """
    ),
    "pinned afterwards": script("loader = DataLoader(images, 64)\nloader.pin_memory = True\n"),
    "script for the CPU": dedent(
        """\
        import torch
        from torch import nn
        from torch.utils.data import DataLoader
        from torchvision import datasets

        loader = DataLoader(datasets.MNIST("data"), 64)
        model = nn.Linear(8, 2)
        for x, y in loader:
            nn.functional.cross_entropy(model(x), y).backward()
        """
    ),
    "batches that stay on the host": script(
        "loader = DataLoader(images, 64)\n", "total = 0\nfor x, y in loader:\n    total += x.mean().item()\n"
    ),
    "Apple GPU": dedent(
        """\
        import torch
        from torch import nn
        from torch.utils.data import DataLoader
        from torchvision import datasets

        device = torch.device("mps")
        model = nn.Linear(8, 2).to(device)
        for x, y in DataLoader(datasets.MNIST("data"), 64):
            nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
        """
    ),
    "tensors that are on the GPU": script(
        """\
        x = torch.randn(100, 8).to(device)
        y = torch.zeros(100).long().to(device)
        loader = DataLoader(torch.utils.data.TensorDataset(x, y), 64)
        """
    ),
    "tensors made on the GPU": script(
        """\
        points = torch.utils.data.TensorDataset(torch.randn(100, 8, device=device), torch.zeros(100, device="cuda"))
        loader = DataLoader(points, 64, shuffle=True)
        """
    ),
    "subset of tensors on the GPU": script(
        """\
        points = torch.utils.data.TensorDataset(torch.randn(100, 8).cuda(), torch.zeros(100).cuda())
        train, test = torch.utils.data.random_split(points, [80, 20])
        loader = DataLoader(train, 64, shuffle=True)
        """
    ),
    "graph on the GPU": HEADER
    + dedent(
        """\
        from torch_geometric.datasets import Reddit
        from torch_geometric.loader import NeighborLoader

        graph = Reddit("data")[0].to(device)
        for batch in NeighborLoader(graph, num_neighbors=[25, 10]):
            batch = batch.to(device)
            criterion(model(batch.x), batch.y).backward()
        """
    ),
    "graph that was moved before": HEADER
    + dedent(
        """\
        from torch_geometric.datasets import Reddit
        from torch_geometric.loader import NeighborLoader

        graph = Reddit("data")[0]
        graph.to(device, "x", "y")
        for batch in NeighborLoader(graph, num_neighbors=[25, 10]):
            criterion(model(batch.x), batch.edge_index.to(device)).backward()
        """
    ),
    "hook of a Lightning module for the CPU": dedent(
        """\
        import lightning as L
        from torch.utils.data import DataLoader
        from torchvision import datasets

        class Images(L.LightningDataModule):
            def train_dataloader(self):
                return DataLoader(datasets.CIFAR10("data"), 64)

        L.Trainer(accelerator="cpu").fit(None, Images())
        """
    ),
    "the branch without a GPU": script(
        """\
        if torch.cuda.is_available():
            loader = DataLoader(images, 64, pin_memory=True)
        else:
            loader = DataLoader(images, 64)
        """
    ),
    "the branch without a GPU, first": script(
        """\
        args = argparse.ArgumentParser().parse_args()
        if not args.cuda:
            loader = DataLoader(images, 64)
        else:
            loader = DataLoader(images, 64, pin_memory=True)
        """
    ),
    "TPU": dedent(
        """\
        import torch
        import torch_xla.core.xla_model as xm
        from torch import nn
        from torch.utils.data import DataLoader
        from torchvision import datasets

        device = xm.xla_device()
        model = nn.Linear(8, 2).to(device)
        for x, y in DataLoader(datasets.MNIST("data"), 64):
            nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
        """
    ),
    "rows to look up elsewhere": script(
        """\
        points, labels = torch.randn(100, 8), torch.zeros(100).long()
        train_idx = torch.randperm(100)
        loader = DataLoader(train_idx, 64)
        """,
        "for i in loader:\n    criterion(model(points[i].to(device)), labels[i].to(device)).backward()\n",
    ),
    "one batch to look at": script(
        "loader = DataLoader(images, 64)\nx, y = next(iter(loader))\n",
        "for width in range(10):\n    print(model(x.to(device)).shape, y.to(device))\n",
    ),
    "dataset that moves its samples": script(
        """\
        class Points(Dataset):
            def __init__(self, x, y):
                self.x, self.y = x, y

            def __len__(self):
                return len(self.x)

            def __getitem__(self, i):
                return torch.tensor(self.x[i]).to(device), torch.tensor(self.y[i]).to(device)

        loader = DataLoader(Points([1.0], [0]), 64)
        """
    ),
    "collate function that moves the batch": script(
        """\
        def collate(samples):
            x, y = zip(*samples)
            return torch.stack(x).to(device), torch.tensor(y).to(device)

        loader = DataLoader(images, 64, collate_fn=collate)
        """
    ),
    "collate lambda that moves the batch": script(
        "loader = DataLoader(images, 64, collate_fn=lambda b: tuple(t.to(device) for t in "
        "data.dataloader.default_collate(b)))\n"
    ),
    "tensors on the GPU by default": script(
        """\
        torch.set_default_tensor_type("torch.cuda.FloatTensor")
        loader = DataLoader(images, 64)
        """
    ),
    "device as the default": script(
        """\
        torch.set_default_device(device)
        loader = DataLoader(images, 64)
        """
    ),
    "batches of strings": script(
        """\
        class Names(Dataset):
            def __init__(self):
                self.names = [line.strip() for line in open("names.txt")]

            def __len__(self):
                return len(self.names)

            def __getitem__(self, i):
                return self.names[i]

        def encode(names):
            return torch.tensor([[ord(c) for c in name.ljust(8)[:8]] for name in names])

        loader = DataLoader(Names(), 64)
        """,
        "for names in loader:\n    x = encode(names).to(device)\n    model(x.float()).sum().backward()\n",
    ),
    "someone's own loader class": dedent(
        """\
        import torch
        from torch import nn

        class DataLoader:
            def __init__(self, samples, batch_size):
                self.samples = samples

            def __iter__(self):
                return iter(self.samples)

        model = nn.Linear(8, 2).cuda()
        for x in DataLoader([torch.randn(8)], 64):
            model(x.cuda()).sum().backward()
        """
    ),
    "loader subclass with its own iteration": HEADER
    + dedent(
        """\
        class ThreadedLoader(DataLoader):
            def __iter__(self):
                for indices in self.batch_sampler:
                    yield self.collate_fn([self.dataset[i] for i in indices])

        loader = ThreadedLoader(images, 64)
        """
    )
    + LOOP,
    "never iterated": script("loader = DataLoader(images, 64)\n", "print(len(loader))\n"),
}
