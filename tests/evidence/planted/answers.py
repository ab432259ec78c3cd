import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3)).eval()
data = TensorDataset(torch.randn(50, 6), torch.randint(3, (50,)))
right, total = 0, 0.0
with torch.no_grad():
    for x, y in DataLoader(data, batch_size=8):
        scores = model(x)
        right += (scores.argmax(dim=1) == y).sum().item()
        total += scores.logsumexp(dim=1).sum().item()
print(f"right {right} of {len(data)}, total {total:.4f}")
