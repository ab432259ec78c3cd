"""DATA02: a loader whose batches go to a GPU and that does not pin them. The programs stand in a file of their own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.data.loaders_left_unpinned import LOOK_ALIKES
from tests.rules.data.unpinned_loaders import HEADER, LOOP, VARIANTS, script
from tests.support import findings, fixed, marked
from torchlint.finding import Applicability

INSERTED = "pin_memory=torch.cuda.is_available()"

REWRITES = {
    "samples that come out of workers": (
        "from points import load\nloader = DataLoader(load(), 64, num_workers=4)\n",
        f"from points import load\nloader = DataLoader(load(), 64, num_workers=4, {INSERTED})\n",
    ),
    "keyword appended": (
        "loader = DataLoader(images, 64, shuffle=True, num_workers=4)\n",
        f"loader = DataLoader(images, 64, shuffle=True, num_workers=4, {INSERTED})\n",
    ),
    "after positional options": (
        "loader = DataLoader(images, 64, True, None, None, 4, None)\n",
        f"loader = DataLoader(images, 64, True, None, None, 4, None, {INSERTED})\n",
    ),
    "several lines with a trailing comma": (
        "loader = DataLoader(\n    images,  # the training half\n    batch_size=64,\n    num_workers=4,\n)\n",
        "loader = DataLoader(\n    images,  # the training half\n    batch_size=64,\n    num_workers=4,\n"
        f"    {INSERTED},\n)\n",
    ),
    "an option in scope that says the same": (
        "args = argparse.ArgumentParser().parse_args()\n"
        "use_cuda = not args.no_cuda and torch.cuda.is_available()\n"
        "loader = DataLoader(images, 64, num_workers=4)\n",
        "args = argparse.ArgumentParser().parse_args()\n"
        "use_cuda = not args.no_cuda and torch.cuda.is_available()\n"
        "loader = DataLoader(images, 64, num_workers=4, pin_memory=use_cuda)\n",
    ),
    "an attribute that says the same": (
        "args = argparse.ArgumentParser().parse_args()\n"
        "args.cuda = not args.no_cuda and torch.cuda.is_available()\n"
        "loader = DataLoader(images, 64, num_workers=4)\n",
        "args = argparse.ArgumentParser().parse_args()\n"
        "args.cuda = not args.no_cuda and torch.cuda.is_available()\n"
        "loader = DataLoader(images, 64, num_workers=4, pin_memory=args.cuda)\n",
    ),
    "an attribute that another place sets, too": (
        "args = argparse.ArgumentParser().parse_args()\n"
        "args.cuda = torch.cuda.is_available()\n"
        "if args.slow:\n    args.cuda = False\n"
        "loader = DataLoader(images, 64, num_workers=4)\n",
        "args = argparse.ArgumentParser().parse_args()\n"
        "args.cuda = torch.cuda.is_available()\n"
        "if args.slow:\n    args.cuda = False\n"
        f"loader = DataLoader(images, 64, num_workers=4, {INSERTED})\n",
    ),
    "the flag that the device hangs on": (
        "args = argparse.ArgumentParser().parse_args()\n"
        "device = torch.device('cuda:0' if args.cuda else 'cpu')\n"
        "loader = DataLoader(images, 64, num_workers=4)\n",
        "args = argparse.ArgumentParser().parse_args()\n"
        "device = torch.device('cuda:0' if args.cuda else 'cpu')\n"
        "loader = DataLoader(images, 64, num_workers=4, pin_memory=args.cuda)\n",
    ),
    "a flag that the device hangs on the other way round": (
        "args = argparse.ArgumentParser().parse_args()\n"
        "device = torch.device('cpu' if args.no_cuda else 'cuda')\n"
        "loader = DataLoader(images, 64, num_workers=4)\n",
        "args = argparse.ArgumentParser().parse_args()\n"
        "device = torch.device('cpu' if args.no_cuda else 'cuda')\n"
        f"loader = DataLoader(images, 64, num_workers=4, {INSERTED})\n",
    ),
    "options in a dict literal": (
        'options = {"batch_size": 64, "num_workers": 4}\nloader = DataLoader(images, **options)\n',
        'options = {"batch_size": 64, "num_workers": 4, "pin_memory": torch.cuda.is_available()}\n'
        "loader = DataLoader(images, **options)\n",
    ),
    "options in dict(...)": (
        "options = dict(batch_size=64, num_workers=4)\nloader = DataLoader(images, **options)\n",
        f"options = dict(batch_size=64, num_workers=4, {INSERTED})\nloader = DataLoader(images, **options)\n",
    ),
    "options with a key set later": (
        'options = {"batch_size": 64, "num_workers": 4}\n'
        'options["shuffle"] = True\nloader = DataLoader(images, **options)\n',
        'options = {"batch_size": 64, "num_workers": 4, "pin_memory": torch.cuda.is_available()}\n'
        'options["shuffle"] = True\nloader = DataLoader(images, **options)\n',
    ),
    "partial": (
        "make = functools.partial(DataLoader, num_workers=4)\nloader = make(images)\n",
        f"make = functools.partial(DataLoader, num_workers=4, {INSERTED})\nloader = make(images)\n",
    ),
}


def test_silent_in_the_tests_of_a_project() -> None:
    code = VARIANTS["loader with workers"] + "import pytest\n"
    assert findings(code, "DATA02", path="tests/test_training.py") == []
    assert findings(code, "DATA02", path="test.py") != []


@pytest.mark.parametrize("code", VARIANTS.values(), ids=VARIANTS.keys())
def test_variants_are_found(code: str) -> None:
    assert [finding.line for finding in findings(code, "DATA02")] == marked(code, "# found")


@pytest.mark.parametrize("code", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_look_alikes_stay_silent(code: str) -> None:
    assert findings(code, "DATA02") == []


@pytest.mark.parametrize(("before", "after"), REWRITES.values(), ids=REWRITES.keys())
def test_rewrites(before: str, after: str) -> None:
    assert fixed(script(before), "DATA02", unsafe=False) == script(after)


def test_loaders_that_share_their_options_are_fixed_once() -> None:
    shared = """\
        options = {{"batch_size": 64, "num_workers": 4{}}}
        loader = DataLoader(images, shuffle=True, **options)
        val_loader = DataLoader(images, **options)
        for x, y in val_loader:
            print(criterion(model(x.to(device)), y.to(device)))
        """
    before, after = shared.format(""), shared.format(', "pin_memory": torch.cuda.is_available()')
    assert fixed(script(before), "DATA02", unsafe=False) == script(after)


UNFIXED = {
    "options that something else gets too": """\
        from engine import Config
        options = {"batch_size": 64, "num_workers": 4}
        config = Config(**options)
        loader = DataLoader(images, **options)
        """,
    "options from two places": """\
        options, more = {"batch_size": 64}, {"num_workers": 4}
        loader = DataLoader(images, **options, **more)
        """,
    "explicitly off": "loader = DataLoader(images, 64, pin_memory=False)\n",
    "samples that may be on the GPU": """\
        from points import load
        loader = DataLoader(load(), 64)
        """,
    "sparse samples": """\
        from torchvision.transforms import Lambda
        rows = datasets.MNIST("data", transform=Lambda(lambda x: x.to_sparse()))
        loader = DataLoader(rows, 64)
        """,
}


@pytest.mark.parametrize("body", UNFIXED.values(), ids=UNFIXED.keys())
def test_no_safe_fix(body: str) -> None:
    assert len(findings(script(body), "DATA02")) == 1
    assert fixed(script(body), "DATA02", unsafe=False) == script(body)


FLAGGED = """\
args = argparse.ArgumentParser().parse_args()
loader = DataLoader(images, 64, num_workers=4)
for x, y in loader:
    {}
    if args.cuda:
        y = y.cuda()
    loss = criterion(model(x), y)
