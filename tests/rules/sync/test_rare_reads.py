"""Reads that look as if every batch made them: of picked batches, of checkpoints, and on the host after all."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import HEAD, evaluation, training
from tests.support import findings

CHECKPOINTS = """
import torch
from models import Net

@torch.no_grad()
def evaluate(net, loader):
    total = torch.zeros(()).cuda()
    for x, y in loader:
        for _ in range(5):
            total += (net(x.cuda()) - y.cuda()).abs().mean()
    return total

def restored(path):
    net = Net()
    net.load_state_dict(torch.load(path))
    return net.cuda()

def main(paths, loader, net):
    for path in paths:
        {load}
        {run}
        print(path, total.item())
"""


@pytest.mark.parametrize(
    ("load", "run", "count"),
    [
        ("net = torch.load(path)", "total = evaluate(net, loader)", 0),
        ("state = torch.load(path); net.load_state_dict(state)", "total = evaluate(net, loader)", 0),
        ("net = restored(path)", "total = net(loader.first.cuda()).mean()", 0),
        ("ready(net, torch.load(path)['state_dict'])", "total = net(loader.first.cuda()).mean()", 0),
        ("x = torch.load(path)['x'].cuda()", "total = net(x).mean()", 1),
        ("x = torch.load(path).cuda()", "total = net(x).mean()", 1),  # one file is one batch
        ("x = read(path).cuda()", "total = net(x).mean()", 1),
    ],
)
def test_a_loop_over_checkpoints_is_none_over_batches(load: str, run: str, count: int) -> None:
    code = CHECKPOINTS.format(load=load, run=run).replace(
        "def main(paths, loader, net):", "def main(paths, loader, net: Net):\n    net.cuda()"
    )
    assert len(findings(code, "SYNC01")) == count


KEPT = """\
import functools
import torch

kept = None

def loaded():
    net = torch.nn.Linear(4, 2)
    net.load_state_dict(torch.load("net.pt"))
    return net.cuda()

class Served:
    def __init__(self):
        self.kept = None

    {decorator}
    def network(self):
        {before}
        return {made}

def main(batches):
    served = Served()
    for batch in batches:
        net: torch.nn.Module = served.network()
        print(net(batch.cuda()).mean().item())
"""


@pytest.mark.parametrize(
    ("decorator", "before", "made", "count"),
    [
        ("", "self.kept = loaded()", "self.kept", 0),
        ("", "if self.kept is None: self.kept = loaded()", "self.kept", 1),
        ("@functools.cache", "pass", "loaded()", 1),
        ("", "global kept; kept = kept or loaded()", "kept", 1),
    ],
)
def test_a_network_that_is_kept_is_not_loaded_in_every_round(
    decorator: str, before: str, made: str, count: int
) -> None:
    code = KEPT.format(decorator=decorator, before=before, made=made)
    assert len(findings(code, "SYNC01")) == count


@pytest.mark.parametrize(("over", "count"), [("DataLoader(data)", 1), ("paths", 0)])
def test_batches_on_which_a_network_is_put_back_are_steps(over: str, count: int) -> None:
    code = f"""
        import torch
        from torch.utils.data import DataLoader

        @torch.no_grad()
        def evaluate(net: torch.nn.Module, data, paths, clean):
            for x in {over}:
                out = net(x.cuda())
                print(out.mean().item())
                net.load_state_dict(clean)
    """
    assert len(findings(code, "SYNC01")) == count


@pytest.mark.parametrize(
    ("test", "count"),
    [
        ("part == 0", 0),
        ("part == 0 and draw == draws[0]", 0),
        ("i % 50 == 0", 1),
        ("part == 0 and i == 3", 1),
        ("(step + part) % 90 == 0", 1),
    ],
)
def test_a_round_within_the_step_comes_in_every_step(test: str, count: int) -> None:
    code = evaluation(
        f"""
        rows = out.cpu().numpy()
        for draw in draws:
            for part in range(4):
                shown = sample(draw, part)
                if {test}:
                    log.write(f"{{rows}} {{shown}}")
        """
    ).replace("for x, y in loader", "for i, (x, y) in enumerate(loader)")
    found = [each for each in findings(code, "SYNC03") if "intervals" in each.message]
    assert len(found) == count


@pytest.mark.parametrize(("last", "count"), [("due.open = False", 0), ("due.open = True", 1)])
def test_what_switches_itself_off_is_rare(last: str, count: int) -> None:
    code = training(f"if due.open:\n    kept.append(loss.item())\n    {last}", "due, kept = make(), []")
    assert len(findings(code, "SYNC01")) == count


COUNTS = """
import torch

