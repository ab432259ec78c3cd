"""`torchlint check --interactive` and `--watch`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest

from tests.cli.test_check import ONES, ZEROS, check, plant
from tests.conftest import PlantedRule, rename_to
from torchlint.finding import Applicability

TWO = ZEROS + "y = torch.zeros(4)\n"


@pytest.mark.usefixtures("project", "planted")
class TestInteractive:
    @pytest.mark.parametrize(
        ("answers", "after", "code"),
        [
            pytest.param("y\ny\n", TWO.replace("zeros", "ones"), 0, id="both"),
            pytest.param("y\nn\n", TWO.replace("zeros(3)", "ones(3)"), 1, id="the first"),
            pytest.param("n\ny\n", TWO.replace("zeros(4)", "ones(4)"), 1, id="the second"),
            pytest.param("a\n", TWO.replace("zeros", "ones"), 0, id="all of the rule"),
            pytest.param("d\n", TWO, 1, id="none of the rule"),
            pytest.param("y\nq\n", TWO.replace("zeros(3)", "ones(3)"), 1, id="quit, and keep what was done"),
            pytest.param("y\n", TWO.replace("zeros(3)", "ones(3)"), 1, id="the answers end"),
            pytest.param("what\ny\ny\n", TWO.replace("zeros", "ones"), 0, id="asked again"),
        ],
    )
    def test_only_what_is_wanted_is_fixed(self, answers: str, after: str, code: int) -> None:
        plant(TWO)
        result = check("--interactive", stdin=answers)
        assert (result.exit_code, Path("a.py").read_text()) == (code, after)

    def test_the_change_is_shown_before_the_question(self) -> None:
        plant(ZEROS)
        shown = check("--interactive", stdin="y\n").stderr
        assert shown.index("+ x = torch.ones(3)") < shown.index("Fix it?")

    def test_unsafe_fixes_are_asked_about_and_what_is_left_counts(self, planted: PlantedRule) -> None:
        planted.fix_with(rename_to("torch.ones", Applicability.UNSAFE, "Ones are not zeros."))
        plant(ZEROS)
        result = check("--interactive", stdin="y\n")
        assert "unsafe fix (Ones are not zeros)" in result.stderr
        assert Path("a.py").read_text() == ONES

    def test_a_fix_that_breaks_the_file_is_not_made(self, planted: PlantedRule) -> None:
        planted.fix_with(rename_to("torch.ones("))
        plant(ZEROS)
        assert check("--interactive", stdin="y\n").exit_code == 1
        assert Path("a.py").read_text() == ZEROS

    def test_a_fix_that_turns_in_a_circle_ends(self, planted: PlantedRule) -> None:
        planted.fix_with(rename_to("torch.zeros"))
        plant(ZEROS)
        assert check("--interactive", stdin="a\n").exit_code == 1

    def test_quitting_holds_for_the_files_that_follow(self) -> None:
        plant(ZEROS, "b.py")
        plant(ZEROS)
        check("--interactive", stdin="q\ny\ny\n")
        assert (Path("a.py").read_text(), Path("b.py").read_text()) == (ZEROS, ZEROS)

    @pytest.mark.parametrize("option", ["--fix", "--diff", "-"])
    def test_what_does_not_go_with_it(self, option: str) -> None:
        assert check("--interactive", option, stdin=ZEROS).exit_code == 2


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_watching_checks_again_after_a_change_and_a_mistake_in_the_settings(project: Path) -> None:
    pytest.importorskip("watchfiles")
    plant("import torch\nx = 1  # torchlint: ignore[NOPE]\n")
    command = [sys.executable, "-m", "torchlint", "check", "--watch", "--output-format", "concise", "--no-cache", "."]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = Timer(120, process.kill)
    deadline.start()
    assert process.stdout is not None

    def until_waiting() -> str:
        lines = []
        while lines[-1:] != ["Waiting for changes; Ctrl-C ends.\n"]:
            lines.append(process.stdout.readline())  # type: ignore[union-attr]
            assert lines[-1], lines
        return "".join(lines)

    try:
        assert "a.py:2:8: LINT03" in until_waiting()
        plant("import torch\n\nx = 1  # torchlint: ignore[NOPE]\n")
        assert "a.py:3:8: LINT03" in until_waiting()
        plant("selct = []\n", "torchlint.toml")
        assert "unknown key `selct`" in until_waiting()
        plant("", "torchlint.toml")
        assert "a.py:3:8: LINT03" in until_waiting()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert "Traceback" not in process.stdout.read()
    finally:
        deadline.cancel()
        process.kill()
        process.stdout.close()


@pytest.mark.usefixtures("project", "planted")
def test_watching_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    result = check("--watch")
    assert result.exit_code == 2
    assert "pip install 'torchlint[watch]'" in result.stderr
