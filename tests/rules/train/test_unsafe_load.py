"""TRAIN11: what is put in the place of `torch.load`, and what only looks like it."""

from __future__ import annotations

from pathlib import Path
from pickle import UnpicklingError

import pytest

from tests.support import findings, fixed
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability, Finding
from torchlint.semantics.project import Project
from torchlint.source import Source

LOAD = "import torch\n\nstate = torch.load('model.pt')\n"


def test_a_load_is_found() -> None:
    assert [finding.line for finding in findings(LOAD, "TRAIN11")] == [3]


@pytest.mark.parametrize(("line", "expected"), [("torch.load = restricted", []), ("args.load = ''", [3])])
def test_only_another_torch_load_makes_it_safe(line: str, expected: list[int]) -> None:
    code = f"{LOAD}\ndef prepare(args, restricted):\n    {line}\n"
    assert [finding.line for finding in findings(code, "TRAIN11")] == expected


NET = "import torch\n\nnet = torch.nn.Linear(2, 2)\n\n"
WEIGHTS = NET + "state = torch.load('a.pt')\nnet.load_state_dict(state['state_dict'])\n"


@pytest.mark.parametrize(
    "use",
    [
        "net = state['arch']\nnet.load_state_dict(state['state_dict'])\n",
        "net.load_state_dict(state['model'].float().state_dict())\n",
        "other = state['net']\nnet.load_state_dict(state['state_dict'])\nprint(other(torch.ones(1, 2)))\n",
    ],
)
def test_a_checkpoint_with_a_network_in_it_is_no_dict_of_tensors(use: str) -> None:
    code = NET + "state = torch.load('a.pt')\n" + use
    assert "whole pickled module" in findings(code, "TRAIN11")[0].message
    assert fixed(code, "TRAIN11") == code


KEPT = "torch.save({'state_dict': net.state_dict(), 'epoch': 1}, 'a.pt')\n"


def test_where_one_load_of_a_file_gets_a_network_no_other_is_restricted() -> None:
    whole = "\ndef restored():\n    return torch.load('b.pt')['model'].eval()\n"
    code = WEIGHTS + KEPT
    assert fixed(code, "TRAIN11") == code.replace("load('a.pt')", "load('a.pt', weights_only=True)")
    assert fixed(code + whole, "TRAIN11") == code + whole


@pytest.mark.parametrize(("entry", "is_fixed"), [("global_step", False), ("callbacks", False), ("epoch", True)])
def test_a_checkpoint_of_lightning_holds_objects(entry: str, is_fixed: bool) -> None:
    code = f"{WEIGHTS}print(state['{entry}'])\n{KEPT}"
    assert ("weights_only=True" in fixed(code, "TRAIN11")) is is_fixed


def test_where_lightning_is_in_use_the_weights_of_a_checkpoint_are_no_proof_of_its_contents() -> None:
    code = WEIGHTS.replace("import torch\n", "import torch\nimport pytorch_lightning as pl\n", 1)
    assert fixed(code, "TRAIN11") == code
    assert "weights_only=True" in fixed(code.replace("['state_dict']", ""), "TRAIN11")


@pytest.mark.parametrize(
    ("score", "is_fixed"), [("score['mean']", False), ("float(score['mean'])", True), ("max(0.0, score)", False)]
)
def test_a_score_may_be_a_number_of_numpy(score: str, is_fixed: bool) -> None:
    saved = f"{{'state_dict': net.state_dict(), 'best_iou': {score}}}"
    code = f"{WEIGHTS}\ndef kept(score):\n    torch.save({saved}, 'a.pt')\n"
    assert ("weights_only=True" in fixed(code, "TRAIN11")) is is_fixed
    assert fixed(WEIGHTS + "print(state['best_iou'])\n", "TRAIN11") == WEIGHTS + "print(state['best_iou'])\n"


def test_weights_whose_names_are_cut_are_weights() -> None:
    code = (
        NET
        + "state = torch.load('a.pt')\nstate = {k[7:]: state[k] for k in state.keys()}\nnet.load_state_dict(state)\n"
    )
    assert "weights_only=True" in fixed(code, "TRAIN11")


@pytest.mark.parametrize(
    ("condition", "lines"),
    [
        pytest.param('hasattr(args.training, "pretrained")', [5], id="a setting of the project"),
        pytest.param('hasattr(args, "pretrained")', [5], id="an argument"),
        pytest.param('hasattr(torch.serialization, "safe_globals")', [], id="a later addition to torch"),
        pytest.param('not hasattr(torch, "compile")', [], id="an earlier release"),
    ],
)
def test_only_what_torch_has_tells_releases_apart(condition: str, lines: list[int]) -> None:
    code = f"""
        import torch

        def restore(model, args):
            if {condition}:
                model.load_state_dict(torch.load(args.path)["state_dict"])
    """
    assert [finding.line for finding in findings(code, "TRAIN11")] == lines


