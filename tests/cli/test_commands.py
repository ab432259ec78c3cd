"""`torchlint rule`, `config`, `clean`, and the group itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.test_check import call
from torchlint import __version__
from torchlint.diagnostics import DIAGNOSTICS
from torchlint.rule import all_rules, fixer_for, has_fixer


def test_version() -> None:
    assert call("--version").stdout == f"torchlint {__version__}\n"


def test_help_names_every_command() -> None:
    text = call("--help").stdout
    assert {"check", "rule", "config", "clean", "verify", "explain-model", "bench"} <= set(text.split())


def test_a_rule_by_code_and_by_name() -> None:
    by_code, by_name = call("rule", "mem01"), call("rule", "append-graph-tensor")
    assert by_code.stdout == by_name.stdout
    assert by_code.stdout.startswith("# MEM01 append-graph-tensor\n")
    assert "## What it does" in by_code.stdout


def test_a_diagnostic_has_a_page() -> None:
    assert "unused-suppression" in call("rule", "LINT03").stdout


def test_every_rule_has_a_line() -> None:
    lines = call("rule", "--all").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*all_rules(), *DIAGNOSTICS]


def test_a_family_has_a_line_for_each_rule() -> None:
    lines = call("rule", "mem").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [code for code in all_rules() if code.startswith("MEM")]


def test_rules_as_json() -> None:
    entries = json.loads(call("rule", "--all", "--output-format", "json").stdout)
    assert {entry["code"] for entry in entries} == {*all_rules(), *DIAGNOSTICS}
    one = json.loads(call("rule", "MEM01", "--output-format", "json").stdout)
    assert one == next(entry for entry in entries if entry["code"] == "MEM01")
    assert one["page"].startswith(one["summary"])


def test_fixers_are_known_without_being_loaded() -> None:
    assert {code for code in all_rules() if has_fixer(code)} == {code for code in all_rules() if fixer_for(code)}


@pytest.mark.parametrize("arguments", [[], ["MEM01", "--all"], ["NOPE01"]], ids=["none", "both", "unknown"])
def test_wrong_usage_of_rule(arguments: list[str]) -> None:
    assert call("rule", *arguments).exit_code == 2


def test_config_says_where_each_setting_came_from(project: Path) -> None:
    (project / "torchlint.toml").write_text('ignore = ["MEM01"]\n')
    lines = call("config").stdout.splitlines()
    assert lines[0] == f"# {project / 'torchlint.toml'}"
    assert f'ignore = ["MEM01"]  # {project / "torchlint.toml"}' in lines
    assert 'select = ["ALL"]  # default' in lines
    assert "MEM01" not in lines[-1]
    assert "SYNC01" in lines[-1]
    assert call("config", "--isolated").stdout.startswith("# no settings file\n")
    assert call("config", "gone").exit_code == 2


def test_clean_without_a_cache_is_fine(project: Path) -> None:
    assert call("clean").exit_code == 0


def _wait_for_workers(process: subprocess.Popen[bytes]) -> None:
    """Until the command has started others; before, Python is still importing it, for how long nobody knows."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    end = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < end and not (children.exists() and children.read_text()):
        time.sleep(0.05)


@pytest.mark.parametrize("delay", [0.2, 1.2])
def test_ctrl_c_ends_quietly(project: Path, delay: float) -> None:
    for number in range(60):
        lines = "import torch\ntorch.optim\n" + f"def f{number}(x):\n    return [x, (x, {{x: x}})]\n" * 2_000
        (project / f"m{number}.py").write_text(lines)
    process = subprocess.Popen(
        [sys.executable, "-m", "torchlint", ".", "--no-cache", "--fix", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    _wait_for_workers(process)
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGINT)
    out, error = process.communicate(timeout=30)
    assert (process.returncode, out, error.strip()) == (130, b"", b"")
    assert len(list(project.iterdir())) == 60
