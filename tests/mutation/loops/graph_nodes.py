"""Node classification with a graph convolution written out: the whole graph is one batch, masks split the nodes."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return torch.sparse.mm(adj, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def load_data(path, device):
    archive = np.load(path)
    features = torch.from_numpy(archive["features"]).float().to(device)
    labels = torch.from_numpy(archive["labels"]).long().to(device)
    edges = torch.from_numpy(archive["edges"]).long()
    n = features.size(0)
    values = torch.ones(edges.size(1))
    adj = torch.sparse_coo_tensor(edges, values, (n, n)).coalesce().to(device)
    order = torch.randperm(n, device=device)
    split = order[: n // 10], order[n // 10 : n // 5], order[n // 5 :]
    return features, labels, adj, split


def accuracy(output, labels):
    return (output.argmax(dim=1) == labels).double().mean()


def train(model, optimizer, features, adj, labels, idx_train):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    return loss_train.detach()


@torch.no_grad()
def test(model, features, adj, labels, indexes):
    model.eval()
    output = model(features, adj)
    return F.nll_loss(output[indexes], labels[indexes]), accuracy(output[indexes], labels[indexes])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="cora.npz")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--dropout", type=float, default=0.5)
    args = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    features, labels, adj, (idx_train, idx_val, idx_test) = load_data(args.data, device)
    model = GCN(features.size(1), args.hidden, int(labels.max()) + 1, args.dropout).to(device)
    optimizer = optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)

    history = []
    for epoch in range(args.epochs):
        history.append(train(model, optimizer, features, adj, labels, idx_train))
        if epoch % 10 == 0:
            loss_val, acc_val = test(model, features, adj, labels, idx_val)
            print(f"epoch {epoch:04d} val loss {loss_val:.4f} val acc {acc_val:.4f}")

    loss_test, acc_test = test(model, features, adj, labels, idx_test)
    print(f"test loss {loss_test:.4f} accuracy {acc_test:.4f}")
    np.save("history.npy", torch.stack(history).cpu().numpy())


if __name__ == "__main__":
    main()
