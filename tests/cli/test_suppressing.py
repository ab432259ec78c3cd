"""Options of `torchlint check` that suppress findings, or say what is suppressed, or what counts."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tests.cli.test_check import ONES, ZEROS, check, plant
from tests.conftest import PlantedRule, rename_to
from tests.test_notebook import notebook
from torchlint.finding import Applicability

pytestmark = pytest.mark.usefixtures("project", "planted")


class TestAddIgnore:
    def test_a_comment_suppresses_each_finding(self) -> None:
        plant(ZEROS + "y = torch.zeros(1), torch.zeros(2)\n")
        result = check("--add-ignore=until the callback clears it")
        assert result.exit_code == 0, result.stdout
        assert result.stderr == "Suppressed 3 findings. Checked 1 file, found nothing more.\n"
        comment = "  # torchlint: ignore[MEM01] until the callback clears it\n"
        assert Path("a.py").read_text() == (
            f"import torch\nx = torch.zeros(3){comment}y = torch.zeros(1), torch.zeros(2){comment}"
        )
        assert check().exit_code == 0

    def test_a_bare_option_does_not_take_a_path_for_the_reason(self) -> None:
        plant(ZEROS, "b.py")
        plant(ZEROS)
        assert check("--add-ignore", "a.py").exit_code == 0
        assert Path("a.py").read_text() == ZEROS.rstrip() + "  # torchlint: ignore[MEM01]\n"
        assert Path("b.py").read_text() == ZEROS

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            pytest.param(
                "x = torch.zeros(  # a\n    1,\n)\n",
                "x = torch.zeros(  # a  # torchlint: ignore[MEM01]\n    1,\n)\n",
                id="behind another comment",
            ),
            pytest.param(
                "x = torch.zeros('''\n# no\n''')\n",
                "x = torch.zeros('''\n# no\n''')  # torchlint: ignore[MEM01]\n",
                id="behind a string of several lines",
            ),
            pytest.param(
                "x = torch.zeros(1) + \\\n    2\n",
                "x = torch.zeros(1) + \\\n    2  # torchlint: ignore[MEM01]\n",
                id="behind a continued line",
            ),
            pytest.param(
                "x = torch.zeros(1)  # torchlint: ignore[SYNC01] why\n",
                "x = torch.zeros(1)  # torchlint: ignore[SYNC01, MEM01] why\n",
                id="into the list that is there",
            ),
            pytest.param(
                "x = '# torchlint: ignore[A]', torch.zeros(1)\n",
                "x = '# torchlint: ignore[A]', torch.zeros(1)  # torchlint: ignore[MEM01]\n",
                id="a string that looks like a list",
            ),
            pytest.param(
                "x = torch.zeros(1)", "x = torch.zeros(1)  # torchlint: ignore[MEM01]", id="without a last newline"
            ),
            pytest.param(
                "x = torch.zeros(1) \r\n",
                "x = torch.zeros(1)  # torchlint: ignore[MEM01]\r\n",
                id="with other newlines",
            ),
        ],
    )
    def test_where_the_comment_goes(self, before: str, after: str) -> None:
        plant("import torch\n" + before)
        assert check("--add-ignore", "--select", "MEM01").exit_code == 0
        assert Path("a.py").read_bytes().decode() == "import torch\n" + after
        assert check("--select", "MEM01").exit_code == 0

    def test_cells_of_notebooks(self) -> None:
        plant(notebook("import torch", ["x = torch.zeros(3)\n", "%time y = 1"]), "a.ipynb")
        assert check("--add-ignore").exit_code == 0
        assert b"torch.zeros(3)  # torchlint: ignore[MEM01]\\n" in Path("a.ipynb").read_bytes()

    def test_what_no_comment_can_suppress_is_left(self) -> None:
        text = "import torch\ntorch.zeros(\n"
        plant(text)
        result = check("--add-ignore", "--output-format", "concise")
        assert (result.exit_code, Path("a.py").read_text()) == (1, text)
        assert "LINT01" in result.stdout

    def test_a_reason_that_the_file_cannot_hold(self) -> None:
        data = b"# coding: ascii\nimport torch\ntorch.zeros(3)\n"
        plant(data)
        result = check("--add-ignore=f\u00fcr sp\u00e4ter")
        assert (result.exit_code, Path("a.py").read_bytes()) == (2, data)
        assert "the comments cannot be written" in result.stdout

    @pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
    def test_a_read_only_file_is_named_and_left(self) -> None:
        plant(ZEROS).chmod(stat.S_IRUSR)
        assert check("--add-ignore").exit_code == 2
        assert Path("a.py").read_text() == ZEROS

    @pytest.mark.parametrize("arguments", [["--add-ignore", "--fix"], ["--add-ignore=a\nb"], ["-", "--add-ignore"]])
    def test_what_does_not_go_together(self, arguments: list[str]) -> None:
        plant(ZEROS)
        assert check(*arguments, stdin=ZEROS).exit_code == 2
        assert Path("a.py").read_text() == ZEROS


class TestShowSuppressed:
    TEXT = ZEROS + "y = torch.zeros(4)  # torchlint: ignore[MEM01] it is small\n"

    def test_what_is_suppressed_is_printed_and_does_not_count(self) -> None:
        plant(self.TEXT.replace("x = torch.zeros", "x = torch.ones"))
        result = check("--show-suppressed", "--output-format", "concise")
        expected = "a.py:3:5: MEM01 There is `torch.zeros`. (suppressed by a comment: it is small)\n"
        assert (result.exit_code, result.stdout) == (0, expected)
        assert check("--output-format", "concise").stdout == ""
        assert "(suppressed by a comment: it is small)" in check("--show-suppressed").stdout

    def test_a_file_in_the_cache_shows_it_again(self) -> None:
        plant(self.TEXT.replace("x = torch.zeros", "x = torch.ones"))
        assert check().exit_code == 0
        assert "suppressed by" in check("--show-suppressed").stdout

    def test_json_says_by_what(self) -> None:
        plant(self.TEXT)
        entries = json.loads(check("--show-suppressed", "--output-format", "json").stdout)
        assert [entry["suppressed"] for entry in entries] == [None, {"by": "comment", "reason": "it is small"}]
        assert len(json.loads(check("--output-format", "json").stdout)) == 1


class TestFixOnly:
    def test_what_is_left_is_no_matter(self, planted: PlantedRule) -> None:
        plant(ZEROS + "torch.zeros(\n", "b.py")
        plant(ZEROS)
        result = check("--fix-only")
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr == "Fixed 1 finding.\n"
        assert Path("a.py").read_text() == ONES
        planted.fix_with(rename_to("torch.ones", Applicability.UNSAFE, "Ones are not zeros."))
        plant(ZEROS)
        assert check("--fix-only", "a.py").exit_code == 0

    def test_failures_are_said(self) -> None:
        plant(ZEROS).chmod(stat.S_IRUSR)
        result = check("--fix-only", "--output-format", "concise")
        assert result.exit_code == 2
        assert [line.split()[1] for line in result.stdout.splitlines()] == ["LINT02"]

    def test_what_was_fixed_may_count(self) -> None:
        plant(ZEROS)
        assert check("--fix-only", "--exit-non-zero-on-fix").exit_code == 1

    def test_stdin(self) -> None:
        result = check("-", "--fix-only", stdin=ZEROS)
        assert (result.exit_code, result.stdout) == (0, ONES)


class TestErrorOn:
    @pytest.mark.parametrize(("least", "code"), [("info", 1), ("warning", 1), ("error", 0)])
    def test_only_findings_that_are_bad_enough_fail(self, least: str, code: int) -> None:
        plant(ZEROS)
        result = check("--error-on", least)
        assert result.exit_code == code
        assert "MEM01" in result.stdout

    def test_settings_say_so_too_and_the_command_line_beats_them(self) -> None:
        plant(ZEROS)
        plant('error-on = "error"\n', "torchlint.toml")
        assert check().exit_code == 0
        assert check("--error-on", "warning").exit_code == 1
        plant('error-on = "error"\n[severity]\nMEM01 = "error"\n', "torchlint.toml")
        assert check().exit_code == 1
        plant('error-on = "fatal"\n', "torchlint.toml")
        assert "no severity `fatal`" in check().stderr

    def test_failures_fail_all_the_same(self, planted: PlantedRule) -> None:
        planted.fix_with(rename_to("torch.ones("))
        plant(ZEROS)
        assert check("--fix", "--error-on", "error").exit_code == 2
