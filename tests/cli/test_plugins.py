"""Rules of one's own: scaffolded, named by settings or command line, or brought by an installed package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchlint.cli import cli
from torchlint.plugins import PluginError, load

ROOT = Path(__file__).resolve().parents[2]
INVERSE = "import torch as t\nx = t.inverse(t.eye(3))\n"
FIXED = INVERSE.replace("inverse", "linalg.inv")


def run(*command: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """`python COMMAND` in a process of its own: what is loaded there stays there."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), path)))}
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, check=False)


def torchlint(*arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    return run("-m", "torchlint", *arguments, path=path)


def found(*arguments: str, path: str = "") -> list[tuple[str, str]]:
    """Code and path of each finding."""
    done = torchlint("check", "--output-format", "json", *arguments, path=path)
    assert done.returncode in (0, 1), done.stderr
    return [(entry["code"], entry["path"]) for entry in json.loads(done.stdout)]


@pytest.fixture
def scaffolded(project: Path) -> Path:
    """A project with a rule of its own in the folder lint_rules, and a file that the rule is about."""
    (project / "a.py").write_text(INVERSE)
    done = CliRunner().invoke(cli, ["new-rule", "ACME01", "old-inverse"])
    assert done.exit_code == 0, done.output
    (project / "torchlint.toml").write_text('plugins = ["lint_rules"]\nselect = ["ACME", "LINT"]\n')
    return project


def test_a_new_rule_finds_fixes_and_passes_its_own_test(scaffolded: Path) -> None:
    assert found(".") == [("ACME01", "a.py")]
    assert torchlint("rule", "old-inverse").stdout.startswith("# ACME01 old-inverse")
    assert torchlint("check", "--fix", ".").returncode == 0
    assert (scaffolded / "a.py").read_text() == FIXED
    tests = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "lint_rules")
    assert "5 passed" in tests.stdout, tests.stdout


def test_worker_processes_know_the_rule_and_a_changed_rule_is_no_longer_cached(scaffolded: Path) -> None:
    for number in range(3):
        (scaffolded / f"long{number}.py").write_text(INVERSE + "# inverse" * 30_000)
    expected = [("ACME01", name) for name in ("a.py", "long0.py", "long1.py", "long2.py")]
    assert found("--jobs", "2", ".") == expected
    rule = scaffolded / "lint_rules" / "old_inverse.py"
    rule.write_text(rule.read_text().replace('== "torch.inverse"', '== "torch.pinverse"'))
    assert found(".") == []


def test_code_of_a_project_that_one_does_not_work_in_is_not_run(
    scaffolded: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (scaffolded / "lint_rules" / "old_inverse.py").write_text("open('was_run', 'w').close()\n")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    os.chdir(elsewhere)
    done = torchlint("check", str(scaffolded))
    assert (done.returncode, list(elsewhere.iterdir())) == (2, [])
    assert "code of a project that you do not work in" in done.stderr
    assert torchlint("check", "--isolated", str(scaffolded / "a.py")).returncode == 0
    assert not (elsewhere / "was_run").exists()


def test_a_plugin_of_the_command_line_is_run(scaffolded: Path) -> None:
    file = str(scaffolded / "lint_rules" / "old_inverse.py")
    assert found("--isolated", "--select", "ACME", "--plugin", file, ".") == [("ACME01", "a.py")]


def test_rules_of_one_folder_are_not_for_the_files_of_another(scaffolded: Path) -> None:
    (scaffolded / "inner").mkdir()
    (scaffolded / "inner" / "b.py").write_text(INVERSE)
    (scaffolded / "inner" / "torchlint.toml").write_text("")
    assert found(".") == [("ACME01", "a.py")]


def rule_text(code: str = "'ACME01'", page: str = "'Page.'", triggers: str = "('x',)") -> str:
    return f"class A(Rule):\n    {page}\n    code = {code}\n    name = 'my-rule'\n    triggers = {triggers}"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import no_such_module", "No module named 'no_such_module'"),
        ("x = 1", "has no rule"),
        ("def f(:", "SyntaxError"),
        (None, "does not exist"),
        (rule_text(code="'mine'"), "two digits"),
        (rule_text(triggers="'x'"), "a tuple of words"),
        (rule_text(page=""), "no docstring"),
        (rule_text(code="'MEM01'"), "taken by MEM01"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_said(text: str | None, what: str, project: Path) -> None:
    file = project / "rules.py"
    if text is not None:
        file.write_text(f"from torchlint.rule import Rule\n{text}\n")
    with pytest.raises(PluginError, match=what):
        load(file)
    if text is None:
        done = torchlint("check", "--plugin", "rules.py", ".")
        assert (done.returncode, what in done.stderr, "Traceback" in done.stderr) == (2, True, False)


def test_an_installed_package_brings_its_rule(project: Path) -> None:
    (project / "a.py").write_text(INVERSE)
    assert torchlint("new-rule", "ACME01", "old-inverse", "torchlint-acme", "--package").returncode == 0
    site = str(project / "site")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", site)
    pip = run("-m", "pip", "install", *options, "./torchlint-acme")
    assert pip.returncode == 0, pip.stderr
    assert found("--select", "ACME01", "a.py", path=site) == [("ACME01", "a.py")]
    assert "ACME01" not in torchlint("rule", "--all").stdout
    tests = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "torchlint-acme", path=site)
    assert "5 passed" in tests.stdout, tests.stdout


@pytest.mark.parametrize(
    ("code", "name", "what"),
    [
        ("acme01", "old-inverse", "two digits"),
        ("ACME01", "OldInverse", "hyphens"),
        ("MEM01", "old-inverse", "taken"),
        ("ACME01", "append-graph-tensor", "taken"),
    ],
)
def test_codes_and_names_that_cannot_be_are_refused(code: str, name: str, what: str, project: Path) -> None:
    done = CliRunner().invoke(cli, ["new-rule", code, name])
    assert (done.exit_code, list(project.iterdir())) == (2, [])
    assert what in done.output


def test_files_that_are_there_are_left_alone(scaffolded: Path) -> None:
    (scaffolded / "torchlint.toml").unlink()
    done = CliRunner().invoke(cli, ["new-rule", "ACME01", "old-inverse"])
    assert done.exit_code == 2
    assert "is there already" in done.output