def fit(model, loader, optimizer, counts):
    for x, y in loader:
        optimizer.zero_grad()
        model(x.cuda()).sub(y.cuda()).abs().mean().backward()
        optimizer.step()
        {inside}
    {after}
"""
READ = "for {key}:\n{indent}totals[{name}] = model.tally({entry}).cuda().item()"


@pytest.mark.parametrize(
    ("key", "name", "entry", "count"),
    [("name in counts", "name", "counts[name]", 0), ("name, x in counts", "name", "x", 1)],
)
def test_a_loop_over_the_keys_of_a_dict_is_none_over_batches(key: str, name: str, entry: str, count: int) -> None:
    read = READ.format(key=key, name=name, entry=entry, indent="        ")
    assert len(findings(COUNTS.format(inside="pass", after=read), "SYNC01")) == count


@pytest.mark.parametrize(
    ("test", "count"),
    [
        ("step in picked", 0),
        ("picked is not None and step in picked", 0),
        ("step not in picked", 1),
        ("y in picked", 1),
        ("picked", 1),
    ],
)
def test_what_is_done_for_picked_batches_is_rare(test: str, count: int) -> None:
    assert (
        len(findings(evaluation(f"if {test}:\n    kept.append(loss.item())", "kept, picked = [], picks()"), "SYNC01"))
        == count
    )


ON_SOME_DEVICE = """
import torch

def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        {line}
        optimizer.step()
        print(loss.item())
"""


@pytest.mark.parametrize(
    ("line", "count"), [("loss.backward()  # loss.cuda().backward()", 0), ("loss.cuda().backward()  # all of it", 1)]
)
def test_a_device_that_only_a_comment_names_is_none(line: str, count: int) -> None:
    assert len(findings(ON_SOME_DEVICE.format(line=line), "SYNC01")) == count


SAMPLES = """
import torch

def check(model, loader):
    model.eval()
    errors = []
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        for i in range(64):
            with torch.no_grad():
                guess = {made}
            errors.append(((guess.cpu().numpy() - 1) ** 2).mean())
    return errors

def main(model, loader):
    for epoch in range(100):
        if epoch == 99:
            check(model, loader)
"""


@pytest.mark.parametrize(("made", "count"), [("model(x[i].repeat(1000, 1))", 1), ("torch.sqrt(x[i])", 0)])
def test_a_loop_over_samples_that_runs_a_model_for_each_is_an_evaluation_however_seldom(made: str, count: int) -> None:
    assert len(findings(SAMPLES.format(made=made), "SYNC03")) == count


SHORT = """
import torch

@torch.no_grad()
def report(net: torch.nn.Module, boards, whole):
    net.cuda()
    for board in {several}:
        {before}
        print(net(board.cuda()).sum())
"""


@pytest.mark.parametrize(
    ("several", "before", "count"),
    [
        ("boards", "pass", 1),
        ("[whole]", "pass", 0),  # once
        ("boards", "board = move(board)", 1),
        ("boards", "board = move(board, input())", 0),  # somebody types
    ],
)
def test_a_few_passes_and_a_game_with_somebody_are_no_steps(several: str, before: str, count: int) -> None:
    assert len(findings(SHORT.format(several=several, before=before), "SYNC04")) == count


DESIGNED = """
import torch
from torch import nn

model = nn.Linear(4, 4).cuda()
probabilities = []
with torch.no_grad():
    for sample in dataset:
        scores = model(sample.cuda())
        shown = scores.cpu().numpy()
        {gathered}
        print(f"score={{shown.mean()}}")
