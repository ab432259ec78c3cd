"""Batches whose copy to a GPU blocks the host, marked `found`, and what looks like them; behind HEADER."""

from __future__ import annotations

from textwrap import dedent

HEADER = """\
import time

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
images = datasets.CIFAR10("data", transform=transforms.ToTensor())
model = nn.Linear(8, 2).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(images, 64, pin_memory=True, num_workers=4)
"""


def script(body: str) -> str:
    return HEADER + dedent(body)


VARIANTS = {
    "a cast that changes nothing as a rule": script(
        """\
        for x, y in loader:
            criterion(model(x.to(device)), y.long().to(device)).backward()  # found twice
        """
    ),
    "tuple assignment": script(
        """\
        for x, y in loader:
            x, y = x.to(device), y.to(device)  # found twice
            criterion(model(x), y).backward()
        """
    ),
    "cuda()": script(
        """\
        for x, y in loader:
            x = x.cuda()  # found
            y = y.cuda(0)  # found
            criterion(model(x), y).backward()
        """
    ),
    "parts of a tuple batch": script(
        """\
        for step, batch in enumerate(loader):
            x = batch[0].to(device)  # found
            y = batch[1].to(device)  # found
            criterion(model(x), y).backward()
        """
    ),
    "parts of a dict batch": script(
        """\
        for batch in loader:
            x, y = batch["x"], batch["y"]
            x = x.to(device=device, dtype=torch.float32)  # found
            y = y.to(device, torch.long)  # found
            criterion(model(x), y).backward()
        """
    ),
    "dict comprehension": script(
        """\
        for batch in loader:
            batch = {k: v.to(device) for k, v in batch.items()}  # found
            criterion(model(batch["x"]), batch["y"]).backward()
        """
    ),
    "list comprehension": script(
        """\
        for batch in loader:
            x, y = [part.to(device) for part in batch]  # found
            criterion(model(x), y).backward()
        """
    ),
    "generator and tuple": script(
        """\
        for batch in loader:
            x, y = tuple(part.to(device) for part in batch)  # found
            criterion(model(x), y).backward()
        """
    ),
    "map and lambda": script(
        """\
        for batch in loader:
            x, y = map(lambda part: part.to(device), batch)  # found
            criterion(model(x), y).backward()
        """
    ),
    "keys one by one": script(
        """\
        for batch in loader:
            for key in batch:
                batch[key] = batch[key].to(device)  # found
            criterion(model(batch["x"]), batch["y"]).backward()
        """
    ),
    "chained": script(
        """\
        for x, y in loader:
            x = x.to(device).float()  # found
            criterion(model(x), y.cuda()).backward()  # found
        """
    ),
    "seen in another shape": script(
        """\
        for x, y in loader:
            x = x.reshape(-1, 8)
            flat = x.to(device)  # found
            y = y.long().view(-1).cuda()  # found
            criterion(model(flat), y).backward()
        """
    ),
    "variable": script(
        """\
        for x, y in loader:
            x = torch.autograd.Variable(x).cuda()  # found
            y = torch.autograd.Variable(y.cuda())  # found
            criterion(model(x), y).backward()
        """
    ),
    "device from the command line": script(
        """\
        from options import args
        for x, y in loader:
            x = x.to(args.device)  # found
            criterion(model(x), y.to(device=args.device)).backward()  # found
        """
    ),
    "in the call": script(
        """\
        for x, y in loader:
            criterion(model(x.to(device)), y.to(device)).backward()  # found twice
        """
    ),
    "helper of the file": script(
        """\
        def move(part):
            return part.to(device)  # found

        for x, y in loader:
            criterion(model(move(x)), move(y)).backward()
        """
    ),
    "loader handed to a function": script(
        """\
        def train(batches, device):
            for x, y in batches:
                x = x.to(device)  # found
                y = y.to(device)  # found
                criterion(model(x), y).backward()

        train(loader, device)
        """
    ),
    "loader of a trainer": script(
        """\
        class Trainer:
            def __init__(self, rank):
                self.rank = rank
                self.loader = self.prepare(images)

            def prepare(self, dataset):
                return DataLoader(dataset, batch_size=64, pin_memory=True)

            def run_epoch(self, batches):
                for x, y in batches:
                    x = x.to(self.rank)  # found
                    y = y.to(self.rank)  # found
                    criterion(model(x), y).backward()

            def fit(self):
                for epoch in range(10):
                    self.run_epoch(self.loader)
        """
    ),
    "pinned through a dict": script(
        """\
        options = dict(batch_size=64, num_workers=4, pin_memory=True)
        train_loader = DataLoader(images, shuffle=True, **options)
        for x, y in train_loader:
            x = x.to("cuda:0")  # found
            criterion(model(x), y.to(0)).backward()  # found
        """
    ),
    "explicitly blocking": script(
        """\
        for x, y in loader:
            x = x.to(device, non_blocking=False)  # found
            criterion(model(x), y.cuda(non_blocking=True)).backward()
        """
    ),
    "not pinned, which is a finding too": script(
        """\
        pageable = DataLoader(images, 64)
        for x, y in pageable:
            x = x.to(device)  # found
            criterion(model(x), y.cuda(non_blocking=True)).backward()
        """
    ),
}


