"""Entry point of the detection project: arguments, data, DDP, the epochs."""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from engine import evaluate, train_one_epoch
from model import build
from torch.utils.data import DataLoader, DistributedSampler
from utils import collate_fn, save_on_master, seed_everything

from coco import KeypointDataset


def get_args_parser():
    parser = argparse.ArgumentParser("Keypoint detector", add_help=False)
    parser.add_argument("--lr", default=1e-4, type=float)
    parser.add_argument("--batch_size", default=16, type=int)
    parser.add_argument("--epochs", default=140, type=int)
    parser.add_argument("--clip_max_norm", default=0.1, type=float)
    parser.add_argument("--num_classes", default=80, type=int)
    parser.add_argument("--num_workers", default=4, type=int)
    parser.add_argument("--weights", default="")
    parser.add_argument("--coco_path", default="/data/coco")
    parser.add_argument("--output_dir", default="out")
    parser.add_argument("--seed", default=42, type=int)
    return parser


def build_loaders(args):
    train_set = KeypointDataset(args.coco_path, "train2017")
    val_set = KeypointDataset(args.coco_path, "val2017")
    train_sampler = DistributedSampler(train_set)
    val_sampler = DistributedSampler(val_set, shuffle=False)
    options = {
        "batch_size": args.batch_size,
        "num_workers": args.num_workers,
        "collate_fn": collate_fn,
        "pin_memory": True,
        "persistent_workers": True,
    }
    train_loader = DataLoader(train_set, sampler=train_sampler, drop_last=True, **options)
    val_loader = DataLoader(val_set, sampler=val_sampler, **options)
    return train_loader, val_loader


def main(args):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    seed_everything(args.seed + rank)

    model, criterion = build(args)
    model.to(device)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device.index])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
    scaler = torch.amp.GradScaler("cuda")
    train_loader, val_loader = build_loaders(args)

    for epoch in range(args.epochs):
        train_loader.sampler.set_epoch(epoch)
        train_stats = train_one_epoch(
            model, criterion, train_loader, optimizer, scaler, device, epoch, args.clip_max_norm
        )
        scheduler.step()
        test_stats = evaluate(model, criterion, val_loader, device)
        print({"epoch": epoch, **train_stats, **{f"test_{k}": v for k, v in test_stats.items()}})
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        save_on_master(state, Path(args.output_dir) / "checkpoint.pth", rank)


if __name__ == "__main__":
    main(argparse.ArgumentParser(parents=[get_args_parser()]).parse_args())
