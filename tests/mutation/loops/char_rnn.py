"""A word language model with an LSTM: the corpus is one long tensor, cut into chunks by a range loop; the hidden state
goes from chunk to chunk without its graph."""

import argparse
import math
import time

import torch
import torch.nn as nn
import torch.onnx
from data import Corpus

parser = argparse.ArgumentParser(description="LSTM language model")
parser.add_argument("--data", default="./data/wikitext-2")
parser.add_argument("--emsize", type=int, default=200)
parser.add_argument("--nhid", type=int, default=200)
parser.add_argument("--lr", type=float, default=20)
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--batch_size", type=int, default=20)
parser.add_argument("--bptt", type=int, default=35)
parser.add_argument("--log-interval", type=int, default=200)
parser.add_argument("--save", default="model.pt")
args = parser.parse_args()

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid):
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, 2, dropout=0.2)
        self.decoder = nn.Linear(nhid, ntoken)
        self.ntoken, self.nhid = ntoken, nhid

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(input)), hidden)
        return self.decoder(self.drop(output)).view(-1, self.ntoken), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(2, bsz, self.nhid), weight.new_zeros(2, bsz, self.nhid)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data[: nbatch * bsz].view(bsz, -1).t().contiguous().to(device)


def repackage_hidden(h):
    return tuple(v.detach() for v in h)  # no mutant detach: cuts the graph, nothing is collected


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


corpus = Corpus(args.data)
train_data = batchify(corpus.train, args.batch_size)
val_data = batchify(corpus.valid, 10)
test_data = batchify(corpus.test, 10)

model = RNNModel(len(corpus.dictionary), args.emsize, args.nhid).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)


def evaluate(data_source):
    model.eval()
    total_loss = torch.zeros((), device=device)
    hidden = model.init_hidden(10)
    with torch.no_grad():
        for i in range(0, data_source.size(0) - 1, args.bptt):
            data, targets = get_batch(data_source, i)
            output, hidden = model(data, hidden)
            total_loss += len(data) * criterion(output, targets)
    return total_loss.item() / (len(data_source) - 1)


def train(epoch):
    model.train()
    total_loss = torch.zeros((), device=device)
    start_time = time.time()
    hidden = model.init_hidden(args.batch_size)
    for batch, i in enumerate(range(0, train_data.size(0) - 1, args.bptt)):
        data, targets = get_batch(train_data, i)
        hidden = repackage_hidden(hidden)
        model.zero_grad()
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        total_loss += loss.detach()

        if batch % args.log_interval == 0 and batch > 0:
            cur_loss = total_loss.item() / args.log_interval
            elapsed = time.time() - start_time
            print(
                f"| epoch {epoch:3d} | batch {batch} | ms/batch {elapsed * 1000 / args.log_interval:5.2f} "
                f"| loss {cur_loss:5.2f} | ppl {math.exp(cur_loss):8.2f}"
            )
            total_loss = torch.zeros((), device=device)
            start_time = time.time()


best_val_loss = None
for epoch in range(1, args.epochs + 1):
    train(epoch)
    val_loss = evaluate(val_data)
    print(f"| end of epoch {epoch:3d} | valid loss {val_loss:5.2f} | valid ppl {math.exp(val_loss):8.2f}")
    if best_val_loss is None or val_loss < best_val_loss:
        torch.save(model.state_dict(), args.save)
        best_val_loss = val_loss
    else:
        for group in optimizer.param_groups:
            group["lr"] /= 4.0

model.load_state_dict(torch.load(args.save, weights_only=True))
print(f"| test loss {evaluate(test_data):5.2f}")