LOOK_ALIKES = {
    "what accelerate has copied already, drawn from a generator of the program": script(
        """\
        from accelerate import Accelerator

        def forever(batches):
            while True:
                for batch in batches:
                    yield batch

        accelerator = Accelerator()
        batches = forever(accelerator.prepare(loader))
        for step in range(1000):
            batch = next(batches).to(accelerator.device)
            accelerator.backward(model(batch).mean())
        """
    ),
    "the branch for a program without a GPU": script(
        """\
        for x, y in loader:
            if device == "cuda":
                x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            else:
                x, y = x.to(device), y.to(device)
            criterion(model(x), y).backward()
        """
    ),
    "what had to be cast, which is copied by that to memory that is not pinned": script(
        """\
        for x, boxes in loader:
            boxes = boxes.float()
            criterion(model(x.half().view(-1, 8).to(device)), boxes.to(device)).backward()
        """
    ),
    "a copy that is changed, in memory that is not pinned": script(
        """\
        for x, tokens in loader:
            tokens = tokens.clone()
            tokens[tokens == -100] = 0
            criterion(model(x.half().view(-1, 8).to(device)), tokens.to(device)).backward()
        """
    ),
    "columns, which are laid out anew in memory that is not pinned": script(
        """\
        for x, labels in loader:
            action = labels[:, 0].squeeze()
            loss = criterion(model(x.cuda(non_blocking=True)), labels[:, 1].cuda())
            (loss + criterion(model.head(x), action.cuda())).backward()
        """
    ),
    "columns, made contiguous on the host": script(
        """\
        for x, y in loader:
            tokens = x[:, 0:-1].contiguous().to(device)
            criterion(model(tokens), x[:, 1:].reshape(-1).long().cuda()).backward()
        """
    ),
    "rows at some places, which are copied to memory that is not pinned": script(
        """\
        for x, labels in loader:
            places = torch.randperm(8)
            kept = labels[places[:4]]
            criterion(model(x[[0, 1, 2, 3]].to(device)), kept.to(device)).backward()
            criterion(model(x[:1].expand(8, -1).to(device)), labels.cuda(non_blocking=True)).backward()
        """
    ),
    "a layout that the batch did not have": script(
        """\
        for x, y in loader:
            criterion(model(x.permute(0, 2, 1).to(device)), y.cuda(non_blocking=True)).backward()
        """
    ),
    "asynchronous": script(
        """\
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.cuda(non_blocking=True)
            criterion(model(x), y).backward()
        """
    ),
    "asynchronous by position": script(
        """\
        for x, y in loader:
            x, y = x.to(device, torch.float32, True), y.cuda(None, True)
            criterion(model(x), y).backward()
        """
    ),
    "asynchronous if asked": script(
        """\
        overlap = True
        for x, y in loader:
            criterion(model(x.to(device, non_blocking=overlap)), y.to(device, non_blocking=overlap)).backward()
        """
    ),
    "options of the copy": script(
        """\
        import json
        options = json.load(open("copy.json"))
        for x, y in loader:
            criterion(model(x.to(device, **options)), y.to(device, **options)).backward()
        """
    ),
    "to the host": script(
        """\
        outputs = []
        for x, y in loader:
            out = model(x.to(device, non_blocking=True))
            outputs.append(out.detach().to("cpu"))
            print(y.to(torch.device("cpu")))
        """
    ),
    "the first batch alone": script(
        """\
        for x, y in loader:
            print(model(x.to(device)), y)
            break
        """
    ),
    "type only": script(
        """\
        for x, y in loader:
            x = x.to(torch.float32)
            y = y.to(dtype=torch.long)
            x = x.to(device, non_blocking=True)
            criterion(model(x), y.cuda(non_blocking=True)).backward()
        """
    ),
    "like another tensor": script(
        """\
        reference = torch.zeros(1)
        for x, y in loader:
            print(x.to(reference).mean())
        """
    ),
    "model": script(
        """\
        for x, y in loader:
            model.to(device)
            criterion(model(x.to(device, non_blocking=True)), y.to(device, non_blocking=True)).backward()
        """
    ),
    "moved again to a device from the command line": script(
        """\
        from options import args
        for x, y in loader:
            x = x.to(args.device, non_blocking=True)
            x = x.to(args.device)
            model(x).sum().backward()
        """
    ),
    "moved again": script(
        """\
        for x, y in loader:
            x = x.to(device, non_blocking=True)
            y = y.to(device, non_blocking=True)
            criterion(model(x.to(device)), y.to(device)).backward()
        """
    ),
    "Apple GPU": script(
        """\
        apple = torch.device("mps")
        for x, y in loader:
            criterion(model(x.to(apple)), y.to("mps")).backward()
        """
    ),
    "script for the CPU": dedent(
        """\
        import torch
        from torch import nn
        from torch.utils.data import DataLoader
        from torchvision import datasets

        device = torch.device("cpu")
        model = nn.Linear(8, 2)
        for x, y in DataLoader(datasets.MNIST("data"), 64, pin_memory=True):
            nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
        """
    ),
    "the copy is timed": script(
        """\
        for x, y in loader:
            start = time.perf_counter()
            x = x.to(device)
            y = y.to(device)
            print("copy", time.perf_counter() - start)
        """
    ),
    "the clock starts when the copy is there": script(
        """\
        for x, y in loader:
            x = x.to(device)
            start = time.perf_counter()
            model(x)
            torch.cuda.synchronize()
            print("network", time.perf_counter() - start)
        """
    ),
    "fresh tensor": script(
        """\
        for step in range(10):
            noise = torch.randn(64, 8).to(device)
            model(noise).sum().backward()
        """
    ),
    "pinning lost in numpy": script(
        """\
        for x, y in loader:
            flipped = torch.from_numpy(x.numpy()[:, ::-1].copy())
            model(flipped.to(device)).sum().backward()
        """
    ),
    "one batch to look at": script(
        """\
        x, y = next(iter(loader))
        print(model(x.to(device)).shape)
        """
    ),
    "loader of the caller": HEADER.replace("loader = DataLoader(images, 64, pin_memory=True, num_workers=4)\n", "")
    + dedent(
        """\
        def train(batches, device):
            for x, y in batches:
                criterion(model(x.to(device)), y.to(device)).backward()
        """
    ),
    "on the GPU already": script(
        """\
        points = torch.utils.data.TensorDataset(torch.randn(64, 8).to(device), torch.zeros(64).to(device))
        for x, y in DataLoader(points, 8):
            criterion(model(x.to(device)), y.to(device)).backward()
        """
    ),
    "something else with a method to": script(
        """\
        class Packet:
            def __init__(self, x):
                self.x = x

            def to(self, device):
                return Packet(self.x)

        for x, y in loader:
            packet = Packet(x).to(device)
            print(packet)
        """
    ),
}
