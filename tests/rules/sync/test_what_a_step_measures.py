"""SYNC01, SYNC03, SYNC06: counts by `len`, parts of a loss, losses that a model keeps, batches read back by samples."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import HEAD, evaluation, line_of, training
from tests.support import findings

COUNTS = [
    "len(torch.where(out.argmax(1) == y)[0])",
    "len(torch.nonzero(out.argmax(1) == y))",
    "len((out > 0).nonzero())",
]
OTHER_LENGTHS = [
    "len(torch.where(y > 0, y, y))",  # as long as the batch
    "len(torch.where(y > 0, y, y)[0])",
    "len(out.argmax(1))",
    "len(np.where(targets[step] > 0)[0])",
    "len(torch.where(targets[step].cpu() > 0)[0])",
]


@pytest.mark.parametrize("count", COUNTS)
def test_the_length_of_a_list_of_places_is_a_count_that_the_host_waits_for(count: str) -> None:
    code = evaluation(f"right += {count}", "right = 0", "return right")
    [found] = findings(code, "SYNC06")
    assert (found.line, found.fix) == (line_of(code, count), None)


@pytest.mark.parametrize("length", OTHER_LENGTHS)
def test_other_lengths_are_known_without_the_device(length: str) -> None:
    assert findings(evaluation(f"right += {length}", "right = 0", "return right"), "SYNC01", "SYNC06") == []


def _parts(loss: str) -> str:
    lines = f"""
def train(model, loader, optimizer):
    errors = []
    for x, y in loader:
        optimizer.zero_grad()
        out, extra = model(x.to(device))
        error = ((out - y.to(device)) ** 2) * spread
        {loss}
        loss.backward()
        optimizer.step()
        errors.append(error.detach().cpu().numpy())
    return errors
"""
    return HEAD.lstrip() + lines.lstrip()


def test_what_is_added_up_to_the_loss_is_a_number_as_the_loss_is() -> None:
    code = _parts("loss = 0.5 * error + extra")
    assert [found.line for found in findings(code, "SYNC01")] == [line_of(code, "errors.append")]


@pytest.mark.parametrize("loss", ["loss = error.mean() + extra", "loss = error + extra\n        loss = loss.mean()"])
def test_what_is_averaged_first_may_be_a_whole_tensor(loss: str) -> None:
    assert findings(_parts(loss), "SYNC01") == []


MODEL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)

    def measure(self, out, y):
        self.loss = F.mse_loss(out, y)


"""


def test_a_loss_that_the_model_keeps_where_one_of_its_own_methods_computes_it_is_on_the_device() -> None:
    loop = """
def evaluate(loader):
    total = 0
    model = Net().cuda().eval()
    with torch.no_grad():
        for x, y in loader:
            out = nn.parallel.data_parallel(model, x.cuda())
            model.measure(out, y.cuda())
            total += model.loss.data.cpu().numpy() * len(y)
    return total
"""
    code = HEAD.lstrip() + MODEL.lstrip() + loop.lstrip()
    assert [found.line for found in findings(code, "SYNC01", "SYNC03")] == [line_of(code, "total += ")]
    silent = code.replace("model.loss.data", "other.loss.data")
    assert findings(silent, "SYNC01", "SYNC03") == []


def test_the_data_of_what_the_loss_becomes_is_on_the_device_as_the_loss_is() -> None:
    code = training("total += kept.data.cpu().numpy()", "total = 0", "return total")
    code = code.replace("loss = criterion(out, y)", "kept = model.loss").replace("loss.backward()", "kept.backward()")
    assert len(findings(code, "SYNC01", "SYNC03")) == 1


def test_a_batch_that_is_read_back_for_each_of_its_samples_is_on_the_host_already() -> None:
    body = """
    right = out.argmax(1) == y
    for i in range(right.size(0)):
        seen[y.cpu().numpy()[i]] += 1
    """
    code = evaluation(body, "seen = np.zeros(9)", "return seen")
    assert [found.line for found in findings(code, "SYNC03")] == [line_of(code, "seen[y")]
    changed = code.replace("    right =", "    y = out.argmax(1)\n        right =")
    assert not any("Use the batch that the host has" in found.message for found in findings(changed, "SYNC03"))


WEIGHTED = """
def weighted_loss(out, y, mean):
    loss = y.mean() * (out * y).sum()
    return loss / y.size(0) if mean else loss


"""


@pytest.mark.parametrize(("added", "found"), [("losses[i].item()", 1), ("shares[i].item()", 0)])
def test_a_list_that_is_filled_place_by_place_holds_what_the_step_computes(added: str, found: int) -> None:
    body = f"""
    losses = [0] * len(parts)
    for i in range(0, len(parts)):
        losses[i] = weighted_loss(parts[i], y, mean=False)
        sums[i] += {added}
    """
    code = training(body, "sums, shares = [0.0] * 5, list(model.shares)", "return sums", HEAD + WEIGHTED.lstrip())
    code = code.replace("out = model(x)", "out, *parts = model(x)")
    assert len(findings(code, "SYNC01")) == found