"""


@pytest.mark.parametrize(
    ("gathered", "count"), [("probabilities.append(model(scores).cpu().numpy())", 0), ("probabilities.append(1)", 1)]
)
def test_a_loop_that_gathers_its_results_may_show_some(gathered: str, count: int) -> None:
    assert len(findings(DESIGNED.format(gathered=gathered), "SYNC03")) == count


REPORTED = """
import torch
from drawing import drawn
from torch import nn

model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.Adam(model.parameters())

@torch.no_grad()
def report(step, loss, testing_steps, held_out, seen):
    if {test}:
        torch.cuda.empty_cache()
        parts = ({{"name": "held out", "cases": held_out}}, {{"name": "seen", "cases": seen}})
        {more}
        for part in parts:
            total = 0.0
            for x in part["cases"]:
                total += (drawn(model, x)["image"].clamp(0, 1) - x.cuda()).abs().mean()
            total /= len(part["cases"])
            print(part["name"], total)

def train(batches, testing_steps, held_out, seen):
    for step, x in enumerate(batches):
        loss = model(x.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        report(step, loss, testing_steps, held_out, seen)
"""


@pytest.mark.parametrize(
    ("test", "more", "codes"),
    [
        ("step in testing_steps", "pass", []),
        ("step in testing_steps", "parts = parts + tuple(testing_steps)", ["SYNC04"]),
        ("torch.cuda.is_available()", "pass", ["MEM06", "SYNC04"]),
    ],
)
def test_two_parts_of_the_data_at_some_steps_are_few_reads(test: str, more: str, codes: list[str]) -> None:
    found = findings(REPORTED.format(test=test, more=more), "MEM06", "SYNC04")
    assert sorted(finding.code for finding in found) == codes


THRESHOLDS = """
import torch

def curve(scores, labels, limits):
    scores, labels = scores.cuda(), labels.cuda()
    found = []
    for limit in limits:
        kind = (scores > limit).long() * 2 + labels
        missed = (kind == 1).sum().item()
        right = (kind == 3).sum().item()
        found.append(right / (right + {used} + 1e-7))
    return found
"""


@pytest.mark.parametrize(("used", "count"), [("1", 1), ("missed", 0)])
def test_a_number_that_nothing_asks_is_read_in_vain_though_no_model_has_made_it(used: str, count: int) -> None:
    reported = findings(THRESHOLDS.format(used=used), "SYNC01")
    assert sum(each.message.endswith("Nothing reads the number: leave it out.") for each in reported) == count


NOTED = """
kept = []


def note(loss, noted={default}):
    if noted:
        kept.append(loss.item())


"""


@pytest.mark.parametrize(
    ("default", "given", "count"), [("False", "", 0), ("True", "", 1), ("False", ", noted=True", 1)]
)
def test_what_a_parameter_switches_that_no_call_fills_does_not_run(default: str, given: str, count: int) -> None:
    code = training(f"note(loss{given})", head=HEAD + NOTED.format(default=default))
    assert len(findings(code, "SYNC01")) == count


@pytest.mark.parametrize(
    ("told", "count"),
    [
        ("logger.warning('large: %s', loss.item())", 0),
        ("logger.error(f'large: {loss.item()}')", 0),
        ("kept.append(loss.item())", 1),
    ],
)
def test_a_number_in_a_warning_of_what_should_not_happen_is_rare(told: str, count: int) -> None:
    code = training(f"large = probe(x)\nif large > 3:\n    {told}", "logger, kept, probe = make(), [], make()")
    assert len([each for each in findings(code, "SYNC01") if "loss.item()" in each.message]) == count


@pytest.mark.parametrize(("asked", "count"), [("", 1), ("if rank == 0: ", 1), ("if rank == 0 and not found: ", 0)])
def test_a_number_in_a_warning_of_each_step_is_read_in_each(asked: str, count: int) -> None:
    code = training(f"{asked}logger.warning('large: %s', loss.item())", "logger, rank, found = make(), make(), make()")
    assert len(findings(code, "SYNC01")) == count
