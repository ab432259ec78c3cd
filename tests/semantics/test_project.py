"""What is known of a file through the files around it: imports, their values, and callers."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from textwrap import dedent

import pytest

from tests.semantics.projects import model_of, value_of, write
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.files.discovery import Target
from torchlint.files.project_files import ProjectFiles
from torchlint.running.runner import Options, run
from torchlint.semantics.entities import Role
from torchlint.semantics.model import Model
from torchlint.semantics.project import Project
from torchlint.semantics.values import Grad, Kind, Place
from torchlint.source import Source

NETWORK = """
    import torch.nn as nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x)
    """
TRAINING = "model.eval()\nloss.backward()\n"  # marks a file in which it matters what imports are

IMPORTS = {
    "a module beside the script": ({"net.py": NETWORK}, "main.py", "from net import Net"),
    "an alias": ({"net.py": NETWORK}, "main.py", "from net import Net as Model; Net = Model"),
    "a module under its own name": ({"net.py": NETWORK}, "main.py", "import net; Net = net.Net"),
    "a package": ({"lib/__init__.py": "", "lib/net.py": NETWORK}, "main.py", "from lib.net import Net"),
    "a package without __init__": ({"lib/net.py": NETWORK}, "main.py", "from lib.net import Net"),
    "a re-export": (
        {"lib/__init__.py": "from .net import Net", "lib/net.py": NETWORK},
        "main.py",
        "from lib import Net",
    ),
    "a re-export under the name of its module": (
        {"lib/__init__.py": "from .Net import Net", "lib/Net.py": NETWORK},
        "main.py",
        "from lib import Net",
    ),
    "a star re-export under the name of its module": (
        {"lib/__init__.py": "from .Net import *", "lib/Net.py": NETWORK},
        "main.py",
        "from lib import Net",
    ),
    "a star re-export": (
        {"lib/__init__.py": "from .net import *", "lib/net.py": NETWORK},
        "main.py",
        "import lib; Net = lib.Net",
    ),
    "a star import": ({"net.py": NETWORK}, "main.py", "from net import *"),
    "a relative import": ({"lib/__init__.py": "", "lib/net.py": NETWORK}, "lib/train.py", "from .net import Net"),
    "a relative import from above": (
        {"lib/__init__.py": "", "lib/net.py": NETWORK, "lib/run/__init__.py": ""},
        "lib/run/train.py",
        "from ..net import Net",
    ),
    "the root, from a folder below": ({"lib/net.py": NETWORK}, "scripts/train.py", "from lib.net import Net"),
    "a src layout": (
        {"src/lib/__init__.py": "", "src/lib/net.py": NETWORK},
        "tools/train.py",
        "from lib.net import Net",
    ),
    "a folder put on sys.path": (
        {"common/net.py": NETWORK},
        "tools/train.py",
        "import os, sys\nHERE = os.path.dirname(os.path.abspath(__file__))\n"
        "sys.path.append(os.path.join(HERE, '..', 'common'))\nfrom net import Net",
    ),
    "a folder put on sys.path by pathlib": (
        {"common/net.py": NETWORK},
        "tools/train.py",
        "import sys\nfrom pathlib import Path\n"
        "sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'common'))\nfrom net import Net",
    ),
    "a folder that another file puts on sys.path": (
        {
            "common/net.py": NETWORK,
            "_paths.py": "import os, sys\ndef add(path):\n    sys.path.insert(0, path)\n"
            "add(os.path.join(os.path.dirname(__file__), 'common'))",
        },
        "main.py",
        "import _paths\nfrom net import Net",
    ),
    "an import that is tried": (
        {"net.py": NETWORK},
        "main.py",
        "try:\n    from net import Net\nexcept ImportError:\n    Net = None",
    ),
    "bases in two other files": (
        {"base.py": NETWORK, "middle.py": "from base import Net as Base\nclass Middle(Base): pass"},
        "main.py",
        "from middle import Middle as Net",
    ),
    "an import cycle": (
        {"net.py": "from main import LIMIT\n" + dedent(NETWORK)},
        "main.py",
        "LIMIT = 3\nfrom net import Net",
    ),
}


@pytest.mark.parametrize(("files", "script", "imports"), IMPORTS.values(), ids=IMPORTS.keys())
def test_a_network_of_another_file_is_known_through(
    tmp_path: Path, files: dict[str, str], script: str, imports: str
) -> None:
    write(tmp_path, {**files, script: f"import torch\n{imports}\nmade = Net()\nout = made(torch.ones(2))\n{TRAINING}"})
    model = model_of(tmp_path, script)
    assert value_of(model, "made").kind is Kind.MODULE
    assert value_of(model, "out").carries


NN = """
    class Module:
        def __call__(self, x):
            return self.forward(x)

    class Layer(Module):
        pass
    """
DERIVED = {
    "in other files": ({"tiny/__init__.py": "", "tiny/nn.py": NN}, "import tiny.nn as nn", Kind.INSTANCE),
    "in one more step": ({"nn.py": NN, "base.py": "from nn import Layer"}, "import base as nn", Kind.INSTANCE),
    "from what is out of sight": ({"nn.py": "import far\nclass Layer(far.Base): pass"}, "import nn", Kind.MODULE),
    "from a computed base": ({"nn.py": "class Layer(far.of(1)): pass"}, "import nn", Kind.MODULE),
}


@pytest.mark.parametrize(("files", "imports", "kind"), DERIVED.values(), ids=DERIVED.keys())
def test_a_class_is_no_network_for_its_use_if_all_that_it_derives_from_is_in_sight(
    tmp_path: Path, files: dict[str, str], imports: str, kind: Kind
) -> None:
    script = f"import torch\n{imports}\nclass Net(nn.Layer):\n    pass\nmodel = made = Net()\n{TRAINING}"
    write(tmp_path, {**files, "main.py": script})
    model = model_of(tmp_path, "main.py")
    assert model.value(next(call.receiver for call in model.calls if call.method == "eval")).kind is kind


def test_a_framework_runs_the_steps_of_a_class_whose_base_in_another_file_is_its_own(tmp_path: Path) -> None:
    base = "import lightning as L\n\nclass System(L.LightningModule):\n    pass\n"
    steps = "class Task(System):\n    def validation_step(self, batch, index):\n        self.net(batch)\n"
    write(tmp_path, {"system.py": base, "main.py": f"import torch\nfrom system import System\n\n{steps}"})
    task = model_of(tmp_path, "main.py").classes[0]
    assert task.is_lightning
    assert task.methods["validation_step"].hook is not None


UNKNOWN = {
    "two candidates": (
        {"a.py": NETWORK, "b.py": "class Net: pass"},
        "if flag:\n    from a import Net\nelse:\n    from b import Net",
    ),
    "a name that the module defines twice": (
        {"net.py": dedent(NETWORK) + "if flag:\n    Net = None\n"},
        "from net import Net",
    ),
    "a module outside of the project": ({}, "from somewhere_else import Net"),
    "a module that does not parse": ({"net.py": "class Net(nn.Module:\n"}, "from net import Net"),
    "a cycle of re-exports": ({"a.py": "from b import Net", "b.py": "from a import Net"}, "from a import Net"),
}


@pytest.mark.parametrize(("files", "imports"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_nothing_is_known_through(tmp_path: Path, files: dict[str, str], imports: str) -> None:
    write(tmp_path, {**files, "main.py": f"{imports}\nmade = Net()\n{TRAINING}"})
    assert value_of(model_of(tmp_path, "main.py"), "made").kind in (Kind.UNKNOWN, Kind.INSTANCE)


HELPERS = """
    import torch

    DEVICE = torch.device("cuda")
    LIMIT = 8

    def objective(model, x, y):
        return torch.nn.functional.mse_loss(model(x), y)

    def correct(output, target):
        return (output.argmax(1) == target).sum()

    def loaders(folder):
        dataset = torch.utils.data.TensorDataset(torch.ones(4))
        return torch.utils.data.DataLoader(dataset), torch.utils.data.DataLoader(dataset)

    @torch.no_grad()
    def score(model, x):
        return model(x)

    class Meter:
        def __init__(self):
            self.values = []

        def update(self, value):
            self.values.append(value)

        @property
        def last(self):
            return torch.zeros(1)
    """


@pytest.fixture
def script(tmp_path: Path) -> Model:
    write(
        tmp_path,
        {
            "lib/__init__.py": "",
            "lib/helpers.py": HELPERS,
            "main.py": """
                import torch
                from lib import helpers
                from lib.helpers import *

                net = torch.nn.Linear(2, 2).to(DEVICE)
                train, test = loaders(".")
                for (x,) in train:
                    x = x.to(helpers.DEVICE)
                    loss = helpers.objective(net, x, x)
                    hits = correct(net(x), x)
                    scored = score(net, x)
                    loss.backward()
                meter = Meter()
                last = meter.last
                limit = LIMIT
                """,
        },
    )
    return model_of(tmp_path, "main.py")


def test_a_function_of_another_file_returns_what_it_makes_of_its_arguments(script: Model) -> None:
    loss = value_of(script, "loss")
    assert (loss.kind, loss.grad, loss.place) == (Kind.TENSOR, Grad.CARRIES, Place.ACCELERATOR)
    hits = value_of(script, "hits")
    assert (hits.kind, hits.grad, hits.place) == (Kind.TENSOR, Grad.DETACHED, Place.ACCELERATOR)
    assert value_of(script, "scored").grad is Grad.DETACHED


def test_a_network_that_an_object_of_another_file_holds_can_be_called(tmp_path: Path) -> None:
    write(tmp_path, {"pair.py": NETWORK.replace("class Net", "class Pair").replace("self.layer =", "self.first =")})
    write(tmp_path, {"main.py": "import torch\nfrom pair import Pair\npair = Pair()\ny = pair.first(torch.ones(2))\n"})
    (tmp_path / "main.py").open("a").write(TRAINING)
    model = model_of(tmp_path, "main.py")
    assert value_of(model, "y").grad is Grad.CARRIES
    assert next(call for call in model.calls if model.code(call.node) == "pair.first(torch.ones(2))").is_forward


@pytest.mark.parametrize(
    "imported", ["from .net import Net", "from lib.net import Net", "from . import net\nNet = net.Net"]
)
def test_an_object_that_another_file_makes_is_of_a_class_that_only_that_file_imports(
    tmp_path: Path, imported: str
) -> None:
    network = dedent(NETWORK) + "    @torch.no_grad()\n    def sample(self, n):\n        return self(torch.ones(n))\n"
    maker = f"{imported}\n\ndef make():\n    return Net()\n"
    write(tmp_path, {"lib/__init__.py": "", "lib/net.py": "import torch\n" + network, "lib/make.py": maker})
    write(tmp_path, {"scripts/main.py": f"from lib.make import make\nmade = make()\nout = made.sample(2)\n{TRAINING}"})
    model = model_of(tmp_path, "scripts/main.py")
    assert value_of(model, "made").ref == "lib.net.Net"
    assert value_of(model, "out").grad is Grad.DETACHED


def test_constants_properties_and_tuples_come_across(script: Model) -> None:
    assert value_of(script, "limit").constant == 8
    assert value_of(script, "last").kind is Kind.TENSOR
    assert script.loops[0].iterates.kind is Kind.LOADER


def test_a_function_that_runs_a_network_elsewhere_is_a_forward_pass(script: Model) -> None:
    assert [script.code(call.node.func) for call in script.calls if call.is_forward] == [
        "helpers.objective",
        "net",
        "score",
    ]


ENGINE = """
    import torch

    def train_epoch(model, loader, optimizer):
        for x, y in loader:
            loss = (model(x.cuda()) - y.cuda()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def evaluate(model, loader):
        model.eval()
        total = 0
        for x, y in loader:
            total += (model(x.cuda()).argmax(1) == y.cuda()).sum()
        return total
    """
DRIVER = """
    import torch
    import engine

    net = torch.nn.Linear(2, 2).cuda()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(9):
        engine.train_epoch(net, loader, optimizer)
        {evaluation}
    """


@pytest.mark.parametrize("helpers", ["import torch", "from common import *"], ids=["its own import", "a star import"])
def test_a_star_import_brings_the_imports_of_the_other_file_along(tmp_path: Path, helpers: str) -> None:
    evaluation = """
        from helpers import *

        def evaluate(model, loader):
            with torch.no_grad():
                for x, y in loader:
                    print((model(x).argmax(1) == y).sum().item())
        """
    write(tmp_path, {"helpers.py": f"{helpers}\n", "common.py": "import torch\n", "evaluation.py": evaluation})
    model = model_of(tmp_path, "evaluation.py")
    assert "torch.no_grad" in {call.callee for call in model.calls}
    assert lint(model.source, Settings.selecting("MEM05"), strict=True, project=Project()) == []


def test_a_loop_around_a_pass_in_another_file_is_one_of_epochs(tmp_path: Path) -> None:
    write(tmp_path, {"engine.py": ENGINE, "main.py": DRIVER.format(evaluation="pass")})
    model = model_of(tmp_path, "main.py")
    assert model.loops[0].role is Role.EPOCHS
    assert model.effects(model.loops[0]).elsewhere >= {"backward", "zero_grads", "optimizer_steps", "forwards"}


def test_callers_in_other_files_say_what_parameters_are(tmp_path: Path) -> None:
    write(tmp_path, {"engine.py": ENGINE, "main.py": DRIVER.format(evaluation="engine.evaluate(net, loader)")})
    model = model_of(tmp_path, "engine.py")
    train = next(function for function in model.functions if function.name == "train_epoch")
    assert [train.parameter(name).kind for name in train.params] == [Kind.MODULE, Kind.LOADER, Kind.OPTIMIZER]
    assert [call.in_loop for call in train.foreign_callers] == [True]


@pytest.mark.parametrize(
    ("evaluation", "found"),
    [("with torch.no_grad(): engine.evaluate(net, loader)", []), ("engine.evaluate(net, loader)", ["MEM05"])],
    ids=["a caller that turns gradients off", "a caller that leaves them on"],
)
def test_an_evaluation_is_judged_by_its_caller(tmp_path: Path, evaluation: str, found: list[str]) -> None:
    write(tmp_path, {"engine.py": ENGINE, "main.py": DRIVER.format(evaluation=evaluation)})
    source = Source.read(tmp_path / "engine.py")
    findings = lint(source, Settings.selecting("MEM05"), strict=True, project=Project())
    assert [finding.code for finding in findings] == found


def test_findings_depend_neither_on_the_order_of_files_nor_on_the_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torchlint.running.runner._BYTES_WORTH_A_WORKER", 1)
    evaluation = "engine.evaluate(net, loader)"
    names = ["main.py", "engine.py", "other.py", "third.py"]
    texts = [DRIVER.format(evaluation=evaluation), ENGINE, DRIVER.format(evaluation="pass"), ENGINE]
    write(tmp_path, dict(zip(names, texts)))
    results = []
    for order, jobs in ((names, 1), (names[::-1], 1), (names, 2), (names[2:] + names[:2], 3)):
        targets = [Target(Path(name), Settings()) for name in order]
        found = {result.path: list(map(asdict, result.findings)) for result in run(targets, Options(jobs=jobs))}
        results.append(found)
    assert results[0]
    assert all(result == results[0] for result in results)


def test_a_clean_file_is_looked_at_again_when_a_file_that_it_imports_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"engine.py": ENGINE, "main.py": DRIVER.format(evaluation="engine.evaluate(net, loader)")})
    main, options = tmp_path / "main.py", Options(cache_folder=tmp_path / "cache")
    with_gradients = main.read_text()
    targets = [Target(Path("engine.py"), Settings.selecting("MEM05"))]
    main.write_text(with_gradients.replace("engine.evaluate", "with torch.no_grad(): engine.evaluate"))
    assert [result.findings for result in run(targets, options)] == [()]
    assert run(targets, options) == []
    main.write_text(with_gradients)
    assert [[finding.code for finding in result.findings] for result in run(targets, options)] == [["MEM05"]]


def test_files_outside_of_the_project_are_not_read(tmp_path: Path) -> None:
    write(tmp_path / "project", {"main.py": "import sys\nsys.path.append('..')\nfrom net import Net\nmade = Net()\n"})
    (tmp_path / "net.py").write_text(dedent(NETWORK))
    assert value_of(model_of(tmp_path / "project", "main.py"), "made").kind is Kind.INSTANCE


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("from engine import train", True),
        ("def main():\n    from engine import train", True),
        ("from helpers import train", True),
        ("from engine import *", True),
        ("import engine", True),
        ("import pkg", True),
        ("match engine:\n    case print 'train'", True),
        ("from other import train", False),
        ("import torch", False),
        ("train = 'engine'", False),
    ],
    ids=[
        "a name of it",
        "within a function",
        "a name that another file has of it",
        "all its names",
        "the file itself",
        "a package, which may hand on anything",
        "the interpreter cannot parse it",
        "the same name of another file",
        "nothing of the project",
        "the words alone",
    ],
)
def test_a_file_may_take_something_of_another_where_an_import_leads_there(tmp_path: Path, text: str, may: bool) -> None:
    write(
        tmp_path,
        {
            "engine.py": "def train(): pass",
            "other.py": "def train(): pass",
            "helpers.py": "from engine import train",
            "pkg/__init__.py": "",
            "main.py": text,
        },
    )
    assert Project().may_take(str(tmp_path / "main.py"), str(tmp_path / "engine.py")) is may


@pytest.mark.parametrize(("beside", "found"), [("README.md", []), ("requirements.txt", []), ("notes.md", ["MEM05"])])
def test_a_project_without_its_history_begins_where_it_introduces_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: str, found: list[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    driver = DRIVER.format(evaluation="with torch.no_grad(): engine.evaluate(net, loader)")
    texts = {"tools/engine.py": ENGINE, "main.py": driver.replace("import engine", "from tools import engine")}
    write(tmp_path / "project", {**texts, beside: ""})
    (tmp_path / "project" / "pyproject.toml").unlink()
    source = Source.read(tmp_path / "project" / "tools" / "engine.py")
    findings = lint(source, Settings.selecting("MEM05"), strict=True, project=Project())
    assert [finding.code for finding in findings] == found


@pytest.mark.parametrize(("beside", "root"), [("README.md", "project"), ("notes.md", ".")])
def test_from_a_folder_with_several_such_projects_each_begins_where_it_introduces_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: str, root: str
) -> None:
    for name in (f"project/{beside}", "project/tools/engine.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert ProjectFiles().root(str(tmp_path / "project/tools/engine.py")) == str((tmp_path / root).resolve())
