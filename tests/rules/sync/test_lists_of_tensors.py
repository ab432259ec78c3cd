"""SYNC07: what may be a list of tensors is not read as one tensor."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.rules.sync.programs import evaluation
from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source


def test_a_part_of_what_a_loss_of_another_file_returns_may_be_a_list(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    module = """
        import torch

        class Criterion(torch.nn.Module):
            def forward(self, out, y):
                parts = [torch.dist(out, y), (out - y).abs().max()]
                return parts, sum(parts)
        """
    program = """
        import torch
        from criteria import Criterion

        net, criterion = torch.nn.Linear(4, 2).cuda(), Criterion()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def train(loader):
            for x, y in loader:
                parts, loss = criterion(net(x.cuda()), y.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print([part.item() for part in parts])
        """
    (tmp_path / "criteria.py").write_text(dedent(module))
    (tmp_path / "main.py").write_text(dedent(program))
    found = lint(Source.read(tmp_path / "main.py"), Settings.selecting("SYNC07"), strict=True, project=Project())
    assert all(finding.fix is None for finding in found)


@pytest.mark.parametrize("made", ["model(x)", "model(x)[:-1]"])
@pytest.mark.parametrize(("length", "has_shape"), [("len(guesses)", False), ("guesses.shape[0]", True)])
def test_what_a_network_out_of_sight_returns_is_one_list_only_where_it_has_a_shape(
    made: str, length: str, has_shape: bool
) -> None:
    loop = f"guesses = {made}\nkept.append({length})\nfor guess in guesses:\n    kept.append(guess.item())"
    (finding,) = findings(evaluation(loop, "kept = []"), "SYNC07")
    assert (finding.fix is not None) is has_shape
    assert (".tolist()" in finding.message) is has_shape


PACKED = evaluation(
    "out, lengths, order = model(x)\nout = out[order.argsort()]\nrows = out.argmax(1).tolist()\n"
    "for i in range(len(rows)):\n    kept.append(rows[i][: lengths[i]])\nseen += sum({lengths})",
    "kept, seen = [], 0",
)


@pytest.mark.parametrize(("lengths", "count"), [("lengths", 0), ("lengths.clamp(max=9)", 1)])
def test_what_a_network_out_of_sight_returns_beside_a_tensor_may_be_a_list(lengths: str, count: int) -> None:
    found = [finding for finding in findings(PACKED.format(lengths=lengths), "SYNC07") if "lengths" in finding.message]
    assert len(found) == count


READER = """
    import torch

    def minibatch(rows, several=False, device=None):
        lengths = [len(row) for row in rows]
        if several:
            classes = torch.zeros(len(rows), 4).to(device)
        else:
            classes = torch.tensor([row[0] for row in rows], device=device)
        parts = [rows, classes, lengths]
        if several:
            parts.append(rows)
        return parts
    """
TAGGED = """
    import argparse
    import torch
    import reader

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    opt = argparse.ArgumentParser().parse_args()
    opt.device = device
    model = torch.nn.Linear(2, 2).to(device)

    def evaluate(data):
        kept = []
        model.eval()
        for start in range(0, len(data), 8):
            if opt.testing:
                rows, classes, lengths, more = reader.minibatch(data[start:], several=True, device=opt.device)
            else:
                rows, classes, lengths = reader.minibatch(data[start:], device=opt.device)
            scores = model(rows)
            kept.append(torch.nn.functional.cross_entropy(scores, classes).item())
            best = scores.data.cpu().numpy().argmax(axis=-1)
            for i, row in enumerate(best):
                length = lengths[i]
                kept.append([str(tag) for tag in row][:length])
            kept.append(sum({lengths}))
        return kept
    """


@pytest.mark.parametrize(("lengths", "count"), [("lengths", 0), ("lengths.clamp(max=9)", 1)])
def test_what_a_function_in_sight_returns_beside_a_tensor_may_be_a_list(
    tmp_path: Path, lengths: str, count: int
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "reader.py").write_text(dedent(READER))
    (tmp_path / "main.py").write_text(dedent(TAGGED.format(lengths=lengths)))
    source = Source.read(tmp_path / "main.py")
    found = lint(source, Settings.selecting("SYNC07"), strict=True, project=Project())
    assert len([finding for finding in found if "lengths" in finding.message]) == count


LAYERS = """
import torch


def shown(model: torch.nn.Module, loader):
    found = []
    for tokens in loader:
        with torch.no_grad():
            out = model(tokens.cuda())
        found.append([each.cpu() for each in {read}])
    return found
"""


@pytest.mark.parametrize(
    ("read", "count"),
    [
        ("out.attentions", 0),
        ("getattr(out, 'hidden_states', None)", 0),
        ("out.hidden_states[-1]", 1),
        ("out.logits", 1),
    ],
)
def test_a_tensor_of_each_layer_is_no_row_of_one(read: str, count: int) -> None:
    assert len(findings(LAYERS.format(read=read), "SYNC07")) == count


BOXES = """
import torch


def detect(model: torch.nn.Module, loader):
    found = {{}}
    for images, names in loader:
        with torch.no_grad():
            out = model([image.cuda() for image in images])
        for each, name in zip(out, names):
            found[name] = each[{key}].cpu()
    return found
"""


@pytest.mark.parametrize(("key", "count"), [("'boxes'", 0), ("0", 1)])
def test_what_has_keys_is_no_row_of_a_tensor(key: str, count: int) -> None:
    assert len(findings(BOXES.format(key=key), "SYNC07")) == count
