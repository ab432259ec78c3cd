import torch
from torch import nn

torch.manual_seed(4)
model = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5)
)
average = [parameter.detach().clone() for parameter in model.parameters()]
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
generator = torch.Generator().manual_seed(0)
images, labels = torch.rand(64, 1, 8, 8, generator=generator), torch.randint(5, (64,), generator=generator)
for step in range(16):
    chosen = torch.randperm(64)[:16]
    x, y = images[chosen], labels[chosen]
    mean, deviation = x.mean(dim=(0, 2, 3), keepdim=True), x.std(dim=(0, 2, 3), keepdim=True)
    x = (x - mean) / (deviation + 1e-6)
    logits = model(x)
    loss = nn.functional.cross_entropy(logits, y, label_smoothing=0.1)
    optimizer.zero_grad()
    (loss / 2).backward()
    (nn.functional.cross_entropy(model(x), y) / 2).backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(average, model.parameters()):
            old.mul_(0.9).add_(new, alpha=0.1)
    print(f"{step} {loss.item():.6f} {sum(old.square().sum().item() for old in average):.6f}")