"""


@pytest.mark.parametrize(
    ("line", "expected"), [("x = x * 2", "args.cuda"), ("x = x.cuda()", "torch.cuda.is_available()")]
)
def test_the_flag_that_all_copies_stand_under_says_when_to_pin(line: str, expected: str) -> None:
    after = fixed(script(FLAGGED.format(line), ""), "DATA02", unsafe=False)
    assert f"DataLoader(images, 64, num_workers=4, pin_memory={expected})" in after


BESIDE = """\
args = argparse.ArgumentParser().parse_args()
use_cuda = args.cuda
first = DataLoader(images, 64, num_workers=4)
second = DataLoader(images, 64, num_workers=4)
for x, _ in first:
    if x.ndim:
        model(x.cuda())
for x, _ in second:
    if use_cuda:
        model(x.cuda())
"""


def test_loaders_of_a_function_are_pinned_under_the_same_flag() -> None:
    after = fixed(script(BESIDE, ""), "DATA02")
    assert after.count("pin_memory=use_cuda") == 2


ON_CUDA = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets

images = datasets.CIFAR10("data")
model = nn.Linear(8, 2)


def train():
    loader = DataLoader(images, 64, num_workers=4)
    {}
    for x, y in loader:
        {}
"""


def test_loaders_of_a_function_are_pinned_alike_where_one_alone_needs_cuda() -> None:
    code = (
        ON_CUDA.partition("def train")[0]
        + """\
class Learner:
    def __init__(self, args):
        self.device = args["device"][0]
        self.shown = DataLoader(images, 64, num_workers=4)
        self.seen = DataLoader(images, 64, num_workers=4)

    def learn(self):
        for x, y in self.seen:
            model(x.to(self.device))

    def show(self):
        for x, y in self.shown:
            model(x.cuda())


learner = Learner({"device": ["cuda:0"]})
"""
    )
    assert fixed(code, "DATA02").count(INSERTED) == 2
    assert fixed(code.replace("x.to(self.device)", "x.cuda()"), "DATA02").count("pin_memory=True") == 2


