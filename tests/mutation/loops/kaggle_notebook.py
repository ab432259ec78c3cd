"""A competition notebook exported to a script: cells, a helper class, folds, everything at the top level."""

# %% [markdown]
# # Plant disease: EfficientNet with five folds

# %%
import gc
from pathlib import Path

import albumentations as A
import cv2
import numpy as np
import pandas as pd
import timm
import torch
import torch.nn as nn
from albumentations.pytorch import ToTensorV2
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

# %%
ROOT = Path("../input/plants")
SIZE, BATCH, EPOCHS, FOLDS = 512, 16, 15, 5
device = torch.device("cuda")
train_df = pd.read_csv(ROOT / "train.csv")
targets = ["healthy", "rust", "scab", "multiple"]

# %%
train_aug = A.Compose([A.RandomResizedCrop(SIZE, SIZE), A.HorizontalFlip(), A.Normalize(), ToTensorV2()])
valid_aug = A.Compose([A.Resize(SIZE, SIZE), A.Normalize(), ToTensorV2()])


class PlantDataset(Dataset):
    def __init__(self, frame, transform):
        self.names = frame["image_id"].to_numpy()
        self.labels = frame[targets].to_numpy(np.float32)
        self.transform = transform

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        image = cv2.cvtColor(cv2.imread(str(ROOT / f"{self.names[i]}.jpg")), cv2.COLOR_BGR2RGB)
        return self.transform(image=image)["image"], torch.from_numpy(self.labels[i])


# %%
oof = np.zeros((len(train_df), len(targets)))
folds = StratifiedKFold(FOLDS, shuffle=True, random_state=42).split(train_df, train_df[targets].to_numpy().argmax(1))
for fold, (train_idx, valid_idx) in enumerate(folds):
    train_dl = DataLoader(
        PlantDataset(train_df.iloc[train_idx], train_aug),
        BATCH,
        shuffle=True,
        num_workers=4,
        pin_memory=True,
        persistent_workers=True,
        drop_last=True,
    )
    valid_dl = DataLoader(
        PlantDataset(train_df.iloc[valid_idx], valid_aug),
        BATCH,
        num_workers=4,
        pin_memory=True,
        persistent_workers=True,
    )

    net = timm.create_model("tf_efficientnet_b3", pretrained=True, num_classes=len(targets)).to(device)
    optim = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
    sched = torch.optim.lr_scheduler.OneCycleLR(optim, 1e-3, epochs=EPOCHS, steps_per_epoch=len(train_dl))
    loss_fn = nn.BCEWithLogitsLoss()
    scaler = torch.amp.GradScaler("cuda")
    history = {"train": [], "valid": [], "auc": []}
    best_auc = 0.0

    for epoch in range(EPOCHS):
        net.train()
        train_losses = []
        for xb, yb in tqdm(train_dl, desc=f"fold {fold} epoch {epoch}"):
            xb, yb = xb.to(device, non_blocking=True), yb.to(device, non_blocking=True)
            optim.zero_grad()
            with torch.amp.autocast("cuda"):
                loss = loss_fn(net(xb), yb)
            scaler.scale(loss).backward()
            scaler.step(optim)
            scaler.update()
            sched.step()
            train_losses.append(loss.detach())
        history["train"].append(torch.stack(train_losses).mean().item())

        net.eval()
        valid_losses, predictions = [], []
        with torch.no_grad():
            for xb, yb in valid_dl:
                xb, yb = xb.to(device, non_blocking=True), yb.to(device, non_blocking=True)
                out = net(xb)
                valid_losses.append(loss_fn(out, yb))
                predictions.append(out.sigmoid())
        history["valid"].append(torch.stack(valid_losses).mean().item())
        scores = torch.cat(predictions).cpu().numpy()
        auc = roc_auc_score(train_df.iloc[valid_idx][targets], scores, average="macro")
        history["auc"].append(auc)
        if auc > best_auc:
            best_auc = auc
            oof[valid_idx] = scores
            torch.save(net.state_dict(), f"fold{fold}.pth")

    print(f"fold {fold}: best AUC {best_auc:.4f}")
    del net, optim, sched, scaler
    gc.collect()
    torch.cuda.empty_cache()

# %%
print("out of fold AUC", roc_auc_score(train_df[targets], oof, average="macro"))
pd.DataFrame(oof, columns=targets).to_csv("oof.csv", index=False)
