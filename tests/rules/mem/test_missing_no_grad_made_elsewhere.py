"""MEM05: its fix is left to the author where most of an evaluation is recorded in another function."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from torchlint.fixers.mem.missing_no_grad import is_all_of_another_file

from tests.semantics.projects import model_of
from tests.support import findings
from torchlint.analyses.mem.evaluation import Evaluation, Extent

LEARNED = """\
import torch
from torch import nn


class Learner:
    def encoded(self, net, rows):
        return net(rows), rows

    def learn(self, rows, labels, held_out):
        net, score = nn.Linear(4, 4), nn.Linear(4, 1)
        optimizer = torch.optim.SGD([*net.parameters(), *score.parameters()], lr=0.1)
        for epoch in range(9):
            given, _ = self.encoded(net, rows)
            loss = (score(given) - labels).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            MADE
            shown = score(given)
            print(epoch, shown.mean().item())
"""


@pytest.mark.parametrize(
    ("made", "is_applied"),
    [
        ("given, other = self.encoded(net, held_out)", True),
        ("given = scaled(net, held_out)", False),
        ("given = held_out.abs()", True),
        ("given = torch.cat(held_out)", True),
        ("given = scaled(held_out)", True),
        ("with torch.no_grad():\n                given, other = self.encoded(net, held_out)", True),
        ("given = scaled(net, held_out); kept.append(given)", True),
    ],
)
def test_what_a_helper_makes_with_a_network_is_a_part_of_the_evaluation(made: str, is_applied: bool) -> None:
    found = [each for each in findings(LEARNED.replace("MADE", made), "MEM05") if each.line > 17]
    assert found
    assert all((each.fix is not None) is is_applied for each in found)


MAKER = """
    import torch
    from torch import nn

    def make_samples(count):
        net = nn.Linear(4, 4)
        print([net(torch.rand(2, 4)).tolist() for _ in range(count)])

    def show(net: nn.Module, rows):
        print(net(rows).tolist())

    class Net(nn.Module):
        def forward(self, rows):
            return rows * 2
    """
CALLER = """
    from torch import nn
    from maker import Net, make_samples, show

    def prepare(settings, net, rows):
        net.eval()
        LINE
    """


@pytest.mark.parametrize(
    ("line", "is_theirs"),
    [
        ("make_samples(settings.count)", True),
        ("make_samples(4)", True),
        ("show(net, rows)", False),
        ("show(nn.Linear(4, 4), settings.rows)", False),
        ("net = Net(); print(net(settings.rows))", False),
    ],
)
def test_the_switch_belongs_to_the_function_that_has_the_networks(tmp_path: Path, line: str, is_theirs: bool) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "maker.py").write_text(dedent(MAKER))
    (tmp_path / "main.py").write_text(dedent(CALLER).replace("LINE", line))
    model = model_of(tmp_path, "main.py")
    [call] = [call for call in model.calls if call.function.name == "prepare" and call.is_forward]
    found = Evaluation(call, Extent.FUNCTION, call.function.node, certain=True)
    assert is_all_of_another_file(found, model) is is_theirs


TRIED = """\
import torch
from torch.utils.data import DataLoader


def test_files(paths, model, settings, data, device):
    for path in paths:
        made = model(**settings)
        LINE
        show(DataLoader(data), made)
"""


@pytest.mark.parametrize(("line", "count"), [("made.to(device)", 0), ("made.cuda()", 0), ("made = made.to(device)", 1)])
def test_what_is_moved_in_place_is_a_network_and_no_result(line: str, count: int) -> None:
    assert len(findings(TRIED.replace("LINE", line), "MEM05")) == count
