"""Several processes, with models, samplers and loaders in dicts by phase."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, models, transforms

PHASES = ("train", "val")


def build_data(root, batch_size):
    tensor = transforms.ToTensor()
    sets = {phase: datasets.ImageFolder(os.path.join(root, phase), tensor) for phase in PHASES}
    samplers = {"train": DistributedSampler(sets["train"]), "val": DistributedSampler(sets["val"], shuffle=False)}
    settings = {"batch_size": batch_size, "num_workers": 8, "pin_memory": True, "persistent_workers": True}
    loaders = {phase: DataLoader(sets[phase], sampler=samplers[phase], **settings) for phase in PHASES}
    return loaders, samplers


def run_phase(phase, model, loader, criterion, optimizer, device):
    is_training = phase == "train"
    model.train(is_training)
    totals = torch.zeros(3, device=device)
    with torch.set_grad_enabled(is_training):
        for images, labels in loader:
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            outputs = model(images)
            loss = criterion(outputs, labels)
            if is_training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            totals[0] += loss.detach() * len(labels)
            totals[1] += (outputs.argmax(1) == labels).sum()
            totals[2] += len(labels)
    dist.all_reduce(totals)
    loss_sum, correct, count = totals.tolist()
    return {"loss": loss_sum / count, "accuracy": correct / count}


def main(root="data", epochs=90, batch_size=64):
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    torch.manual_seed(rank)

    loaders, samplers = build_data(root, batch_size)
    model = DistributedDataParallel(models.resnet18(num_classes=100).to(device), device_ids=[rank])
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        samplers["train"].set_epoch(epoch)
        results = {}
        for phase in PHASES:
            results[phase] = run_phase(phase, model, loaders[phase], criterion, optimizer, device)
        scheduler.step()
        if rank == 0:
            print(epoch, results)
            torch.save({"model": model.module.state_dict(), "epoch": epoch}, "last.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
