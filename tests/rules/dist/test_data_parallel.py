"""DIST01: a model replicated over GPUs from one process."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.support import findings, marked
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.semantics.project import Project
from torchlint.source import Source

HEADER = """\
import functools
import logging

import torch
import torch.nn as nn
from torch.nn import DataParallel as DP
from torch.nn.parallel import DataParallel, DistributedDataParallel, data_parallel

model = nn.Linear(2, 2)
"""

FOUND = [
    pytest.param("model = nn.DataParallel(model).cuda()  # found", id="V1 wrapped and moved"),
    pytest.param(
        """
        if torch.cuda.device_count() > 1:
            model = nn.DataParallel(model, device_ids=[0, 1], output_device=0)  # found
        """,
        id="V2 only with several GPUs",
    ),
    pytest.param("model.encoder = torch.nn.DataParallel(model.encoder)  # found", id="V3 part of a model"),
    pytest.param(
        """
        class Trainer:
            def __init__(self, model):
                self.model = DP(model)  # found
        """,
        id="V4 alias and attribute",
    ),
    pytest.param(
        """
        class Net(nn.Module):
            def forward(self, x):
                return nn.parallel.data_parallel(self.main, x, range(2))  # found
        """,
        id="V5 functional, in forward",
    ),
    pytest.param("y = data_parallel(model, torch.ones(2), [0, 1])  # found", id="V5 functional, imported"),
    pytest.param(
        "y = data_parallel(model, torch.ones(2), [0, 1])  # found\nprint(y.view(-1))",
        id="V5 functional, its result viewed",
    ),
    pytest.param(
        """
        class Replicated(nn.DataParallel):  # found
            def __getattr__(self, name):
                return getattr(self.module, name)

        model = Replicated(model)
        """,
        id="V6 subclass in use",
    ),
    pytest.param(
        "model = torch.nn.DataParallel(model, device_ids=range(4)) if several else model  # found",
        id="V7 conditional expression",
    ),
    pytest.param(
        """
        if args.gpu is not None:
            model = model.cuda(args.gpu)
        else:
            model = DataParallel(model).cuda()  # found
        """,
        id="V8 all GPUs, as none is named",
    ),
    pytest.param(
        """
        model = DataParallel(model)  # found
        print(model(torch.ones(2)))
        torch.save(model.module.state_dict(), "model.pt")
        """,
        id="V8 checkpoint without the prefix",
    ),
    pytest.param("wrap = functools.partial(nn.DataParallel, dim=1)  # found", id="partial"),
    pytest.param("Wrapper = nn.DataParallel\nmodel = Wrapper(model)  # found", id="alias in the file"),
    pytest.param("model = nn.DataParallel(model, device_ids=[0])  # found", id="N7 single device"),
    pytest.param(
        """
        if distributed:
            model = DistributedDataParallel(model)
        else:
            model = nn.DataParallel(model)  # found
        """,
        id="beside the distributed one",
    ),
]


@pytest.mark.parametrize("code", FOUND)
def test_found(code: str) -> None:
    text = HEADER + dedent(code)
    expected = marked(text, "# found")
    assert [finding.line for finding in findings(text, "DIST01")] == expected


SILENT = [
    pytest.param("model = DistributedDataParallel(model)", id="N1 one process per GPU"),
    pytest.param('state = {k.removeprefix("module."): v for k, v in torch.load("x").items()}', id="N2 prefix stripped"),
    pytest.param("bare = model.module if isinstance(model, nn.DataParallel) else model", id="N4 isinstance"),
    pytest.param("parallel = type(model) in (DataParallel, DistributedDataParallel)", id="N4 type"),
    pytest.param(
        """
        if torch.cuda.device_count() > 1:
            logging.warning("DP is not recommended, use torchrun for best DDP Multi-GPU results.")
            model = torch.nn.DataParallel(model)
        """,
        id="N5 fallback with a warning",
    ),
    pytest.param(
        "from torch_geometric.nn import DataParallel as Graphs\nmodel = Graphs(model)", id="N6 lists of graphs"
    ),
    pytest.param("def test_replicas():\n    model = nn.DataParallel(nn.Linear(1, 1))\n    assert model", id="N8 test"),
    pytest.param("class Mine:\n    pass\n\n\nDataParallel = Mine\nDataParallel()", id="another class of that name"),
    pytest.param(
        """
        if not torch.cuda.is_available() and "module.fc.weight" in state:
            model = nn.DataParallel(model)
        """,
        id="where no GPU is",
    ),
    pytest.param("class Kernel(nn.DataParallel):\n    pass", id="class for others to use"),
]


@pytest.mark.parametrize("code", SILENT)
def test_silent(code: str) -> None:
    assert not findings(HEADER + dedent(code), "DIST01", path="test_parallel.py")


@pytest.mark.parametrize(("path", "count"), [("tests/test_parallel.py", 0), ("train_parallel.py", 1)])
def test_a_helper_of_tests_replicates_to_test_that(path: str, count: int) -> None:
    code = "import unittest\n\ndef replicas(model: nn.Module):\n    return model, nn.DataParallel(model)\n"
    assert len(findings(HEADER + code, "DIST01", path=path)) == count


def test_the_message_names_the_model() -> None:
    (finding,) = findings(HEADER + "net = nn.DataParallel(model)\n", "DIST01")
    assert "`model`" in finding.message
    assert "DistributedDataParallel" in finding.message
    assert finding.fix is None


def test_a_single_device_gets_its_own_message() -> None:
    (finding,) = findings(HEADER + "net = nn.DataParallel(model, [0])\n", "DIST01")
    assert "single device" in finding.message


def test_what_reaches_through_the_wrapper_saves_no_names_of_it() -> None:
    code = "net = nn.DataParallel(model, [0])\nnet(x)\ntorch.save(net.module.state_dict(), 'net.pt')\n"
    (finding,) = findings(HEADER + code, "DIST01")
    assert "single device" in finding.message
    assert "checkpoints" not in finding.message


LOADED = """
class Encoder(nn.Module):
    def __init__(self, path, net):
        super().__init__()
        net = nn.DataParallel(net, device_ids=None)
        net.load_state_dict(torch.load(path)["state_dict"])
        net.eval()
        {use}
