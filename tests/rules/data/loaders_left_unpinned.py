"""Loaders that are pinned, or whose batches gain nothing from it."""

from __future__ import annotations

from textwrap import dedent

from tests.rules.data.unpinned_loaders import COLLATED, HEADER, LOOP, script

LOOK_ALIKES = {
    "images of which the loop makes tensors": HEADER
    + dedent(
        """
        for batch in DataLoader(images, 64, collate_fn=list):
            print(model(torch.stack([prepare(image) for image in batch]).to(device)).mean())
        """
    ),
    "batches that a function made for a device puts there": script(COLLATED.format(last="y.to(device)")),
    "a list that stands for no samples": script("loader = DataLoader([])\n"),
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
    "Apple GPU where there is one": dedent(
        """\
        import torch
        from torch import nn
        from torch.utils.data import DataLoader
        from torchvision import datasets

        device = torch.device("mps" if torch.backends.mps.is_available() else "cpu")
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
    "tensors of an object whose attributes go to the GPU": script(
        """\
        data = load()
        for name in dir(data):
            if torch.is_tensor(getattr(data, name)):
                setattr(data, name, getattr(data, name).to(device))
        loader = DataLoader(torch.utils.data.TensorDataset(data.x, data.y), 64)
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
    "one batch of each of several loaders": script(
        """\
        for width in range(10):
            loader = DataLoader(images, 64)
            batches = iter(loader)
            x, y = next(batches)
            print(model(x.to(device)).shape, y.to(device))
        loaders = [DataLoader(images, 64) for _ in range(3)]
        drawn = [iter(loader) for loader in loaders]
        for i in range(3):
            print(next(drawn[i])[0].to(device))
        """,
        "",
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
