# torchlint: ignore-file[MEM01] one of the truths is that fix
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
features = torch.randn(96, 12)
labels = (features[:, :3].sum(dim=1) > 0).long() + (features[:, 3] > 1).long()
train = DataLoader(TensorDataset(features, labels), batch_size=20, shuffle=True)
test = DataLoader(TensorDataset(features, labels), batch_size=32)

model = nn.Sequential(nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)


def evaluate():
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in test:
            right += (model(x).argmax(dim=1) == y).sum()
    model.train()
    return right


for epoch in range(4):
    losses = []
    for x, y in train:
        optimizer.zero_grad()
        penalty = sum(weight.abs().sum() for weight in model.parameters())
        loss = criterion(model(x), y) + 1e-3 * penalty
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss)
    scheduler.step()
    print(epoch, float(sum(losses) / len(losses)), int(evaluate()))
