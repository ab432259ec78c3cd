"""Latency and throughput of several models: warm-up, repeated forward passes, the clock read on an idle device."""

import argparse
import csv
import time

import torch
from torchvision import models


def measure(model, batch, warmup, repeats):
    with torch.no_grad():
        for _ in range(warmup):
            model(batch)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            model(batch)
        torch.cuda.synchronize()
        elapsed = time.perf_counter() - start
    return elapsed / repeats


def measure_step(model, batch, target, repeats):
    model.train()
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad(set_to_none=True)
        criterion(model(batch), target).backward()
        optimizer.step()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    t0 = time.time()
    for _ in range(repeats):
        step()
    torch.cuda.synchronize()
    return (time.time() - t0) / repeats


@torch.no_grad()
def first_latency(model, size):
    """Time of one pass on a cold model, in milliseconds."""
    image = torch.rand(1, 3, size, size, device="cuda")
    torch.cuda.synchronize()
    begin = time.perf_counter()
    output = model(image)
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - begin), output.shape


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="+", default=["resnet18", "resnet50", "mobilenet_v3_large"])
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--img-size", type=int, default=224)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--output", default="benchmark.csv")
    args = parser.parse_args()

    torch.backends.cudnn.benchmark = True
    rows = []
    for name in args.models:
        model = models.get_model(name, weights=None).cuda().eval()
        cold, shape = first_latency(model, args.img_size)
        batch = torch.randn(args.batch_size, 3, args.img_size, args.img_size, device="cuda")
        target = torch.randint(0, 1000, (args.batch_size,), device="cuda")
        infer = measure(model, batch, 10, args.repeats)
        train = measure_step(model, batch, target, args.repeats)
        rows.append([name, tuple(shape), cold, args.batch_size / infer, args.batch_size / train])
        print(
            f"{name}: cold {cold:.1f} ms, {args.batch_size / infer:.0f} img/s, training {args.batch_size / train:.0f}"
        )
        del model
        torch.cuda.empty_cache()

    with open(args.output, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "shape", "cold ms", "images/s", "training images/s"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
