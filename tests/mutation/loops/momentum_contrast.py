"""Self-supervised contrastive learning: a query encoder, a momentum encoder without gradients, and a queue of keys."""

import argparse
import math
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, models, transforms


class MoCo(nn.Module):
    def __init__(self, base_encoder, dim=128, K=65_536, m=0.999, T=0.07):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = base_encoder(num_classes=dim)
        self.encoder_k = base_encoder(num_classes=dim)
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()  # no mutant no_grad: the key encoder's parameters are frozen, there is no graph to keep
    def _momentum_update_key_encoder(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.mul_(self.m).add_(param_q, alpha=1.0 - self.m)

    @torch.no_grad()  # no mutant no_grad: keys come from the frozen encoder and carry no graph
    def _dequeue_and_enqueue(self, keys):
        keys = concat_all_gather(keys)
        positions = (self.queue_ptr + torch.arange(keys.size(0), device=keys.device)) % self.K
        self.queue[:, positions] = keys.T
        self.queue_ptr += keys.size(0)
        self.queue_ptr %= self.K

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():  # no mutant no_grad: the key encoder's parameters are frozen
            self._momentum_update_key_encoder()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", q, self.queue.clone())
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long, device=logits.device)
        self._dequeue_and_enqueue(k)
        return logits, labels


@torch.no_grad()  # no mutant no_grad: all_gather records no graph
def concat_all_gather(tensor):
    gathered = [torch.ones_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, tensor)
    return torch.cat(gathered, dim=0)


class TwoCrops:
    def __init__(self, transform):
        self.transform = transform

    def __call__(self, image):
        return self.transform(image), self.transform(image)


def build_loader(args):
    augmentation = transforms.Compose(
        [
            transforms.RandomResizedCrop(224, scale=(0.2, 1.0)),
            transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
            transforms.RandomGrayscale(p=0.2),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
        ]
    )
    dataset = datasets.ImageFolder(os.path.join(args.data, "train"), TwoCrops(augmentation))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(
        dataset,
        batch_size=args.batch_size,
        sampler=sampler,
        num_workers=args.workers,
        pin_memory=True,
        persistent_workers=True,
        drop_last=True,
    )
    return loader, sampler


def cosine_lr(optimizer, epoch, args):
    lr = args.lr * 0.5 * (1.0 + math.cos(math.pi * epoch / args.epochs))
    for param_group in optimizer.param_groups:
        param_group["lr"] = lr
    return lr


def train_one_epoch(loader, model, criterion, optimizer, epoch, gpu, print_freq):
    model.train()
    total = torch.zeros(2, device=f"cuda:{gpu}")
    for i, (crops, _) in enumerate(loader):
        im_q = crops[0].cuda(gpu, non_blocking=True)
        im_k = crops[1].cuda(gpu, non_blocking=True)
        output, target = model(im_q, im_k)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total[0] += loss.detach()
        total[1] += (output.argmax(dim=1) == target).float().mean()
        if i % print_freq == 0:
            loss_avg, acc_avg = (total / (i + 1)).tolist()
            print(f"[{epoch}][{i}/{len(loader)}] loss {loss_avg:.4f} contrast acc {100 * acc_avg:.2f}")
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--epochs", default=200, type=int)
    parser.add_argument("--batch-size", default=64, type=int)
    parser.add_argument("--workers", default=8, type=int)
    parser.add_argument("--lr", default=0.03, type=float)
    args = parser.parse_args()

    dist.init_process_group("nccl")
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    model = MoCo(models.resnet50).cuda(gpu)
    model = nn.parallel.DistributedDataParallel(model, device_ids=[gpu])
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(
        (p for p in model.parameters() if p.requires_grad), args.lr, momentum=0.9, weight_decay=1e-4
    )
    loader, sampler = build_loader(args)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        cosine_lr(optimizer, epoch, args)
        train_one_epoch(loader, model, criterion, optimizer, epoch, gpu, print_freq=50)
        if dist.get_rank() == 0 and epoch % 20 == 19:
            torch.save(model.module.state_dict(), f"moco_{epoch:04d}.pth")


if __name__ == "__main__":
    main()