@pytest.mark.parametrize(
    ("before", "inside", "value"),
    [
        ("model.cuda()", "model(x.cuda())", "True"),
        ('device = torch.device("cuda")', "model(x.to(device))", "True"),
        ("pass", "model(x.cuda())", "True"),
        ("if use_gpu: model.cuda()", "model(x.cuda() if use_gpu else x)", INSERTED.partition("=")[2]),
        ("print(torch.cuda.is_available())", "model(x.cuda())", INSERTED.partition("=")[2]),
    ],
)
def test_a_program_that_cannot_run_without_cuda_is_asked_nothing(before: str, inside: str, value: str) -> None:
    assert f"num_workers=4, pin_memory={value})" in fixed(ON_CUDA.format(before, inside), "DATA02")


@pytest.mark.parametrize("code", ["DATA02", "XFER02"])
def test_without_workers_the_fix_is_only_shown(code: str) -> None:
    """The copy into page-locked memory would be made by the process that drives the GPU, between its steps."""
    alone, helped = (script(f"loader = DataLoader(images, 64{workers})\n") for workers in ("", ", num_workers=2"))
    assert {finding.fix and finding.fix.applicability for finding in findings(alone, code)} == {Applicability.DISPLAY}
    assert fixed(alone, code) == alone
    assert INSERTED in fixed(helped, code)


@pytest.mark.parametrize("code", ["DATA02", "XFER02"])
def test_the_fix_follows_when_workers_are_asked_for(code: str) -> None:
    program = script("loader = DataLoader(images, 64)\n").replace("import argparse\n", "import argparse\nimport os\n")
    guarded = program + "\nif __name__ == '__main__':\n    pass\n"
    assert f"num_workers=min(8, os.cpu_count() or 1), {INSERTED})" in " ".join(fixed(guarded, code, "DATA01").split())


def test_an_explicit_choice_stays() -> None:
    code = script("loader = DataLoader(images, 64, pin_memory=False)\n")
    assert len(findings(code, "DATA02")) == 1
    assert fixed(code, "DATA02") == code


PROGRAM = """\
import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return torch.tensor([i, i * i]) * torch.ones(2), {"index": torch.tensor(i)}


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
options = dict(batch_size=3, num_workers=1)
seen = []
for loader in (DataLoader(Squares(), 4, shuffle=True, num_workers=1), DataLoader(Squares(), **options)):
    for x, extra in loader:
        seen.append(x.to(device))
        seen.append(extra["index"].to(device))
"""


def test_the_batches_stay_the_same() -> None:
    changed = fixed(PROGRAM, "DATA02", unsafe=False)
    assert changed.count("pin_memory=torch.cuda.is_available()") == 2
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    exec(compile(PROGRAM, "before", "exec"), before)
    exec(compile(changed, "after", "exec"), after)
    assert len(before["seen"]) == len(after["seen"]) == 14
    assert all(a.equal(b) for a, b in zip(before["seen"], after["seen"], strict=True))


