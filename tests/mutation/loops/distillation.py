"""Knowledge distillation: a small student learns from the logits of a frozen teacher, with warm-up per iteration."""

import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms
from tqdm import tqdm


class DistillKL(nn.Module):
    def __init__(self, T):
        super().__init__()
        self.T = T

    def forward(self, y_s, y_t):
        p_s = F.log_softmax(y_s / self.T, dim=1)
        p_t = F.softmax(y_t / self.T, dim=1)
        return F.kl_div(p_s, p_t, reduction="batchmean") * self.T**2


def parse_option():
    parser = argparse.ArgumentParser("distillation")
    parser.add_argument("--epochs", type=int, default=240)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--num_workers", type=int, default=8)
    parser.add_argument("--learning_rate", type=float, default=0.05)
    parser.add_argument("--alpha", type=float, default=0.9)
    parser.add_argument("--kd_T", type=float, default=4.0)
    parser.add_argument("--path_t", required=True, help="checkpoint of the teacher")
    return parser.parse_args()


def load_teacher(path, n_cls):
    model = models.resnet50(num_classes=n_cls)
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return model


def adjust_learning_rate(epoch, opt, optimizer):
    lr = opt.learning_rate * 0.1 ** sum(epoch > milestone for milestone in (150, 180, 210))
    for group in optimizer.param_groups:
        group["lr"] = lr


def train_distill(epoch, train_loader, student, teacher, criterion_cls, criterion_div, optimizer, opt):
    student.train()
    teacher.eval()  # no mutant eval: `validate` has switched it before
    loss_sum, hits, seen = 0.0, 0, 0
    progress = tqdm(train_loader, desc=f"epoch {epoch}", mininterval=10)
    for idx, (images, labels) in enumerate(progress):
        images = images.cuda(non_blocking=True)
        labels = labels.cuda(non_blocking=True)
        logit_s = student(images)
        with torch.no_grad():  # no mutant no_grad: no rule yet for needless graphs in a step
            logit_t = teacher(images)
        loss_cls = criterion_cls(logit_s, labels)
        loss_div = criterion_div(logit_s, logit_t)
        loss = (1 - opt.alpha) * loss_cls + opt.alpha * loss_div

        loss_sum += loss.detach() * images.size(0)
        hits += (logit_s.argmax(1) == labels).sum()
        seen += images.size(0)

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        if idx % 200 == 0:
            progress.set_postfix(cls=loss_cls.item(), div=loss_div.item())
    return loss_sum.item() / seen, 100.0 * hits.item() / seen


@torch.inference_mode()
def validate(val_loader, model):
    model.eval()
    top1, top5, seen = 0, 0, 0
    for images, labels in val_loader:
        images = images.cuda(non_blocking=True)
        labels = labels.cuda(non_blocking=True)
        ranked = model(images).topk(5, dim=1).indices
        match = ranked == labels.unsqueeze(1)
        top1 += match[:, 0].sum()
        top5 += match.sum()
        seen += labels.size(0)
    return 100.0 * top1.item() / seen, 100.0 * top5.item() / seen


def main():
    opt = parse_option()
    normalize = transforms.Normalize((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761))
    train_set = datasets.CIFAR100(
        "data",
        train=True,
        transform=transforms.Compose([transforms.RandomCrop(32, 4), transforms.ToTensor(), normalize]),
    )
    val_set = datasets.CIFAR100("data", train=False, transform=transforms.Compose([transforms.ToTensor(), normalize]))
    train_loader = DataLoader(
        train_set,
        batch_size=opt.batch_size,
        shuffle=True,
        num_workers=opt.num_workers,
        pin_memory=True,
        persistent_workers=True,
    )
    val_loader = DataLoader(
        val_set, batch_size=opt.batch_size, num_workers=opt.num_workers, pin_memory=True, persistent_workers=True
    )

    teacher = load_teacher(opt.path_t, 100).cuda()
    student = models.resnet18(num_classes=100).cuda()
    criterion_cls = nn.CrossEntropyLoss()
    criterion_div = DistillKL(opt.kd_T)
    optimizer = torch.optim.SGD(student.parameters(), lr=opt.learning_rate, momentum=0.9, weight_decay=5e-4)

    print("teacher accuracy: %.2f / %.2f" % validate(val_loader, teacher))
    best = 0.0
    for epoch in range(1, opt.epochs + 1):
        adjust_learning_rate(epoch, opt, optimizer)
        train_loss, train_acc = train_distill(
            epoch, train_loader, student, teacher, criterion_cls, criterion_div, optimizer, opt
        )
        acc1, acc5 = validate(val_loader, student)
        print(f"epoch {epoch} loss {train_loss:.4f} acc {train_acc:.2f} val {acc1:.2f} / {acc5:.2f}")
        if acc1 > best:
            best = acc1
            torch.save({"student": student.state_dict(), "best": best}, os.path.join("save", "student_best.pth"))


if __name__ == "__main__":
    main()
