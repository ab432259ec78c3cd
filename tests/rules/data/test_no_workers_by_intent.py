"""DATA01: loaders of single inputs, for which somebody wrote that there are to be no workers."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.rules.data.test_no_workers import HEADER
from tests.support import findings, fixed

CROPS = """\
from crops import Crops

def crops_of(image):
    return DataLoader(Crops(image, transform=transforms.ToTensor()), 8, {given})

def serve():
    def infer(image):
        loader = DataLoader(Crops(image, transform=transforms.ToTensor()), 8, {given})
        for x, y in loader:
            print(model(x.to(device)))
    return infer

for image in images:
    loader = DataLoader(Crops(image, transform=transforms.ToTensor()), 8, {given})
    for x, y in loader:
        print(model(x.to(device)))
for x, y in crops_of(images[0]):
    print(model(x.to(device)))
"""


@pytest.mark.parametrize(("given", "count"), [("num_workers=0", 1), ("shuffle=False", 3)])
def test_none_may_be_wanted_for_the_crops_of_one_image(given: str, count: int) -> None:
    assert len(findings(HEADER + CROPS.format(given=given), "DATA01")) == count


@pytest.mark.parametrize(
    ("around", "count"),
    [("for epoch in range(20):", 1), ("for fold in range(len(folds)):", 0), ("while folds.pop():", 0)],
)
def test_an_epoch_is_no_input_of_its_own(around: str, count: int) -> None:
    code = f"""
    {around}
        loader = DataLoader(images, 64, shuffle=True, num_workers=0)
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
    """
    assert len(findings(HEADER + dedent(code), "DATA01")) == count


@pytest.mark.parametrize(
    ("line", "is_fixed"),
    [
        ("print(options.batch)", True),
        ("print(options.workers)", False),  # which says how many there are where others are made
        ("torch.distributed.init_process_group('nccl')", False),  # each of several processes would start as many
    ],
)
def test_how_many_workers_there_may_be_is_said_elsewhere(line: str, is_fixed: bool) -> None:
    code = f"""\
    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder

    def main(options, net, optimizer):
        {line}
        loader = DataLoader(ImageFolder("images"), batch_size=8, shuffle=True)
        for epoch in range(9):
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
                optimizer.step()

    if __name__ == "__main__":
        main()
    """
    assert ("num_workers=min(8" in fixed(dedent(code), "DATA01", unsafe=True)) is is_fixed


def test_a_function_that_is_told_how_many_workers_tells_all_its_loaders() -> None:
    code = """\
    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder

    def build(prefetch):
        train = DataLoader(ImageFolder("train"), batch_size=8, shuffle=True, num_workers=prefetch)
        return train, DataLoader(ImageFolder("test"), batch_size=8)

    def main(net, optimizer):
        train, test = build(4)
        for epoch in range(9):
            for x, y in train:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
                optimizer.step()
            for x, y in test:
                print((net(x.cuda()).argmax(1) == y.cuda()).sum())

    if __name__ == "__main__":
        main()
    """
    made = fixed(dedent(code), "DATA01", unsafe=True)
    assert 'ImageFolder("test"), batch_size=8, num_workers=prefetch)' in made
