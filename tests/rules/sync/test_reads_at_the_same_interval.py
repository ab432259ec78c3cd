"""SYNC01, SYNC03: what stands at the same interval as a read is no rarer, and features kept on the host stay there."""

from __future__ import annotations

import pytest

from tests.support import findings

EPOCH = """
import torch

def epoch(net, loader, optimizer, every, threshold, decay, run):
    average = 0
    total = torch.zeros((), device="cuda")
    for index, (x, y) in enumerate(loader):
        loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
        loss.backward()
        total += loss.detach()
        if (index + 1) % every == 0:
            mean = (total / every).item()
            total.zero_()
            if {decision}:
                optimizer.step()
            optimizer.zero_grad()
            run.log({{"loss": mean}})
"""


@pytest.mark.parametrize(("decision", "count"), [("mean < threshold", 0), ("threshold > 0", 1)])
def test_a_decision_at_the_interval_needs_the_number(decision: str, count: int) -> None:
    found = findings(EPOCH.format(decision=decision), "SYNC01")
    assert len(found) == count
    assert not any("It is logged at intervals only" in finding.message for finding in found)


RANKING = """
import torch

def rank(model, loader, texts, k):
    features, means = [], []
    for image in loader:
        feature = model.encode(image.cuda())
        features.append({kept})
        means.append(feature.mean(1))
    features = torch.cat(features, dim=0)
    sims = texts.cuda() @ torch.cat(means, dim=0).t()
    scores = torch.full((len(texts), len(features)), -100.0).cuda()
    for i, row in enumerate(sims):
        top, index = row.topk(k=k, dim=0)
        inputs = features[index.cpu()].to(model.device)
        score = model(image_inputs=inputs, text=texts[i].cuda()).float()
        scores[i, index] = score + top
    return scores
"""


@pytest.mark.parametrize(("kept", "count"), [("feature.cpu()", 0), ("feature", 1)])
def test_a_table_that_was_taken_to_the_host_is_read_there(kept: str, count: int) -> None:
    assert len(findings(RANKING.format(kept=kept), "SYNC03")) == count