BRANCHES = (
    NET
    + """\
def restore(path, parallel):
    if parallel:
        state = {}
        for key, value in torch.load(path).items():
            state[key[7:]] = value
        net.load_state_dict(state)
    else:
        net.load_state_dict(torch.load(path))
"""
)


def test_one_file_is_read_in_one_way() -> None:
    assert fixed(BRANCHES, "TRAIN11").count("weights_only=True") == 2
    assert fixed(BRANCHES.replace(".items()", "['args']"), "TRAIN11").count("weights_only=True") == 0


def test_a_load_beside_one_that_has_no_fix_has_its_own() -> None:
    beside = BRANCHES.replace("load(path))", "load(other))")
    assert [finding.fix is None for finding in findings(beside, "TRAIN11")] == [True, False]
    assert "load(other, weights_only=True))" in fixed(beside, "TRAIN11")


TRAINING = """\
import torch
from scores import results


def keep(net, path):
    best = results()["accuracy"]
    torch.save({{"weights": net.state_dict(), {}: best}}, path)
"""


@pytest.mark.parametrize(("entry", "is_fixed"), [('"best_score"', False), ('"miou"', False), ('"best_epoch"', True)])
def test_what_another_file_saves_counts(entry: str, is_fixed: bool, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(TRAINING.format(entry))
    (tmp_path / "predict.py").write_text(WEIGHTS.replace("state['state_dict']", "state['weights']"))
    (found,) = lint(Source.read(tmp_path / "predict.py"), Settings.selecting("TRAIN11"), project=Project())
    assert (found.fix is not None) is is_fixed


@pytest.mark.parametrize(
    ("own", "is_fixed"),
    [
        ("torch.save(net.state_dict(), 'b.pt')", False),
        ("torch.save({'epoch': 1}, 'b.pt')", False),
        ("torch.save({'weights': net.state_dict(), 'epoch': 1}, 'a.pt')", True),
    ],
)
def test_what_another_file_saves_counts_where_this_one_saves_something_else(
    own: str, is_fixed: bool, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(TRAINING.format('"vocab"'))
    code = WEIGHTS.replace("state['state_dict']", "state['weights']") + own + "\n"
    (tmp_path / "predict.py").write_text(code)
    (found,) = lint(Source.read(tmp_path / "predict.py"), Settings.selecting("TRAIN11"), project=Project())
    assert (found.fix is not None) is is_fixed
    assert ("all that a state dict needs" in found.message) is is_fixed


SAVED = """\
import numpy as np
import torch

net = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{set_up}
for epoch in range(2):
    optimizer.step()
    {step}
    torch.save({{"net": net.state_dict(), {entry}}}, path)
state = torch.load(path)
net.load_state_dict(state["net"])
"""
WARM_UP = """
def factor(step):
    return {}(step + 1, 2) ** -0.5

scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
"""


@pytest.mark.parametrize(
    ("set_up", "step", "entry"),
    [
        pytest.param("", "pass", '"best": np.mean([1.0, 2.0])', id="a mean"),
        pytest.param("best = np.zeros(2)", "pass", '"best": best', id="an array"),
        pytest.param(
            WARM_UP.format("np.minimum"), "scheduler.step()", '"optimizer": optimizer.state_dict()', id="a rate"
        ),
        pytest.param(WARM_UP.format("np.minimum"), "scheduler.step()", '"s": scheduler.state_dict()', id="a schedule"),
    ],
)
def test_a_checkpoint_with_numbers_of_numpy_is_not_restricted(
    set_up: str, step: str, entry: str, tmp_path: Path
) -> None:
    code = SAVED.format(set_up=set_up, step=step, entry=entry)
    assert fixed(code, "TRAIN11") == code
    with pytest.raises(UnpicklingError, match="numpy"):
        run(code, tmp_path)


@pytest.mark.parametrize(
    ("set_up", "step", "entry"),
    [
        pytest.param("", "pass", '"epoch": epoch, "best": float(np.mean([1.0, 2.0]))', id="plain numbers"),
        pytest.param(WARM_UP.format("min"), "scheduler.step()", '"optimizer": optimizer.state_dict()', id="a rate"),
        pytest.param("", "pass", '"optimizer": optimizer.state_dict()', id="a rate that no function sets"),
    ],
)
def test_a_checkpoint_with_plain_values_is_restricted(set_up: str, step: str, entry: str, tmp_path: Path) -> None:
    code = SAVED.format(set_up=set_up, step=step, entry=entry)
    after = fixed(code, "TRAIN11")
    assert after == code.replace("load(path)", "load(path, weights_only=True)")
    run(after, tmp_path)


SCHEDULE = """
import torch
net = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.{scheduler}
torch.save({{"net": net.state_dict(), "scheduler": scheduler.state_dict()}}, path)
checkpoint = torch.load(path)
net.load_state_dict(checkpoint["net"])
"""


@pytest.mark.parametrize(
    ("scheduler", "asked", "applicability"),
    [
        ("MultiStepLR(optimizer, [10, 20])", "torch>=1.13", Applicability.DISPLAY),
        ("MultiStepLR(optimizer, [10, 20])", "torch==2.3", Applicability.DISPLAY),
        ("MultiStepLR(optimizer, [10, 20])", "torch>=2.4", Applicability.UNSAFE),
        ("MultiStepLR(optimizer, [10, 20])", "numpy", Applicability.UNSAFE),
        ("StepLR(optimizer, 10)", "torch>=1.13", Applicability.UNSAFE),
    ],
)
def test_the_state_of_a_scheduler_may_be_refused_by_an_older_torch(
    scheduler: str, asked: str, applicability: Applicability, tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text(asked + "\n")
    code = SCHEDULE.format(scheduler=scheduler)
    assert fix_in(tmp_path, code) is applicability
    run(code.replace("load(path)", "load(path, weights_only=True)"), tmp_path)


def test_weights_by_themselves_have_no_scheduler_beside_them(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=1.13\n")
    (tmp_path / "train.py").write_text(SCHEDULE.format(scheduler="MultiStepLR(optimizer, [10, 20])"))
    weights = NET + "net.load_state_dict(torch.load('a.pt'))\n"
    assert fix_in(tmp_path, weights) is Applicability.UNSAFE
    assert fix_in(tmp_path, WEIGHTS.replace("state['state_dict']", "state['net']")) is Applicability.DISPLAY


def fix_in(folder: Path, code: str) -> Applicability:
    (folder / "pyproject.toml").write_text("")
    source = Source.from_text(code, folder / "program.py")
    [finding] = lint(source, Settings.selecting("TRAIN11"), project=Project())
    assert finding.fix is not None
    return finding.fix.applicability


def run(code: str, folder: Path) -> None:
    exec(compile(code, "program", "exec"), {"path": folder / "model.pt"})


PROJECT = """\
import numpy as np
import torch
from elsewhere import Settings, measure


def keep(net, optimizer, epoch, state, options, settings):
    scheduler = torch.optim.lr_scheduler.{scheduler}
    package = {{"net": net.state_dict(), "epoch": epoch}}
    {more}
    torch.save(package, "a.pt")
"""
READ = NET + "state = torch.load('a.pt')\nnet.load_state_dict(state['net'])\n"


@pytest.mark.parametrize(
    ("more", "doubt"),
    [
        pytest.param("pass", None, id="weights and a counter"),
        pytest.param('package["optimizer"] = optimizer.state_dict()', None, id="a state that is added later"),
        pytest.param('package["scheduler"] = scheduler.state_dict()', None, id="the state of a scheduler of torch"),
        pytest.param('package.update(size=3, names=["a", "b"])', None, id="plain containers"),
        pytest.param('package["plan"] = settings', "plan", id="an object of a class of the project"),
        pytest.param('package["c"] = Settings()', "c", id="an object made on the spot"),
        pytest.param('package["optimizer"] = optimizer', "optimizer", id="a whole optimizer"),
        pytest.param('package["best"] = measure(net)', "best", id="a score of a file that computes with NumPy"),
    ],
)
def test_the_files_that_write_a_checkpoint_prove_what_it_holds(more: str, doubt: str | None, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROJECT.format(more=more, scheduler="StepLR(optimizer, 10)"))
    finding = read_in(tmp_path)
    assert (finding.fix is not None) is (doubt is None)
    if doubt is not None:
        assert finding.no_fix == f"train.py saves `{doubt}`, which may be more than tensors and plain values"


def test_a_rate_that_a_function_out_of_sight_computes_may_be_of_numpy(tmp_path: Path) -> None:
    more = 'package["optimizer"] = optimizer.state_dict()'
    (tmp_path / "train.py").write_text(PROJECT.format(more=more, scheduler="StepLR(optimizer, 10)"))
    (tmp_path / "rates.py").write_text(
        "import torch\nfrom maths import rate\n"
        "def made(optimizer):\n"
        "    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step))\n"
    )
    assert read_in(tmp_path).fix is None
    (tmp_path / "rates.py").write_text((tmp_path / "rates.py").read_text().replace("rate(step))", "0.1 ** step)"))
    assert read_in(tmp_path).fix is not None


def test_a_scheduler_of_the_project_keeps_what_it_likes(tmp_path: Path) -> None:
    more = 'package["scheduler"] = scheduler.state_dict()'
    (tmp_path / "train.py").write_text(PROJECT.format(more=more, scheduler="StepLR(optimizer, 10)"))
    (tmp_path / "rates.py").write_text("class WarmUpLR:\n    def __init__(self, after):\n        self.after = after\n")
    assert read_in(tmp_path).fix is None


@pytest.mark.parametrize(("given", "is_fixed"), [("{'net': net.state_dict()}", True), ("everything()", False)])
def test_the_callers_of_a_function_that_saves_say_what_it_saves(given: str, is_fixed: bool, tmp_path: Path) -> None:
    (tmp_path / "keeping.py").write_text("import torch\ndef keep(state, name):\n    torch.save(state, name)\n")
    train = f"from keeping import keep\ndef train(net, everything):\n    keep({given}, name='a.pt')\n"
    (tmp_path / "train.py").write_text(train)
    assert (read_in(tmp_path).fix is not None) is is_fixed


@pytest.mark.parametrize(("count", "is_fixed"), [(2, True), (20, False)])
def test_the_callers_in_very_many_files_are_not_all_read(count: int, is_fixed: bool, tmp_path: Path) -> None:
    (tmp_path / "keeping.py").write_text("import torch\ndef keep(state, name):\n    torch.save(state, name)\n")
    for number in range(count):
        train = (
            f"from keeping import keep\ndef train{number}(net):\n    keep({{'net': net.state_dict()}}, name='a.pt')\n"
        )
        (tmp_path / f"train{number}.py").write_text(train)
    assert (read_in(tmp_path).fix is not None) is is_fixed


def test_a_checkpoint_that_nothing_in_sight_writes_is_not_restricted(tmp_path: Path) -> None:
    finding = read_in(tmp_path)
    assert finding.no_fix == "no `torch.save` of the project shows what the checkpoint holds"
    assert read_in(tmp_path, READ.replace("state['net']", "state")).fix is not None


def test_the_state_of_a_scheduler_that_is_made_out_of_sight_is_not_known(tmp_path: Path) -> None:
    more = 'scheduler = measure(optimizer)\n    package["scheduler"] = scheduler.state_dict()'
    (tmp_path / "train.py").write_text(PROJECT.format(more=more, scheduler="StepLR(optimizer, 10)"))
    assert read_in(tmp_path).fix is None


def read_in(folder: Path, code: str = READ) -> Finding:
    (folder / "pyproject.toml").write_text("")
    [finding] = lint(Source.from_text(code, folder / "program.py"), Settings.selecting("TRAIN11"), project=Project())
    return finding


@pytest.mark.parametrize(("asked", "count"), [("torch>=2.7", 0), ("torch==2.6.0", 0), ("torch>=2.5", 1), ("torch", 1)])
def test_a_project_that_runs_with_the_newer_default_only_is_silent(asked: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "nets"\ndependencies = ["{asked}"]\n')
    (tmp_path / "predict.py").write_text("import torch\n\nnet.load_state_dict(torch.load(path))\n")
    assert len(lint(Source.read(tmp_path / "predict.py"), Settings.selecting("TRAIN11"), project=Project())) == count


def test_what_one_script_installs_says_nothing_of_all(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "nightly.sh").write_text("pip install torch==2.7.0\n")
    (tmp_path / "predict.py").write_text("import torch\n\nnet.load_state_dict(torch.load(path))\n")
    assert len(lint(Source.read(tmp_path / "predict.py"), Settings.selecting("TRAIN11"), project=Project())) == 1


@pytest.mark.parametrize(("first", "is_fixed"), [("Agent()", False), ("torch.nn.Linear(3, 1)", True)])
def test_of_two_loads_in_a_function_both_are_restricted_or_none(first: str, is_fixed: bool) -> None:
    code = (
        "import copy\nimport torch\n\nclass Agent:\n    def load_state_dict(self, state):\n        self.state = state\n"
    )
    code += f"\ndef agents(path, other):\n    first = {first}\n    first.load_state_dict(torch.load(path))\n"
    code += (
        "    second = copy.deepcopy(first)\n    second.load_state_dict(torch.load(other))\n    return first, second\n"
    )
    assert (fixed(code, "TRAIN11").count("weights_only=True") == 2) is is_fixed
    assert is_fixed or fixed(code, "TRAIN11") == code
