"""DATA03: workers of a data loader end with every epoch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.support import findings, fixed, marked
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.finding import Applicability
from torchlint.semantics.project import Project
from torchlint.source import Source

HEADER = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
images = TensorDataset(torch.arange(16.0).reshape(8, 2), torch.arange(8) % 2)
model = nn.Linear(2, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
nw = 2

"""
STEPS = """\
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x.to(device)), y.to(device)).backward()
    optimizer.step()
"""


def indented(code: str) -> str:
    return "".join("    " + line for line in code.splitlines(keepends=True))


EPOCHS = "for epoch in range(2):\n" + indented(STEPS)
VARIANTS = {
    "workers": "loader = DataLoader(images, num_workers=2)  # found\n" + EPOCHS,
    "an option that says no": "loader = DataLoader(images, num_workers=2, persistent_workers=False)  # found\n"
    + EPOCHS,
    "a number of workers in a variable": "loader = DataLoader(images, num_workers=nw)  # found\n" + EPOCHS,
    "a number of workers from outside": "import sys\n\nworkers = int(sys.argv[1]) if sys.argv[1:] else 0\n"
    "loader = DataLoader(images, num_workers=workers)  # found\n" + EPOCHS,
    "a function that runs an epoch": "def train(loader):\n"
    + indented(STEPS)
    + "\nloader = DataLoader(images, num_workers=2)  # found\nfor epoch in range(2):\n    train(loader)\n",
    "a progress bar": "from tqdm import tqdm\n\nloader = DataLoader(images, num_workers=2)  # found\n"
    + EPOCHS.replace("in loader", "in tqdm(loader)"),
}
LOOK_ALIKES = {
    "one epoch": "loader = DataLoader(images, num_workers=2)\n" + EPOCHS.replace("range(2)", "range(1)"),
    "folds of another dataset": "loader = DataLoader(images, num_workers=2)\nfor part in [images, images]:\n"
    + indented(STEPS),
    "a step that evaluates without gradients": "def step(x, y, training):\n"
    "    loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))\n"
    "    if training:\n        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n"
    "    return loss\n\nloader = DataLoader(images, num_workers=2)\nfor epoch in range(2):\n    for x, y in loader:\n"
    "        with torch.no_grad():\n            print(step(x, y, False))\n",
    "one pass over parts of each batch": "loader = DataLoader(images, num_workers=2)\nfor batch in loader:\n"
    "    for part in batch:\n        print(model(part.to(device)))\n",
    "an evaluation of its own": "def evaluate(loader):\n    for x, y in loader:\n        print(model(x.to(device)))\n\n"
    "loader = DataLoader(images, num_workers=2)\nfor epoch in range(2):\n    evaluate(loader)\n    optimizer.step()\n",
    "batches that stay on the host": "loader = DataLoader(images, num_workers=2)\nnet = nn.Linear(2, 2)\n"
    "for epoch in range(2):\n    for x, y in loader:\n        net(x).sum().backward()\n        optimizer.step()\n"
    "model.to(device)\n",
    "a function that trains on another loader in every epoch": "def train(loader):\n"
    + indented(STEPS)
    + "\nfirst = DataLoader(images, num_workers=2, persistent_workers=True)\n"
    "last = DataLoader(images, num_workers=2)\nfor epoch in range(2):\n    train(first)\ntrain(last)\n",
    "one for the first epoch, and another for all others": "loader = DataLoader(images, num_workers=2)\n"
    + EPOCHS.replace(":\n", ":\n    if epoch:\n        loader = DataLoader(images, shuffle=True, num_workers=2)\n", 1),
    "persistent workers": "loader = DataLoader(images, num_workers=2, persistent_workers=True)\n" + EPOCHS,
    "persistent if there are any": "loader = DataLoader(images, num_workers=nw, persistent_workers=nw > 0)\n" + EPOCHS,
    "no workers": "loader = DataLoader(images, num_workers=0)\n" + EPOCHS,
    "workers are not mentioned": "loader = DataLoader(images)\n" + EPOCHS,
    "one pass": "loader = DataLoader(images, num_workers=2)\n" + STEPS,
    "options out of sight": "loader = DataLoader(images, num_workers=2, **options())\n" + EPOCHS,
    "a loader for each epoch": "for epoch in range(2):\n    loader = DataLoader(images, num_workers=2)\n"
    + indented(STEPS),
    "a dataset that is told the epoch": "loader = DataLoader(images, num_workers=2)\n"
    + EPOCHS.replace(":\n", ":\n    images.set_epoch(epoch)\n", 1),
    "a dataset that is changed": "loader = DataLoader(images, num_workers=2)\n"
    + EPOCHS.replace(":\n", ":\n    loader.dataset.strength = epoch\n", 1),
    "a dataset that loads its next part": "loader = DataLoader(images, num_workers=2)\n\ndef epoch_of(batches):\n"
    "    batches.dataset.load_next()\n"
    + indented(STEPS.replace("loader", "batches"))
    + "\nfor epoch in range(2):\n    epoch_of(loader)\n",
    "a stream": "class Stream(IterableDataset):\n    def __iter__(self):\n        yield from images\n\n"
    "loader = DataLoader(Stream(), num_workers=2)\n" + EPOCHS,
}


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_finds(code: str) -> None:
    assert [finding.line for finding in findings(HEADER + code, "DATA03")] == marked(HEADER + code, "# found")


