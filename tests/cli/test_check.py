"""`torchlint check`: options, exit codes and streams."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.conftest import PlantedRule, rename_to
from tests.test_notebook import notebook
from torchlint.cli import cli
from torchlint.finding import Applicability
from torchlint.output import FORMATS
from torchlint.rule import all_rules

ZEROS = "import torch\nx = torch.zeros(3)\n"
ONES = ZEROS.replace("zeros", "ones")


def call(*arguments: str, stdin: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(cli, [*arguments], input=stdin, standalone_mode=False)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        assert hasattr(result.exception, "exit_code"), result.exception
        result.exit_code = result.exception.exit_code
        result.stderr_bytes += str(result.exception.format_message()).encode()  # type: ignore[operator, attr-defined]
    elif isinstance(result.return_value, int):
        result.exit_code = result.return_value
    return result


def check(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return call("check", "--select", "MEM01,LINT", *arguments, stdin=stdin)


def plant(text: str | bytes, name: str = "a.py") -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


pytestmark = pytest.mark.usefixtures("project", "planted")

CODES = [
    pytest.param({"a.py": "import torch\n"}, [], 0, id="clean"),
    pytest.param({"a.py": ZEROS}, [], 1, id="found"),
    pytest.param({"a.py": ZEROS}, ["--fix"], 0, id="all fixed"),
    pytest.param({"a.py": ZEROS}, ["--fix", "--exit-non-zero-on-fix"], 1, id="all fixed, and that counts"),
    pytest.param({"a.py": ONES}, ["--fix", "--exit-non-zero-on-fix"], 0, id="nothing to fix"),
    pytest.param({"a.py": ZEROS}, ["--diff"], 1, id="something to change"),
    pytest.param({"a.py": ONES}, ["--diff"], 0, id="nothing to change"),
    pytest.param({"a.py": "import torch\ntorch.zeros(\n"}, [], 1, id="syntax error"),
    pytest.param({"a.py": ZEROS}, ["gone.py"], 2, id="a path that does not exist"),
    pytest.param({"a.py": ZEROS}, ["--select", "NOPE99"], 2, id="unknown rule"),
    pytest.param({"a.py": ZEROS}, ["--no-such-option"], 2, id="unknown option"),
    pytest.param({"a.py": ZEROS}, ["--per-file-ignores", "MEM01"], 2, id="malformed option"),
    pytest.param({"a.py": ZEROS, "torchlint.toml": "selct = []"}, [], 2, id="bad settings"),
    pytest.param({"a.py": ZEROS}, ["--config", "gone.toml"], 2, id="settings that do not exist"),
    pytest.param({"a.py": ZEROS}, ["--output-file", "gone/out.txt"], 2, id="output that cannot be written"),
    pytest.param({}, [], 0, id="empty folder"),
]


@pytest.mark.parametrize(("files", "arguments", "code"), CODES)
def test_exit_codes(files: dict[str, str], arguments: list[str], code: int) -> None:
    for name, text in files.items():
        plant(text, name)
    result = check(".", *arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output


def test_findings_go_to_stdout_and_the_summary_to_stderr() -> None:
    plant(ZEROS)
    result = check("--output-format", "concise")
    assert result.stdout == "a.py:2:5: MEM01 [*] There is `torch.zeros`.\n"
    assert result.stderr == "Found 1 finding in 1 of 1 file (1 fixable with --fix).\n"
    assert check("--output-format", "concise", "--quiet").stderr == ""


def test_the_summary_counts_files_without_torch_and_those_that_the_cache_knows_to_be_clean() -> None:
    plant(ONES)
    plant("x = 1\n", "b.py")
    for _ in range(2):
        assert check(".").stderr == "Checked 2 files, found nothing.\n"
    plant(ZEROS, "c.py")
    assert "Found 1 finding in 1 of 3 files" in check(".").stderr


def test_an_empty_folder_says_so_on_stderr() -> None:
    Path("empty").mkdir()
    result = check("empty")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No Python file" in result.stderr


def test_a_path_that_does_not_exist_does_not_stop_the_others() -> None:
    plant(ZEROS)
    result = check("gone.py", "a.py", "--output-format", "concise")
    assert result.exit_code == 2
    assert "gone.py: no such file or folder" in result.stderr
    assert "a.py:2:5" in result.stdout


def test_a_syntax_error_does_not_stop_the_others() -> None:
    plant("import torch\ntorch.zeros(\n", "a.py")
    plant(ZEROS, "b.py")
    result = check("--output-format", "concise")
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["LINT01", "MEM01"]


def test_a_rule_that_crashes_is_named_with_the_file_and_the_rest_goes_on(planted: PlantedRule) -> None:
    def crash(rule: object, model: Any) -> Any:
        if "b.py" in str(model.source.path):
            raise ValueError("boom")
        return iter(())

    planted.check_with(crash)
    for name in ("a.py", "b.py", "c.py"):
        plant(ZEROS + "y = 1  # torchlint: ignore[NOPE]\n", name)
    result = check("--output-format", "concise")
    assert result.exit_code == 2
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [
        ["a.py:3:8:", "LINT03"],
        ["b.py:1:1:", "LINT04"],
        ["b.py:3:8:", "LINT03"],
        ["c.py:3:8:", "LINT03"],
    ]
    assert "rule MEM01 (append-graph-tensor) crashed: ValueError: boom" in result.stdout


def test_paths_without_a_command_are_checked() -> None:
    plant(ZEROS)
    assert call("a.py", "--select", "MEM01").exit_code == 1
    assert call("--select", "MEM01", "--fix", "a.py").exit_code == 0
    assert Path("a.py").read_text() == ONES


def test_a_mistyped_command_is_recognised() -> None:
    assert "did you mean the command `check`" in call("chekc").stderr
    assert "did you mean the command `rule`" in call("explain", "MEM01").stderr
    assert "did you mean the command `check --fix`" in call("fix", ".").stderr


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [(["--fixx"], "--fix"), (["--unsafe-fix"], "--unsafe-fixes"), (["--select", "MEN01"], "MEM01")],
)
def test_mistakes_name_the_nearest(arguments: list[str], nearest: str) -> None:
    assert nearest in call("check", *arguments).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--versoin"], "Did you mean '--version'?"),
        (["--select", "", "a.py"], "--select: no rule is named"),
        (["--select", "MEM SYNC", "a.py"], "no rule `MEM SYNC`; put commas between several"),
        (["--diff", "--output-format", "json"], "--diff writes a diff"),
        (["--diff", "--output-file", "found.json"], "--diff writes a diff"),
        (["--diff", "--statistics"], "--diff writes a diff"),
        (["--stdin-filename", "train.py", "a.py"], "--stdin-filename is for what comes from stdin"),
        (["--watch", "nowhere"], "--watch: nowhere: no such file or folder"),
        (["-", "a.py"], "- is stdin, which goes with no other path"),
    ],
)
def test_what_is_wrong_with_a_command(arguments: list[str], message: str) -> None:
    plant(ZEROS)
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_path_that_cannot_be_read_is_counted() -> None:
    Path("loop").symlink_to("loop")
    assert "Found 1 finding in 1 of 1 file." in call("loop").stderr


def test_selection_on_the_command_line() -> None:
    plant(ZEROS + "y = 1  # torchlint: ignore[NOPE]\n")

    def found(*arguments: str) -> list[str]:
        result = call("check", "--output-format", "json", *arguments)
        return [entry["code"] for entry in json.loads(result.stdout)]

    assert found("--select", "MEM01") == ["MEM01"]
    assert found("--select", "append-graph-tensor", "--extend-select", "LINT03") == ["MEM01", "LINT03"]
    assert found("--ignore", "MEM") == ["LINT03"]
    assert found("--per-file-ignores", "a.py:MEM01", "--per-file-ignores", "b.py:LINT03") == ["LINT03"]
    Path("torchlint.toml").write_text('ignore = ["MEM01"]\n')
    assert found() == ["LINT03"]
    assert found("--isolated") == ["MEM01", "LINT03"]
    assert found("--select", "MEM01") == ["MEM01"]


def test_unsafe_fixes_are_offered_and_applied_when_asked_for(planted: PlantedRule) -> None:
    planted.fix_with(rename_to("torch.ones", Applicability.UNSAFE, "Ones are not zeros."))
    plant(ZEROS)
    result = check("--fix")
    assert result.exit_code == 1
    assert "unsafe fix (Ones are not zeros):" in result.stdout
    assert "1 with --unsafe-fixes" in result.stderr
    assert Path("a.py").read_text() == ZEROS
    assert check("--fix", "--unsafe-fixes").exit_code == 0
    assert Path("a.py").read_text() == ONES


def test_unsafe_fixes_can_be_allowed_in_the_settings_and_not_on_the_command_line(planted: PlantedRule) -> None:
    planted.fix_with(rename_to("torch.ones", Applicability.UNSAFE, "Ones are not zeros."))
    plant("unsafe-fixes = true\n", "torchlint.toml")
    plant(ZEROS)
    assert check("--fix", "--no-unsafe-fixes").exit_code == 1
    assert check("--fix").exit_code == 0


def test_fixing_says_what_it_did() -> None:
    plant(ZEROS + "torch.zeros(1)  # torchlint: ignore[MEM01]\n")
    result = check("--fix")
    assert result.stderr == "Fixed 1 finding. Checked 1 file, found nothing more.\n"


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
def test_a_diff_changes_nothing_and_can_be_applied() -> None:
    plant(ZEROS.replace("\n", "\r\n") + "y = 1", "crlf.py")
    before = plant(ZEROS, "a.py").read_bytes()
    result = check("--diff")
    assert Path("a.py").read_bytes() == before
    assert "-x = torch.zeros(3)\n+x = torch.ones(3)\n" in result.stdout
    assert result.stderr == "Would fix 2 findings in 2 files.\n"
    patched = subprocess.run(["patch", "-p0"], input=result.stdout_bytes, capture_output=True, check=False)
    assert patched.returncode == 0, patched.stdout
    assert Path("crlf.py").read_bytes() == ONES.replace("\n", "\r\n").encode() + b"y = 1"
    assert check("--diff").exit_code == 0


def test_a_read_only_file_is_named_and_left() -> None:
    plant(ZEROS).chmod(stat.S_IRUSR)
    plant(ZEROS, "b.py")
    result = check("--fix", "--output-format", "concise")
    assert result.exit_code == 2
    assert "a.py:1:1: LINT02 the fixes cannot be written: the file is read-only; the file is as it was" in result.stdout
    assert (Path("a.py").read_text(), Path("b.py").read_text()) == (ZEROS, ONES)


def test_a_fix_that_is_rolled_back_is_a_failure(planted: PlantedRule) -> None:
    planted.fix_with(rename_to("torch.ones("))
    plant(ZEROS)
    result = check("--fix", "--output-format", "concise")
    assert result.exit_code == 2
    assert (
        "a.py:1:1: LINT06 the fix of MEM01 (append-graph-tensor) leaves text that is not valid Python" in result.stdout
    )
    assert Path("a.py").read_text() == ZEROS
    result = check("--diff")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "LINT06" in result.stderr


def test_statistics_take_the_place_of_findings() -> None:
    plant(ZEROS + "torch.zeros(1)\ny = 1  # torchlint: ignore[NOPE]\n")
    assert check("--statistics").stdout == ("2  MEM01   [*] append-graph-tensor\n1  LINT03  [*] unused-suppression\n")
    rows = json.loads(check("--statistics", "--output-format", "json").stdout)
    assert rows[0] == {"code": "MEM01", "name": "append-graph-tensor", "count": 2, "fixable": 2}


def test_output_goes_to_a_file() -> None:
    plant(ZEROS)
    result = check("--output-format", "json", "--output-file", "out.json")
    assert result.stdout == ""
    assert json.loads(Path("out.json").read_text())[0]["code"] == "MEM01"


def test_several_formats_at_once_each_have_a_file() -> None:
    plant(ZEROS)
    result = check("--output-format", "concise", "--output-format", "sarif=a=b.sarif", "--output-format", "junit=j.xml")
    assert (result.exit_code, result.stdout) == (1, "a.py:2:5: MEM01 [*] There is `torch.zeros`.\n")
    assert json.loads(Path("a=b.sarif").read_text())["version"] == "2.1.0"
    assert "<testsuites" in Path("j.xml").read_text()
    result = check("--output-format", "json=out.json", "-", stdin=ZEROS)
    assert result.stdout == ""
    assert len(json.loads(Path("out.json").read_text())) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output-format", "jsno"], "no format `jsno`; did you mean `json`?"),
        (["--output-format", "xml"], "no format `xml`; there are full, concise, "),
        (["--output-format", "json="], "names no file"),
        (["--output-format", "json", "--output-format", "full"], "only one format can go to stdout"),
        (["--output-format", "json=a", "--output-format", "full=a"], "only one format can go to stdout"),
        (["--output-format", "json=a", "--output-file", "b"], "has a file of its own"),
        (["--output-format", "json=gone/a"], "gone/a: the output cannot be written: No such file"),
    ],
)
def test_outputs_that_cannot_be(arguments: list[str], message: str) -> None:
    plant(ZEROS)
    result = check(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_timing_says_what_each_rule_took(planted: PlantedRule) -> None:
    def slow(rule: object, model: Any) -> Any:
        time.sleep(0.2)
        return iter(())

    planted.check_with(slow)
    plant(ZEROS)
    assert check().exit_code == 0
    rows = [line.split() for line in check("--timing", "--quiet").stderr.splitlines()]
    assert {row[-1] for row in rows} == {"append-graph-tensor", "parsing", "model"}
    assert float(next(row[0] for row in rows if row[-1] == "append-graph-tensor")) >= 0.2
    assert check("--timing", "--fix").exit_code == 2


@pytest.mark.parametrize("output_format", FORMATS)
def test_names_that_are_no_text_are_printed_all_the_same(output_format: str) -> None:
    plant(ZEROS, os.fsdecode(b"\xff.py"))
    result = check("--output-format", output_format, "--output-file", "out")
    assert (result.exit_code, result.exception) == (1, None)
    assert "MEM01" in Path("out").read_text()
    assert run(".", "--isolated", "--output-format", output_format).stderr.count("Traceback") == 0


class TestStdin:
    def test_findings_carry_the_name(self) -> None:
        result = check("--stdin-filename", "src/model.py", "--output-format", "concise", stdin=ZEROS)
        assert (result.exit_code, result.stdout) == (1, "src/model.py:2:5: MEM01 [*] There is `torch.zeros`.\n")

    def test_a_dash_will_do(self) -> None:
        assert check("-", "--output-format", "concise", stdin=ZEROS).stdout.startswith("-:2:5: MEM01")

    def test_fixed_text_goes_to_stdout_and_findings_to_stderr(self) -> None:
        result = check("-", "--fix", "--output-format", "concise", stdin=ZEROS + "torch.zeros(\n")
        assert (result.exit_code, result.stdout) == (1, ZEROS + "torch.zeros(\n")
        assert "LINT01" in result.stderr
        result = check("-", "--fix", stdin=ZEROS)
        assert (result.exit_code, result.stdout) == (0, ONES)

    def test_bytes_come_back_as_they_were(self) -> None:
        data = b"# coding: latin-1\r\nimport torch\r\nx = '\xe4'"
        assert check("-", "--fix", stdin=data).stdout_bytes == data

    def test_settings_count_for_the_name(self) -> None:
        plant('[per-file-ignores]\n"legacy/**" = ["MEM01"]\n', "torchlint.toml")
        assert check("--stdin-filename", "legacy/a.py", stdin=ZEROS).exit_code == 0
        assert check("--stdin-filename", "build/a.py", "--force-exclude", stdin=ZEROS).exit_code == 0

    def test_a_diff_of_stdin(self) -> None:
        result = check("--stdin-filename", "a.py", "--diff", stdin=ZEROS)
        assert (result.exit_code, result.stdout.splitlines()[:2]) == (1, ["--- a.py", "+++ a.py"])

    def test_a_notebook(self) -> None:
        data = notebook("import torch", "torch.zeros(3)")
        result = check("--stdin-filename", "a.ipynb", "--fix", stdin=data)
        assert result.stdout_bytes == data.replace(b"zeros", b"ones")


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchlint", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)


class TestProcess:
    """What only a process of its own shows."""

    def test_exit_codes_reach_the_shell(self) -> None:
        plant("import torch\nx = 1  # torchlint: ignore[NOPE]\n")
        assert run(".").returncode == 1
        assert run("gone").returncode == 2
        assert run("--no-such-option").returncode == 2
        assert run("--version").returncode == 0

    def test_a_closed_pipe_ends_quietly(self) -> None:
        plant("import torch\n" + "x = 1  # torchlint: ignore[NOPE]\n" * 5_000)
        process = subprocess.Popen(
            [sys.executable, "-m", "torchlint", "."], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        error = process.stderr.read().decode()
        assert process.wait(60) == 1
        assert error.startswith("Found 5000 findings")
        assert len(error.splitlines()) == 1

    def test_output_survives_a_terminal_of_ascii(self) -> None:
        plant("import torch\nä = 1  # torchlint: ignore[NOPE] ü\n")
        done = run(".", env={**os.environ, "PYTHONIOENCODING": "ascii"})
        assert done.returncode == 1
        assert "\\xe4 = 1" in done.stdout

    def test_results_do_not_depend_on_jobs(self) -> None:
        for number in range(8):
            plant("import torch\nx = 1  # torchlint: ignore[NOPE]\n" + "# filler\n" * 9_000, f"m{number}.py")
        one, four = (run(".", "--no-cache", "--jobs", jobs) for jobs in ("1", "4"))
        assert one.stdout == four.stdout
        assert one.stdout.count("LINT03") == 8

    def test_nothing_is_cached_when_not_wanted(self) -> None:
        words = {word for rule in all_rules().values() for word in rule.triggers}
        plant(f"import torch\n# {' '.join(words)}\n")
        assert run(".", "--no-cache").returncode == 0
        assert not Path(".torchlint_cache").exists()
        assert run(".").returncode == 0
        assert Path(".torchlint_cache").exists()
        assert run("clean").returncode == 0
        assert not Path(".torchlint_cache").exists()
