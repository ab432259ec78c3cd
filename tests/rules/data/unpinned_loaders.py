"""Loaders whose batches go to a GPU unpinned, marked `found`; behind HEADER."""

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


COLLATED = """\
from places import given

def collate_to(device):
    def collate(samples):
        x, y = (torch.stack(part) for part in zip(*samples))
        return x, {last}
    return collate

loader = DataLoader(images, 64, collate_fn=collate_to(given))  # found
"""

VARIANTS = {
    "batches that a function made for a device leaves where they are": script(COLLATED.format(last="y")),
    "loader with workers": script("loader = DataLoader(images, 64, shuffle=True, num_workers=4)  # found\n"),
    "qualified": script("loader = torch.utils.data.DataLoader(images, 64)  # found\n"),
    "module alias": script("loader = data.DataLoader(images, 64)  # found\n"),
    "class alias": script("loader = DL(images, 64)  # found\n"),
    "name bound to the class": script("Loader = DataLoader\nloader = Loader(images, 64)  # found\n"),
    "partial": script("make = functools.partial(DataLoader, batch_size=64)  # found\nloader = make(images)\n"),
    "one batch of each of several": script(
        "loaders = [DataLoader(part, 64, num_workers=4) for part in (images, images)]  # found\n",
        "for step in range(100):\n    for batches in zip(*loaders):\n        for x, y in batches:\n"
        "            criterion(model(x.to(device)), y.to(device)).backward()\n",
    ),
    "a batch of one after the other": script(
        "loaders = [DataLoader(part, 64, num_workers=4) for part in (images, images)]  # found\n",
        "drawn = [iter(loader) for loader in loaders]\nfor step in range(100):\n    x, y = next(drawn[step % 2])\n"
        "    criterion(model(x.to(device)), y.to(device)).backward()\n",
    ),
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
