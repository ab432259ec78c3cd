"""In a project's own tests nothing is said of time and memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import findings
from torchlint.config import Settings
from torchlint.engine import lint
from torchlint.files.test_code import is_test_code
from torchlint.semantics.project import Project
from torchlint.source import Source

UNITTEST = "import unittest\n\nclass TestNet(unittest.TestCase):\n    def test_shape(self):\n        self.check()\n"
PLAIN = "def test_shape():\n    assert net(3) == 3\n"
MAIN = "\nif __name__ == '__main__':\n    test_epoch(net, loader)\n"
SCRIPT = "def test_epoch(net, loader):\n    assert loader\n    return net(loader)\n" + MAIN


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("tests/test_net.py", UNITTEST, True),
        ("tests/networks/shapes.py", UNITTEST, True),
        ("UnitTests/networks/shapes.py", UNITTEST, True),
        ("net_test.py", UNITTEST, True),
        ("test_net.py", PLAIN, True),
        ("tests/conftest.py", "import pytest\n", True),
        ("net.py", UNITTEST, False),  # a network with tests of its own below it
        ("test_net.py", SCRIPT, False),
        ("test_net.py", "def test_epoch(net, loader):\n    return net(loader)\n", False),
        ("test_video.py", "def test_transform(size):\n    return size\n\ndef run(net):\n    assert net\n", False),
        ("test_video.py", "def test_transform(size):\n    return size\n\ndef test_run():\n\n    assert net\n", True),
        ("tests/video.py", "def test_run():\n    check(net)\n\ndef check(net):\n    assert net\n", True),
        ("tests/engine/net_test.py", "def test_fit():\n    fit(net)\n", True),
        ("tests/test_epoch.py", SCRIPT, True),  # a test that can also be run by itself
        ("test/test_epoch.py", SCRIPT, False),
        ("test/test_epoch.py", "def test_epoch():\n    run(net)\n" + MAIN, True),
        ("test_epoch.py", "def test_epoch():\n    run(net)\n" + MAIN, False),
        ("tests/test_epoch.py", SCRIPT.replace("test_epoch", "run"), False),
        ("tests/nn/crf_test.py", "class CrfTest(ProjectTestCase):\n    def test_loss(self):\n        fit(crf)\n", True),
        ("tests/nn/data_test.py", "class DataTest(Dataset):\n    def __len__(self):\n        return 3\n", False),
        ("tests/fixtures/loop.py", "for x in loader:\n    net(x)\n", False),
    ],
)
def test_a_file_of_tests_is_known_by_its_place_and_its_text(path: str, text: str, expected: bool) -> None:
    assert is_test_code(Path(path), text) is expected


PROGRAM = """
import pytest
import torch

class Noisy(torch.nn.Linear):
    def forward(self, x):
        return super().forward(torch.nn.functional.dropout(x))

def test_noise(device):
    noise, noisy = torch.zeros(3).to(device), Noisy(3, 3)
    assert torch.equal(noisy.forward(noise.cuda()), noise)
"""


@pytest.mark.parametrize(
    ("path", "lines"), [("tests/test_noise.py", {"TRAIN07": [6]}), ("noise.py", {"XFER01": [9], "TRAIN07": [6, 10]})]
)
def test_what_is_wrong_in_a_test_is_still_said(path: str, lines: dict[str, list[int]]) -> None:
    for code in ("XFER01", "TRAIN07"):  # calling `forward` is what a test of it does
        assert [finding.line for finding in findings(PROGRAM, code, path=path)] == lines.get(code, [])


def test_values_are_compared_in_a_test_whatever_they_are_read_with() -> None:
    program = (
        "def test_epoch():\n    net.load_state_dict(torch.load(HERE / 'net.pt'))\n    loss = torch.nn.Linear(4, 1)(x)"
    )
    program = "import pytest\nimport torch\n" + program + ".sum()\n    assert {read} == 3\n"
    for read, lines in (("loss.data.numpy()", []), ("loss.data[0]", [6])):
        text = program.format(read=read)
        assert [finding.line for finding in findings(text, "TRAIN10", path="tests/test_net.py")] == lines
        assert [finding.line for finding in findings(text, "TRAIN10", path="net.py")] == [6]
        assert findings(text, "TRAIN11", path="tests/test_net.py") == []


def test_a_folder_above_the_project_says_nothing(tmp_path: Path) -> None:
    project = tmp_path / "tests" / "project"
    (project / "tests").mkdir(parents=True)
    (project / "pyproject.toml").touch()
    for file, count in ((project / "noise.py", 1), (project / "tests" / "noise.py", 0)):
        file.write_text("import pytest\nimport torch\nnoise = torch.zeros(3).to('cuda')\n")
        assert len(lint(Source.read(file), Settings.selecting("XFER01"), project=Project())) == count