@pytest.mark.parametrize("code", ["DATA01", "DATA02"])
def test_says_where_batches_are_drawn_and_copied(code: str) -> None:
    text = script("loader = DataLoader(images, 64)\n")
    (finding,) = findings(text, code)
    lines = [text.splitlines()[step.line - 1].strip() for step in finding.chain]
    assert lines == ["loader = DataLoader(images, 64)", "for x, y in loader:", "x, y = x.to(device), y.to(device)"]


@pytest.mark.parametrize(
    ("option", "found"),
    [
        ("args.num_workers = int(args.num_workers / 2)", 1),
        ("args.num_workers = 0", 1),
        ("other.num_workers = 4", 0),
        ("loader.pin_memory = True", 0),
    ],
)
def test_options_that_are_set_on_what_a_loader_is_given_them_from(option: str, found: int) -> None:
    body = f"args = argparse.Namespace()\n{option}\nloader = DataLoader(images, 64, num_workers=args.num_workers)\n"
    assert len(findings(script(body), "DATA02")) == found


def test_an_object_that_keeps_the_options_of_its_loader() -> None:
    kept = "class Data:\n    def __init__(self, count):\n        self.num_workers = count\n"
    assert len(findings(script(kept + "loader = DataLoader(images, 64)\n"), "DATA02")) == 1
    assert not findings(
        script(kept.replace("Data:", "Data(DataLoader):") + "loader = DataLoader(images, 64)\n"), "DATA02"
    )


@pytest.mark.parametrize(("made", "found"), [("Settings()", 1), ("make_loader()", 0), ("Settings(DataLoader)", 0)])
def test_a_default_that_settings_have_for_a_loader(made: str, found: int) -> None:
    cls = "class Settings(DataLoader):" if "DataLoader" in made else "class Settings:"
    body = f"{cls}\n    pass\n\nchosen = {made}\nchosen.num_workers = 4\nloader = DataLoader(images, 64)\n"
    assert len(findings(script(body), "DATA02")) == found


@pytest.mark.parametrize(("device", "found"), [("device", 1), ('"cpu"', 0)])
def test_the_step_of_an_engine_copies_its_batches(device: str, found: int) -> None:
    code = script(
        f"""
        from ignite.engine import Engine

        loader = DataLoader(images, 64)

        def step(engine, batch):
            x, y = tuple(part.to({device}) for part in batch)
            return criterion(model(x), y).item()

        Engine(step).run(loader)
        """,
        "",
    )
    assert len(findings(code, "DATA02")) == found


def test_a_bar_of_fastprogress_hands_batches_on() -> None:
    loop = LOOP.replace("in loader", "in progress_bar(loader, parent=bar)")
    imported = "from fastprogress.fastprogress import progress_bar\n"
    assert len(findings(script(imported + "loader = DataLoader(images, 64)\n", loop), "DATA02")) == 1


MADE = "DataLoader(images, 64, num_workers=4)"
LOADED = f"loader = {MADE}"
CHOICE = 'os.environ["CUDA_VISIBLE_DEVICES"] = "1"'


@pytest.mark.parametrize(
    ("body", "is_pinned"),
    [
        (f"{LOADED}\n{CHOICE}\n", False),
        (f"{CHOICE}\n{LOADED}\n", True),
        (f"{LOADED}\nos.environ['OMP_NUM_THREADS'] = '1'\n", True),
        (f"{LOADED}\ndef choose():\n    {CHOICE}\n\nchoose()\n", False),
        (f"def choose():\n    {CHOICE}\n\nchoose()\n{LOADED}\n", True),
        (f"def load():\n    return {MADE}\n\n{CHOICE}\nloader = load()\n", True),
        (f"def load():\n    return {MADE}\n\nloader = load()\n{CHOICE}\n", False),
        (f"use_cuda = torch.cuda.is_available()\n{LOADED}\n{CHOICE}\n", True),
    ],
)
def test_torch_is_not_asked_for_a_gpu_before_the_program_says_which(body: str, is_pinned: bool) -> None:
    code = script(f"import os\n{body}")
    assert len(findings(code, "DATA02")) == 1
    assert ("pin_memory=" in fixed(code, "DATA02")) is is_pinned


