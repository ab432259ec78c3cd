"""DATA02: where the device is an option of the program, and the CPU by default, that option decides."""

from __future__ import annotations

import pytest

from tests.support import findings, fixed

PROGRAM = """\
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

def train(model, loader, optimizer, device):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=str, default="DEFAULT")
    args = parser.parse_args()
    MADE
    images = datasets.CIFAR10("data", transform=transforms.ToTensor())
    loader = DataLoader(images, batch_size=64, num_workers=4)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, loader, optimizer, DEVICE)

main()
"""


def program(made: str, device: str, default: str = "cpu") -> str:
    return PROGRAM.replace("MADE", made).replace("DEVICE", device).replace("DEFAULT", default)


@pytest.mark.parametrize(
    ("made", "device", "condition"),
    [
        ("device = torch.device(args.device)", "device", 'device.type == "cuda"'),
        ("args.device = torch.device(args.device)", "args.device", 'args.device.type == "cuda"'),
        ("pass", "args.device", 'str(args.device).startswith("cuda")'),
        ("device = args.device", "device", 'str(device).startswith("cuda")'),
    ],
)
def test_the_option_decides_what_is_pinned(made: str, device: str, condition: str) -> None:
    after = fixed(program(made, device), "DATA02")
    assert f"num_workers=4, pin_memory={condition})" in after.replace("\n" + " " * 24, " ")
    usual = fixed(program(made, device, "cuda"), "DATA02")
    assert "pin_memory=torch.cuda.is_available())" in usual.replace("\n" + " " * 24, " ")


def test_a_loader_that_does_not_know_the_device_is_left_alone() -> None:
    code = program("device = torch.device(args.device)", "device")
    begin = code.index("    images = "), code.index("    model = nn")
    made = code[begin[0] : begin[1]]
    helper = f"def build():\n{made}    return loader\n\n"
    code = code.replace(made, "    loader = build()\n").replace("def main", f"{helper}def main")
    assert len(findings(code, "DATA02")) == 1
    assert fixed(code, "DATA02") == code
    assert fixed(code.replace('default="cpu"', 'default="cuda"'), "DATA02") != code


def test_batches_that_go_to_cuda_whatever_the_option_says() -> None:
    code = program("pass", "args.device").replace("x.to(device), y.to(device)", "x.cuda(), y.cuda()")
    assert "pin_memory=True" in fixed(code, "DATA02")


@pytest.mark.parametrize(
    ("option", "before", "asks"),
    [
        ("pin_memory=True", "", False),
        ("pin_memory=args.pinned", "", True),
        ("pin_memory=True", "if torch.cuda.is_available(): ", True),
    ],
)
def test_a_loader_is_told_to_pin_like_the_one_beside_it(option: str, before: str, asks: bool) -> None:
    code = program("pass", "args.device", "cuda")
    other = f"{before}other = DataLoader(images, batch_size=9, num_workers=4, {option})"
    code = code.replace("    model = nn", f"    {other}\n    print(next(iter(other)))\n    model = nn")
    changed = fixed(code, "DATA02").replace(before, "")
    assert ("is_available" in changed) is asks


@pytest.mark.parametrize(("comment", "is_fixed"), [("# pin_memory=True,", False), ("# in turn", True)])
def test_pinning_that_was_taken_out_does_not_come_back(comment: str, is_fixed: bool) -> None:
    code = program("device = torch.device(args.device)", "device", "cuda")
    code = code.replace("batch_size=64, ", f"batch_size=64,  {comment}\n        ")
    assert len(findings(code, "DATA02")) == 1
    assert ("is_available()" in fixed(code, "DATA02")) is is_fixed
