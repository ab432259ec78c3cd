"""Which file of a project an import means, where several have the name."""

from __future__ import annotations

from pathlib import Path

from tests.semantics.projects import model_of, value_of, write
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
