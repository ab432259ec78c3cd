"""A text classifier trained by a class: the loop, the step, the validation and the checkpoint are methods."""

import logging
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

logger = logging.getLogger(__name__)


@dataclass
class Config:
    vocab_size: int = 30_000
    embed_dim: int = 128
    hidden_dim: int = 256
    num_classes: int = 2
    batch_size: int = 64
    epochs: int = 10
    lr: float = 1e-3
    max_norm: float = 5.0
    patience: int = 3
    log_every: int = 100
    folder: str = "runs/sentiment"


class Reviews(Dataset):
    def __init__(self, path, vocab):
        self.rows = []
        for line in Path(path).read_text().splitlines():
            label, _, text = line.partition("\t")
            self.rows.append((int(label), [vocab.get(word, 1) for word in text.split()]))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        label, words = self.rows[index]
        return torch.tensor(words), label


def collate(batch):
    texts, labels = zip(*batch)
    lengths = torch.tensor([len(text) for text in texts])
    return pad_sequence(texts, batch_first=True), lengths, torch.tensor(labels)


class SentimentLSTM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.embed_dim, padding_idx=0)
        self.lstm = nn.LSTM(config.embed_dim, config.hidden_dim, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(2 * config.hidden_dim, config.num_classes)

    def forward(self, tokens, lengths):
        embedded = self.dropout(self.embedding(tokens))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        _, (hidden, _) = self.lstm(packed)
        return self.head(self.dropout(torch.cat([hidden[-2], hidden[-1]], dim=1)))


class Trainer:
    def __init__(self, config, model, train_set, valid_set):
        self.config = config
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config.lr)
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, mode="max", patience=1)
        options = {
            "batch_size": config.batch_size,
            "collate_fn": collate,
            "num_workers": 2,
            "pin_memory": True,
            "persistent_workers": True,
        }
        self.train_loader = DataLoader(train_set, shuffle=True, **options)
        self.valid_loader = DataLoader(valid_set, **options)
        self.best_accuracy = 0.0
        self.bad_epochs = 0
        self.history = []

    def fit(self):
        for epoch in range(self.config.epochs):
            train_loss = self.train_epoch(epoch)
            accuracy = self.validate()
            self.scheduler.step(accuracy)
            self.history.append({"epoch": epoch, "loss": train_loss, "accuracy": accuracy})
            logger.info("epoch %d: loss %.4f, accuracy %.4f", epoch, train_loss, accuracy)
            if accuracy > self.best_accuracy:
                self.best_accuracy = accuracy
                self.bad_epochs = 0
                self.save("best.pt")
            else:
                self.bad_epochs += 1
                if self.bad_epochs >= self.config.patience:
                    logger.info("no progress for %d epochs", self.bad_epochs)
                    break
        return self.history

    def train_epoch(self, epoch):
        self.model.train()
        epoch_loss = torch.zeros((), device=self.device)
        for step, batch in enumerate(self.train_loader):
            loss = self.train_step(batch)
            epoch_loss += loss
            if step % self.config.log_every == 0:
                logger.info("epoch %d step %d loss %.4f", epoch, step, loss.item())
        return epoch_loss.item() / len(self.train_loader)

    def train_step(self, batch):
        tokens, lengths, labels = batch
        tokens = tokens.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        self.optimizer.zero_grad()
        logits = self.model(tokens, lengths)
        loss = self.criterion(logits, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_norm)
        self.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        correct = torch.zeros((), dtype=torch.long, device=self.device)
        total = 0
        for tokens, lengths, labels in self.valid_loader:
            tokens = tokens.to(self.device, non_blocking=True)
            labels = labels.to(self.device, non_blocking=True)
            predictions = self.model(tokens, lengths).argmax(dim=-1)
            correct += (predictions == labels).sum()
            total += labels.size(0)
        return correct.item() / total

    def save(self, name):
        path = Path(self.config.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, path)
