"""One epoch of training and one evaluation of the detection project."""

import math
import sys

import torch
from utils import AverageMeter, MetricLogger


def train_one_epoch(model, criterion, data_loader, optimizer, scaler, device, epoch, max_norm=0.1, print_freq=50):
    model.train()
    criterion.train()
    logger = MetricLogger()
    window = AverageMeter()
    for step, (images, heatmaps, masks) in enumerate(data_loader):
        images = images.to(device, non_blocking=True)
        heatmaps = heatmaps.to(device, non_blocking=True)
        masks = masks.to(device, non_blocking=True)

        with torch.autocast("cuda"):
            outputs = model(images)
            loss_dict = criterion(outputs, heatmaps, masks)
            loss = sum(loss_dict.values())

        optimizer.zero_grad()
        scaler.scale(loss).backward()
        if max_norm > 0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()

        logger.update(loss=loss.detach(), **{name: part.detach() for name, part in loss_dict.items()})
        if step % print_freq == 0:
            value = loss.item()
            if not math.isfinite(value):
                print(f"Loss is {value}, stopping training")
                sys.exit(1)
            window.update(value)
            print(f"epoch {epoch} [{step}/{len(data_loader)}] loss {window.avg:.4f}")
    return logger.summary()


@torch.no_grad()
def evaluate(model, criterion, data_loader, device):
    model.eval()
    criterion.eval()  # no mutant eval: the loss has no layer that minds
    logger = MetricLogger()
    for images, heatmaps, masks in data_loader:
        images = images.to(device, non_blocking=True)
        heatmaps = heatmaps.to(device, non_blocking=True)
        masks = masks.to(device, non_blocking=True)
        outputs = model(images)
        loss_dict = criterion(outputs, heatmaps, masks)
        peaks = outputs["heatmap"].sigmoid().flatten(2).max(dim=2).values
        logger.update(loss=sum(loss_dict.values()), confidence=peaks.mean())
    return logger.summary()
