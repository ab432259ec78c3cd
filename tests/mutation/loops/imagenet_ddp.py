"""ImageNet on several GPUs with torchrun: DDP, a distributed sampler, mixed precision, meters, gradient clipping."""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.utils.data
from torch.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, models, transforms


class AverageMeter:
    """Sums on the device; the host asks for the average when it prints."""

    def __init__(self, name, fmt=":f"):
        self.name = name
        self.fmt = fmt
        self.reset()

    def reset(self):
        self.sum = 0.0
        self.count = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return float(self.sum) / max(self.count, 1)

    def __str__(self):
        return ("{name} {avg" + self.fmt + "}").format(name=self.name, avg=self.avg)


def accuracy(output, target, k):
    _, pred = output.topk(k, 1, True, True)
    return pred.eq(target.view(-1, 1)).any(dim=1).float().mean() * 100.0


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("-a", "--arch", default="resnet50")
    parser.add_argument("-j", "--workers", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("-b", "--batch-size", type=int, default=256)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--clip-grad", type=float, default=1.0)
    parser.add_argument("-p", "--print-freq", type=int, default=20)
    parser.add_argument("-e", "--evaluate", action="store_true")
    return parser.parse_args()


def main():
    args = get_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")

    model = models.__dict__[args.arch]().cuda(local_rank)
    model = DistributedDataParallel(model, device_ids=[local_rank])
    criterion = nn.CrossEntropyLoss().cuda(local_rank)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
    scaler = GradScaler("cuda")

    normalize = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    train_dataset = datasets.ImageFolder(
        os.path.join(args.data, "train"),
        transforms.Compose(
            [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(), normalize]
        ),
    )
    val_dataset = datasets.ImageFolder(
        os.path.join(args.data, "val"),
        transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(), normalize]),
    )
    train_sampler = DistributedSampler(train_dataset)
    val_sampler = DistributedSampler(val_dataset, shuffle=False, drop_last=True)
    train_loader = torch.utils.data.DataLoader(
        train_dataset,
        batch_size=args.batch_size,
        sampler=train_sampler,
        num_workers=args.workers,
        pin_memory=True,
        persistent_workers=True,
    )
    val_loader = torch.utils.data.DataLoader(
        val_dataset,
        batch_size=args.batch_size,
        sampler=val_sampler,
        num_workers=args.workers,
        pin_memory=True,
        persistent_workers=True,
    )

    if args.evaluate:
        validate(val_loader, model, criterion, args)
        return

    best_acc1 = 0.0
    for epoch in range(args.epochs):
        train_sampler.set_epoch(epoch)
        train(train_loader, model, criterion, optimizer, scaler, epoch, args)
        acc1 = validate(val_loader, model, criterion, args)
        scheduler.step()
        if dist.get_rank() == 0 and acc1 > best_acc1:
            best_acc1 = acc1
            torch.save({"epoch": epoch + 1, "state_dict": model.module.state_dict()}, "model_best.pth.tar")
    dist.destroy_process_group()


def train(train_loader, model, criterion, optimizer, scaler, epoch, args):
    losses = AverageMeter("Loss", ":.4e")
    top1 = AverageMeter("Acc@1", ":6.2f")
    model.train()
    begin = time.time()
    for i, (images, target) in enumerate(train_loader):
        images = images.cuda(non_blocking=True)
        target = target.cuda(non_blocking=True)

        with autocast("cuda"):
            output = model(images)
            loss = criterion(output, target)

        losses.update(loss.detach(), images.size(0))
        top1.update(accuracy(output.detach(), target, 1), images.size(0))  # no mutant detach: ranks carry no graph

        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
        scaler.step(optimizer)
        scaler.update()

        if i % args.print_freq == 0 and dist.get_rank() == 0:
            print(f"Epoch [{epoch}][{i}/{len(train_loader)}] {losses} {top1}")
    if dist.get_rank() == 0:
        torch.cuda.synchronize()  # no mutant synchronize: over a whole epoch it makes no difference
        print(f"epoch {epoch} took {time.time() - begin:.1f} s")


def validate(val_loader, model, criterion, args):
    losses = AverageMeter("Loss", ":.4e")
    top1 = AverageMeter("Acc@1", ":6.2f")
    model.eval()
    with torch.no_grad():
        for i, (images, target) in enumerate(val_loader):
            images = images.cuda(non_blocking=True)
            target = target.cuda(non_blocking=True)
            with autocast("cuda"):
                output = model(images)
                loss = criterion(output, target)
            losses.update(loss, images.size(0))
            top1.update(accuracy(output, target, 1), images.size(0))
            if i % args.print_freq == 0 and dist.get_rank() == 0:
                print(f"Test [{i}/{len(val_loader)}] {losses} {top1}")
    totals = torch.tensor([top1.sum, top1.count], device="cuda")
    dist.all_reduce(totals)
    total, count = totals.tolist()
    return total / count


if __name__ == "__main__":
    main()
