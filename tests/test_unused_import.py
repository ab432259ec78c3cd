"""Imports of which fixes took the last use go with it, whichever rules took it; all others stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchlint.fixing.unused_import import without_unused
from torchlint.semantics.project import Project
from torchlint.source import Source

BEFORE = "import torch\nfrom torch.autograd import Variable, grad\nx = Variable(torch.zeros(3))\ngrad(x, x)\n"


def cleaned(before: str, after: str) -> str:
    return without_unused(Source.from_text(before), Source.from_text(after), None).text


def test_a_name_that_nothing_reads_any_more_leaves_its_import() -> None:
    after = BEFORE.replace("Variable(torch.zeros(3))", "torch.zeros(3)")
    assert cleaned(BEFORE, after) == after.replace("Variable, ", "")


def test_an_import_of_nothing_else_goes_as_a_whole_with_its_line() -> None:
    before = "import torch\nfrom torch.autograd import Variable\nx = Variable(torch.zeros(3))\n"
    after = before.replace("Variable(torch.zeros(3))", "torch.zeros(3)")
    assert cleaned(before, after) == "import torch\nx = torch.zeros(3)\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_the_blank_lines_behind_the_last_import_stay(newline: str) -> None:
    before = "import torch\nfrom torch.autograd import Variable\n\n\nx = Variable(torch.zeros(3))\n".replace(
        "\n", newline
    )
    after = before.replace("Variable(torch.zeros(3))", "torch.zeros(3)")
    assert cleaned(before, after) == "import torch\n\n\nx = torch.zeros(3)\n".replace("\n", newline)


def test_two_imports_go_at_once() -> None:
    before = "import torch\nfrom torch.cuda import amp\nfrom torch.autograd import Variable\nx = Variable(amp)\n"
    assert cleaned(before, before.replace("Variable(amp)", "torch.ones(2)")) == "import torch\nx = torch.ones(2)\n"


def test_two_names_of_one_import_go_at_once() -> None:
    before = "import torch\nfrom torch.cuda.amp import autocast, GradScaler\nx = autocast(GradScaler())\n"
    assert cleaned(before, before.replace("autocast(Grad", "torch.autocast(torch.Grad")) == (
        "import torch\nx = torch.autocast(torch.GradScaler())\n"
    )
    beside = before.replace("autocast, GradScaler", "autocast, custom_fwd, GradScaler")
    assert "import custom_fwd\n" in cleaned(beside, beside.replace("autocast(GradScaler())", "1"))


def test_a_name_that_is_imported_twice_leaves_both_imports() -> None:
    line = "from torch.autograd import Variable\n"
    before = f"import torch\n{line}import math\n{line}x = Variable(torch.zeros(3))\ny = math.pi\n"
    after = before.replace("Variable(torch.zeros(3))", "torch.zeros(3)")
    assert cleaned(before, after) == after.replace(line, "")


def test_an_import_in_a_branch_of_a_function_goes_too() -> None:
    before = "import torch\n\n\ndef f(x, half):\n    if half:\n        y = x\n    else:\n"
    before += "        from torch.autograd import Variable\n        y = Variable(x)\n    return y\n"
    after = before.replace("Variable(x)", "x")
    assert cleaned(before, after) == after.replace("        from torch.autograd import Variable\n", "")


def test_a_name_that_was_unused_before_stays() -> None:
    before = "import os\nimport torch\nx = torch.zeros(3).data\n"
    assert "import os" in cleaned(before, before.replace(".data", ".detach()"))


@pytest.mark.parametrize(
    "kept",
    [
        "__all__ = ['Variable']\n",
        "try:\n    from torch.autograd import Variable\nexcept ImportError:\n    Variable = None\n",
        "def f():\n    return Variable\n",
    ],
    ids=["exported", "tried", "read elsewhere"],
)
def test_a_name_that_may_still_be_needed_stays(kept: str) -> None:
    before = f"import torch\nfrom torch.autograd import Variable\n{kept}x = Variable(torch.zeros(3))\n"
    after = before.replace("Variable(torch", "(torch")
    assert cleaned(before, after) == after


def test_a_name_that_another_file_takes_from_here_stays(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    before = "import torch\nfrom torch.autograd import Variable\ndef f(x):\n    return Variable(x)\n"
    after = before.replace("Variable(x)", "x")
    file = tmp_path / "helpers.py"
    file.write_text(before)
    source = Source.from_text(after, file)
    gone = after.replace("from torch.autograd import Variable\n", "")
    (tmp_path / "train.py").write_text("from helpers import f\n")
    assert without_unused(Source.from_text(before, file), source, Project()).text == gone
    (tmp_path / "train.py").write_text("from helpers import f, Variable\n")
    assert without_unused(Source.from_text(before, file), source, Project()).text == after


def test_a_name_that_comes_along_with_a_star_import_stays_where_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "nets").mkdir()
    before = "import torch\nfrom torch.autograd import Variable\ndef f(x):\n    return Variable(x)\n"
    after = before.replace("Variable(x)", "x")
    file = tmp_path / "nets" / "small.py"
    file.write_text(before)
    source = Source.from_text(after, file)
    gone = after.replace("from torch.autograd import Variable\n", "")
    (tmp_path / "nets" / "__init__.py").write_text("from .small import *\n")
    (tmp_path / "train.py").write_text("import nets\nfrom torch.autograd import Variable\nVariable(nets.f(1))\n")
    assert without_unused(Source.from_text(before, file), source, Project()).text == gone
    (tmp_path / "train.py").write_text("from nets import *\nVariable(f(1))\n")
    assert without_unused(Source.from_text(before, file), source, Project()).text == after
    (tmp_path / "train.py").write_text("from nets import f, Variable\n")
    assert without_unused(Source.from_text(before, file), source, Project()).text == after
    (tmp_path / "train.py").write_text("import nets\nnets.Variable(nets.f(1))\n")
    assert without_unused(Source.from_text(before, file), source, Project()).text == after


def notebook(folder: Path, *cells: list[str]) -> Source:
    code = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    document = {"cells": [{**code, "source": cell} for cell in cells], "metadata": {}, "nbformat": 4}
    return Source.from_bytes(json.dumps(document).encode(), folder / "study.ipynb")


def cells_of(source: Source) -> list[list[str]]:
    return [cell["source"] for cell in json.loads(source.data)["cells"]]


def test_an_import_that_ends_a_cell_of_a_notebook_goes_without_the_cell(tmp_path: Path) -> None:
    imports = ["import torch\n", "from torch.autograd import Variable"]
    before = notebook(tmp_path, imports, ["x = Variable(torch.zeros(3))"])
    after = without_unused(before, notebook(tmp_path, imports, ["x = torch.zeros(3)"]), None)
    assert cells_of(after) == [["import torch"], ["x = torch.zeros(3)"]]


def test_a_cell_does_not_begin_with_the_blank_line_behind_an_import_that_is_gone(tmp_path: Path) -> None:
    imports = ["from torch.autograd import Variable\n", "\n"]
    before = notebook(tmp_path, ["import torch"], [*imports, "x = Variable(torch.zeros(3))"])
    after = without_unused(before, notebook(tmp_path, ["import torch"], [*imports, "x = torch.zeros(3)"]), None)
    assert cells_of(after) == [["import torch"], ["x = torch.zeros(3)"]]