def test_no_fix_where_each_new_worker_is_seeded() -> None:
    code = HEADER + "loader = DataLoader(images, num_workers=2, worker_init_fn=seed)\n" + EPOCHS
    assert len(findings(code, "DATA03")) == 1
    assert fixed(code, "DATA03") == code


@pytest.mark.parametrize(("given", "is_fixed"), [("collate_fn", False), ("pad", True)])
def test_no_fix_where_another_function_hands_in_what_joins_the_samples(given: str, is_fixed: bool) -> None:
    body = f"loader = DataLoader(images, num_workers=2, collate_fn={given})\n" + EPOCHS
    code = HEADER + "def pad(samples):\n    return samples\n\ndef fit(images, collate_fn):\n" + indented(body)
    assert len(findings(code, "DATA03")) == 1
    assert ("persistent_workers" in fixed(code, "DATA03")) is is_fixed


@pytest.mark.parametrize("code", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_stays_silent(code: str) -> None:
    assert findings(HEADER + code, "DATA03") == []


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_fixed_code_has_no_finding(code: str) -> None:
    after = fixed(HEADER + code, "DATA03")
    assert "persistent_workers=" in after
    assert findings(after, "DATA03") == []


@pytest.mark.parametrize("name", ["workers", "a number of workers from outside"])
def test_fixed_code_trains_on_the_same_batches(name: str) -> None:
    weights = []
    for code in (HEADER + VARIANTS[name], fixed(HEADER + VARIANTS[name], "DATA03")):
        names: dict[str, torch.nn.Linear] = {}
        exec("import sys; sys.argv = ['']\nimport torch; torch.manual_seed(0)\n" + code, names)
        weights.append(names["model"].weight)
    assert torch.equal(*weights)


def test_a_number_out_of_sight_is_asked() -> None:
    after = fixed(HEADER + VARIANTS["a number of workers from outside"], "DATA03")
    assert "num_workers=workers, persistent_workers=workers > 0)" in after


@pytest.mark.parametrize(
    ("count", "is_some"),
    [
        ("min(8, os.cpu_count() or 1)", True),
        ("max(1, len(images))", True),
        ("multiprocessing.cpu_count()", True),
        ("min(8, os.cpu_count())", False),
        ("os.cpu_count() or 0", False),
        ("min([2, 3])", False),
    ],
)
def test_a_number_that_is_some_on_any_machine_is_not_asked_again(count: str, is_some: bool) -> None:
    code = HEADER + f"import multiprocessing\nimport os\nloader = DataLoader(images, num_workers={count})\n" + EPOCHS
    [found] = findings(code, "DATA03")
    assert ("where there are any" in found.message) is not is_some
    assert (f"num_workers={count}, persistent_workers=True)" in fixed(code, "DATA03")) is is_some


def test_a_number_that_is_set_elsewhere_is_asked_even_if_it_is_known() -> None:
    code = "settings = {'workers': 2}\nloader = DataLoader(images, num_workers=settings['workers'])\n" + EPOCHS
    assert "persistent_workers=settings['workers'] > 0)" in fixed(HEADER + code, "DATA03")


WITH_OPTIONS = EPOCHS.replace("for epoch", "loader = DataLoader(images, **options)\nfor epoch", 1)
# Where this runs nothing has workers, and the option raises: it has to stand where they are asked for.
SOMETIMES = {
    "a literal": ('options = {"num_workers": 2} if gpus else {}\n', '{"num_workers": 2, "persistent_workers": True}'),
    "an update": (
        'options = dict(batch_size=2)\nif gpus:\n    options.update({"num_workers": 2})\n',
        '{"num_workers": 2, "persistent_workers": True}',
    ),
    "an update by keyword": (
        "options = {}\nif gpus:\n    options.update(num_workers=2)\n",
        "update(num_workers=2, persistent_workers=True)",
    ),
    "an item": (
        'options = {}\nif gpus:\n    options["num_workers"] = 2\n',
        'options["num_workers"] = 2\n    options["persistent_workers"] = True\n',
    ),
}


@pytest.mark.parametrize(("options", "expected"), SOMETIMES.values(), ids=SOMETIMES)
def test_workers_stay_only_where_there_are_any(options: str, expected: str) -> None:
    code = HEADER + "gpus = False\n" + options + WITH_OPTIONS
    after = fixed(code, "DATA03")
    assert expected in after
    exec(after, {})


def test_the_use_of_a_partial_that_asks_for_workers_keeps_them() -> None:
    code = f"""from functools import partial

make = partial(DataLoader, batch_size=2)
loader, other = make(images, num_workers=2), make(images)
{EPOCHS}"""
    after = fixed(HEADER + code, "DATA03")
    assert "make(images, num_workers=2, persistent_workers=True), make(images)\n" in after
    exec(after, {})


def test_is_never_safe() -> None:
    (finding,) = findings(HEADER + VARIANTS["workers"], "DATA03")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


def test_says_where_the_loader_is_made_and_where_each_epoch_draws_from_it() -> None:
    code = HEADER + VARIANTS["a function that runs an epoch"]
    (finding,) = findings(code, "DATA03")
    lines = code.splitlines()
    assert [lines[step.line - 1].strip().partition(" ")[0] for step in finding.chain] == ["loader", "for", "for"]
    assert "for epoch" in lines[finding.chain[1].line - 1]


def test_finds_the_epoch_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    engine = "from torch import nn\n\ndef train(model, loader, optimizer, device):\n" + indented(STEPS)
    (tmp_path / "engine.py").write_text(engine)
    main = (
        HEADER
        + """\
from engine import train

loader = DataLoader(images, num_workers=2)
for x, y in loader:
    print(x.to(device).mean())
for epoch in range(2):
    train(model, loader, optimizer, device)
"""
    )
    (tmp_path / "main.py").write_text(main)
    source = Source.read(tmp_path / "main.py")
    found = lint(source, Settings.selecting("DATA03"), strict=True, project=Project())
    assert [finding.line for finding in found] == [1 + main[: main.index("loader = ")].count("\n")]


@pytest.mark.parametrize(
    ("default", "given", "count"), [("0", "", 0), ("4", "", 1), ("0", ", workers=4", 1), ("0", ", **options", 1)]
)
def test_a_default_that_no_call_changes(default: str, given: str, count: int) -> None:
    made = f"def make(data, workers={default}):\n    return DataLoader(data, num_workers=workers)\n\n"
    code = HEADER + f"from settings import options\n{made}loader = make(images{given})\n" + EPOCHS
    assert len(findings(code, "DATA03")) == count


BAR = """
from tqdm import trange


def train_epoch(loader):
    {steps}

def train(epochs):
    loader = DataLoader(images, 8, num_workers=4)
    for epoch in {count}:
        train_epoch(loader)
"""


@pytest.mark.parametrize(
    ("count", "found"), [("trange(epochs)", 1), ("trange(int(epochs), desc='Epoch')", 1), ("sets", 0)]
)
def test_a_bar_that_counts_counts_the_epochs(count: str, found: int) -> None:
    code = HEADER + BAR.format(steps=STEPS.replace("\n", "\n    "), count=count)
    assert len(findings(code, "DATA03")) == found


@pytest.mark.parametrize("count", ["(2 * workers)", "2 * workers"])
def test_a_number_that_is_computed_is_asked_in_one_pair_of_parentheses(count: str) -> None:
    code = f"workers = int(sys.argv[1])\nloader = DataLoader(images, num_workers={count})\n" + EPOCHS
    asked = count if count.startswith("(") else f"({count})"
    assert f"num_workers={count}, persistent_workers={asked} > 0)" in fixed(HEADER + code, "DATA03")