"""


@pytest.mark.parametrize(
    ("use", "is_run"),
    [
        ("self.base = nn.Sequential(net.module.conv, net.module.norm)", False),
        ("self.base = net", True),
        ("self.base = net.cuda()", True),
        ("self.base = nn.Sequential(net)", True),
        ("self.first = net(torch.zeros(1, 3, 8, 8))", True),
        ("self.first = net.forward(torch.zeros(1, 3, 8, 8))", True),
    ],
)
def test_a_wrapper_that_only_takes_the_names_of_a_checkpoint_runs_no_step(use: str, is_run: bool) -> None:
    (finding,) = findings(HEADER + LOADED.format(use=use), "DIST01")
    assert ("Every step copies" in finding.message) is is_run
    assert ("consume_prefix" in finding.message) is not is_run


@pytest.mark.parametrize("key", ["'module.' + key", 'f"module.{key}"'])
def test_names_that_are_made_to_fit_the_wrapper_have_no_prefix_to_take_off(key: str) -> None:
    renamed = f"{{{key}: value for key, value in torch.load(path).items()}}"
    code = LOADED.format(use="self.base = net.module.conv").replace('torch.load(path)["state_dict"]', renamed)
    assert findings(HEADER + code, "DIST01") == []


WRAPPERS = """\
from torch import nn

class ParallelModel(nn.DataParallel):
    def __getattr__(self, name):
        return getattr(super().__getattr__("module"), name)

class ParallelQueue:
    pass
"""


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        pytest.param("from wrappers import ParallelModel\nnet = ParallelModel(net)\n", [2], id="imported"),
        pytest.param("import wrappers as w\nnet = w.ParallelModel(net)\n", [2], id="by the name of the file"),
        pytest.param("from wrappers import ParallelModel\nnet = ParallelModel(net)\nnet(x)\n", [2], id="made and run"),
        pytest.param("from wrappers import ParallelQueue\nnet = ParallelQueue(net)\n", [], id="another class"),
        pytest.param("from wrappers import ParallelModel\nisinstance(net, ParallelModel)\n", [], id="only asked for"),
        pytest.param("from elsewhere import ParallelModel\nnet = ParallelModel(net)\n", [], id="out of sight"),
    ],
)
def test_a_class_of_another_file_that_derives_from_it(tmp_path: Path, line: str, lines: list[int]) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "wrappers.py").write_text(WRAPPERS)
    script = tmp_path / "train.py"
    script.write_text(line + "import torch  # DataParallel\n")
    found = lint(Source.read(script), Settings.selecting("DIST01"), strict=True, project=Project())
    assert [finding.line for finding in found] == lines


@pytest.mark.parametrize(
    ("guard", "count"),
    [
        ("if len(devices) > 1:", 0),
        ("if len(devices) >= 2 and x is not None:", 0),
        ("if len(devices) > 0:", 1),
        ("if len(x) > 1:", 1),
        ("if not len(devices) > 1:", 1),
    ],
)
def test_one_device_where_several_are_asked_for(guard: str, count: int) -> None:
    code = (
        f"devices = [torch.device('cuda')]\n{guard}\n    model = nn.DataParallel(model, device_ids=devices)\nmodel(x)\n"
    )
    assert len(findings(HEADER + code, "DIST01")) == count
    several = code.replace("[torch.device('cuda')]", "[0, 1]")
    assert len(findings(HEADER + several, "DIST01")) == 1


@pytest.mark.parametrize(
    ("made", "is_single"),
    [
        ("GPUS = [0]", True),
        ("GPUS = (1,)", True),
        ("GPUS = [0, 1]", False),
        ("GPUS = [*range(2)]", False),
        ("GPUS = [0]\nfor gpu in range(1, torch.cuda.device_count()):\n    GPUS.append(gpu)", False),
        ("GPUS = [int(gpu) for gpu in '0,1'.split(',')]", False),
    ],
)
def test_the_list_of_devices_may_have_a_name(made: str, is_single: bool) -> None:
    code = f"{made}\nmodel = nn.DataParallel(model, device_ids=GPUS)\nmodel(x)\n"
    (finding,) = findings(HEADER + code, "DIST01")
    assert ("single device" in finding.message) is is_single