@pytest.mark.parametrize("asked", ["next(net.parameters())", "[*net.parameters()][0]", "list(net.parameters())[0]"])
@pytest.mark.parametrize(("named", "found"), [("cuda", 1), ("cpu", 0)])
def test_the_device_of_a_network_whose_program_names_the_cpu_alone(asked: str, named: str, found: int) -> None:
    code = f"""
        import torch
        from photos import Photos
        from torch.utils.data import DataLoader

        device = torch.device("{named}")
        model = torch.nn.Linear(8, 2).to(device)
        opt = torch.optim.SGD(model.parameters(), 0.1)

        def train(net, loader):
            device = {asked}.device
            for x, y in loader:
                opt.zero_grad()
                torch.nn.functional.cross_entropy(net(x.to(device)), y.to(device)).backward()
                opt.step()

        train(model, DataLoader(Photos(), 64))
        """
    assert len(findings(code, "DATA02")) == found
    assert len(findings(code, "XFER02")) == 2 * found


@pytest.mark.parametrize(
    ("size", "applicability"), [("len(images)", Applicability.DISPLAY), ("len(images) // 4", Applicability.SAFE)]
)
@pytest.mark.parametrize("code", ["DATA02", "XFER02"])
def test_a_loader_of_one_batch_is_not_pinned_unasked(size: str, applicability: Applicability, code: str) -> None:
    body = "images = torch.utils.data.TensorDataset(torch.zeros(4, 8))\n"
    body += f"loader = DataLoader(images, {size}, num_workers=2)\n"
    assert {finding.fix and finding.fix.applicability for finding in findings(script(body), code)} == {applicability}


@pytest.mark.parametrize(("options", "found"), [("num_workers=4", 1), ("pin_memory=True", 0)])
def test_a_loader_under_a_key_of_a_dict_that_holds_something_else_in_one_branch(options: str, found: int) -> None:
    body = f"""
        parts = {{}}
        parts["train"] = DataLoader(images, 64, {options})
        if images.train:
            parts["test"] = [DataLoader(images, 64, pin_memory=True) for _ in range(10)]
        loader = parts["train"]
        """
    assert len(findings(script(body), "DATA02")) == found


@pytest.mark.parametrize("options", ["{'num_workers': 2}", '{"num_workers": 2}'])
def test_the_option_is_quoted_like_those_beside_it(options: str) -> None:
    quote = options[1]
    body = f"options = {options}\nloader = DataLoader(TensorDataset(torch.zeros(4, 8)), 64, **options)\n"
    code = script(f"from torch.utils.data import TensorDataset\nnames = ['a', 'b', \"c\", \"d\"]\n{body}")
    assert f", {quote}pin_memory{quote}: torch.cuda" in fixed(code, "DATA02")


@pytest.mark.parametrize(
    ("head", "count"), [("class Net(nn.Module):\n    @staticmethod", 1), ("class TestNet:\n    @staticmethod", 0)]
)
def test_the_test_step_of_a_network_is_no_test_of_it(head: str, count: int) -> None:
    code = (
        f"import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n\n\n{head}\n"
        "    def test_step(net, triples):\n"
        "        loader = DataLoader(triples, 4, num_workers=2)\n"
        "        total = 0\n"
        "        for x in loader:\n"
        "            assert x.size(1) == 3\n"
        "            total += net(x.cuda()).mean()\n"
        "        return total\n"
    )
    assert len(findings(code, "DATA02")) == count


@pytest.mark.parametrize(("line", "found"), [("graphs.to(device)", 0), ("graphs = graphs.to(device)", 1)])
def test_graphs_that_are_moved_in_place_are_no_tensors(line: str, found: int) -> None:
    code = (
        HEADER
        + "from elsewhere import batcher\n\nloader = DataLoader(images, 64, collate_fn=batcher(), num_workers=4)\n"
    )
    code += f"for batch in loader:\n    graphs, others = batch\n    {line}\n    print(model(graphs).mean())\n"
    assert len(findings(code, "DATA02")) == found
    assert len(findings(code, "XFER02")) == found
