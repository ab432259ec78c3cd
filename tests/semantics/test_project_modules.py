"""Which file of a project an import means, where several have the name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.semantics.projects import model_of, value_of, write
from torchlint.semantics.outline import Outline
from torchlint.semantics.project import Project
from torchlint.semantics.values import Kind

LAYERS = "import torch\n\nclass Layer(torch.nn.Module):\n    pass\n"
SCRIPT = "from nets.layers import Layer\n\nlayer = Layer()\n"


def test_a_module_that_has_the_name_of_its_package_is_not_taken_for_it(tmp_path: Path) -> None:
    """`nets/nets.py`, beside which `nets.layers` is imported."""
    namesake = "def build():\n    return 'layers'\n"
    files = {"nets/__init__.py": "", "nets/nets.py": namesake, "nets/layers.py": LAYERS, "nets/train.py": SCRIPT}
    write(tmp_path, {f"src/{name}": text for name, text in files.items()})
    assert value_of(model_of(tmp_path, "src/nets/train.py"), "layer").kind is Kind.MODULE


def test_a_module_beside_a_script_comes_first(tmp_path: Path) -> None:
    write(tmp_path, {"run/nets.py": LAYERS, "nets.py": "Layer = dict\n", "run/train.py": SCRIPT.replace(".layers", "")})
    assert value_of(model_of(tmp_path, "run/train.py"), "layer").kind is Kind.MODULE


def test_a_module_keeps_its_name_where_its_package_imports_it_as_such(tmp_path: Path) -> None:
    files = {"lib/__init__.py": "from . import Layer", "lib/Layer.py": LAYERS}
    write(tmp_path, {**files, "train.py": "from lib import Layer\n\nlayer = Layer.Layer()\n"})
    assert value_of(model_of(tmp_path, "train.py"), "layer").kind is Kind.MODULE


def test_files_that_import_everything_of_each_other_are_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"part{number}" for number in range(9)]
    stars = {name: "".join(f"from {other} import *\n" for other in names if other != name) for name in names}
    files = {f"{name}.py": f"{text}\n\ndef use():\n    return torch.ones(2), missing\n" for name, text in stars.items()}
    files["part8.py"] = "import torch\nfrom layers import Layer\n" + files["part8.py"]
    write(tmp_path, {**files, "layers.py": LAYERS, "part0.py": files["part0.py"] + "\nlayer = Layer()\nx = use()[0]\n"})
    asked: list[str] = []

    def outline(project: Project, file: str, ask: Callable[[Project, str], Outline] = Project.outline) -> Outline:
        asked.append(file)
        assert len(asked) < 5000, "it goes round in circles"
        return ask(project, file)

    monkeypatch.setattr(Project, "outline", outline)
    model = model_of(tmp_path, "part0.py")
    assert value_of(model, "layer").kind is Kind.MODULE
    assert value_of(model, "x").kind is Kind.TENSOR
