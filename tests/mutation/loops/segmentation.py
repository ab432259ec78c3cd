"""Semantic segmentation: an encoder-decoder, a confusion matrix on the device, polynomial decay per iteration."""

import argparse
import logging
import os

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision.models import segmentation

from datasets import Cityscapes

log = logging.getLogger("segmentation")


class ConfusionMatrix:
    """Counts on the device; `compute` is called once per evaluation."""

    def __init__(self, num_classes, device):
        self.num_classes = num_classes
        self.matrix = torch.zeros((num_classes, num_classes), dtype=torch.int64, device=device)

    def update(self, target, prediction):
        n = self.num_classes
        index = torch.where(target < n, n * target + prediction, n * n).flatten()
        self.matrix += torch.bincount(index, minlength=n * n + 1)[: n * n].reshape(n, n)

    def compute(self):
        h = self.matrix.float()
        accuracy = h.diagonal().sum() / h.sum()
        iou = h.diagonal() / (h.sum(1) + h.sum(0) - h.diagonal())
        return accuracy.item(), iou.nanmean().item()  # no mutant item: counts carry no graph


def criterion(outputs, target):
    losses = {name: F.cross_entropy(x, target, ignore_index=255) for name, x in outputs.items()}
    return losses["out"] + 0.5 * losses["aux"]


def train_one_epoch(model, optimizer, lr_scheduler, data_loader, device, epoch, print_freq):
    model.train()
    seen, epoch_loss = 0, torch.zeros(1, device=device)
    for step, (image, target) in enumerate(data_loader, start=1):
        image = image.to(device, non_blocking=True, memory_format=torch.channels_last)
        target = target.to(device, non_blocking=True)
        output = model(image)
        loss = criterion(output, target)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        lr_scheduler.step()

        epoch_loss += loss.detach() * image.size(0)
        seen += image.size(0)
        if step % print_freq == 0:
            lr = optimizer.param_groups[0]["lr"]
            log.info("epoch %d step %d lr %.5f loss %.4f", epoch, step, lr, epoch_loss.item() / seen)


def evaluate(model, data_loader, device, num_classes):
    model.eval()
    confmat = ConfusionMatrix(num_classes, device)
    with torch.inference_mode():
        for image, target in data_loader:
            image = image.to(device, non_blocking=True)
            target = target.to(device, non_blocking=True)
            output = model(image)["out"]
            confmat.update(target, output.argmax(1))
    return confmat.compute()


def main(args):
    device = torch.device(args.device)
    train_set = Cityscapes(args.data_path, split="train", crop=768)
    val_set = Cityscapes(args.data_path, split="val", crop=None)
    train_loader = DataLoader(
        train_set,
        args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        pin_memory=True,
        persistent_workers=True,
        drop_last=True,
    )
    val_loader = DataLoader(val_set, 1, num_workers=args.workers, pin_memory=True, persistent_workers=True)

    model = segmentation.deeplabv3_resnet50(num_classes=args.classes, aux_loss=True)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model).to(device, memory_format=torch.channels_last)
    backbone = [p for p in model.backbone.parameters() if p.requires_grad]
    heads = [p for p in model.classifier.parameters() if p.requires_grad]
    heads += [p for p in model.aux_classifier.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(
        [{"params": backbone, "lr": args.lr / 10}, {"params": heads}], lr=args.lr, momentum=0.9, weight_decay=1e-4
    )
    lr_scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, len(train_loader) * args.epochs, power=0.9)

    best = 0.0
    for epoch in range(args.epochs):
        train_one_epoch(model, optimizer, lr_scheduler, train_loader, device, epoch, args.print_freq)
        accuracy, miou = evaluate(model, val_loader, device, args.classes)
        log.info("epoch %d: pixel accuracy %.4f, mean IoU %.4f", epoch, accuracy, miou)
        if miou > best:
            best = miou
            torch.save(model.state_dict(), os.path.join(args.output_dir, "best.pth"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-path", default="/data/cityscapes")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--classes", type=int, default=19)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--print-freq", type=int, default=20)
    parser.add_argument("--output-dir", default=".")
    main(parser.parse_args())
