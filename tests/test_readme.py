"""The README says nothing that is not so: its tables come from the registry, its output blocks from real runs.

`python -m tests.test_readme` brings the generated parts up to date.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import measured
from torchlint.rule import all_rules, fixer_for

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md"]
PART = re.compile(r"(<!-- (?P<name>rules|evidence) -->\n).*?(<!-- end of (?P=name) -->)", re.DOTALL)
OUTPUT = re.compile(r"(<!-- output of: (?P<command>[^\n]+) -->\n```(?:text|diff)\n)(?P<output>.*?)(```)", re.DOTALL)
COMMANDS = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)


def first_sentence(code: str) -> str:
    page = (all_rules()[code].__doc__ or "").strip()
    return page.splitlines()[0].rstrip(".")


def rule_table() -> str:
    """One row per rule of the registry, in the order of their codes."""
    rows = ["| rule | name | what it finds | severity | fix | time after the fix |", "|---|---|---|---|---|---|"]
    for code, rule in all_rules().items():
        fix = "yes" if fixer_for(code) else "no"
        severity = rule.default_severity().value
        rows.append(f"| {code} | `{rule.name}` | {first_sentence(code)} | {severity} | {fix} | {measured.cell(code)} |")
    return "\n".join(rows)


def evidence_table() -> str:
    """What `verify` measured, as recorded in runtime_check/evidence; a table for each device."""
    files = sorted((ROOT / "runtime_check" / "evidence").glob("*.json"))
    return "\n\n".join(device_table(file) for file in files if "runs" in json.loads(file.read_text()))


def device_table(path: Path) -> str:
    evidence = json.loads(path.read_text())
    head = ["program", "results", "operations", "synchronisations", "graph nodes kept", "time, with its 99 % interval"]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *map(run_row, evidence["runs"])]
    return f"{evidence['device']}; torch {evidence['torch']}; {evidence['date']}:\n\n" + "\n".join(rows)


def run_row(run: dict[str, Any]) -> str:
    verdict = run["verdict"]
    counters = [
        f"{verdict['before'][name]:g} → {verdict['after'][name]:g}"
        for name in ("operations", "syncs", "graph_nodes_kept_per_step")
    ]
    timing = verdict["timing"]
    effect, metric = timing["comparison"]["effect"], {"cpu": "CPU time"}.get(timing["metric"], timing["metric"])
    time = f"× {effect['ratio']:.2f} ({effect['low']:.2f} to {effect['high']:.2f}), {metric}"
    program = run["invocation"].partition(" -- ")[2]
    return f"| {' | '.join([f'`{program}`', verdict['equivalence']['verdict'], *counters, time])} |"


def output_of(command: str) -> str:
    """What a command of the README prints, run at the top of the checkout."""
    words = shlex.split(command)
    if words[0] == "torchlint":
        words[:1] = [sys.executable, "-m", "torchlint"]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    environment.pop("FORCE_COLOR", None)
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def up_to_date(text: str) -> str:
    """The page with its table and its output blocks as they would be printed today."""
    tables = {"rules": rule_table, "evidence": evidence_table}
    text = PART.sub(lambda found: found[1] + tables[found["name"]]() + "\n" + found[3], text)
    return OUTPUT.sub(lambda found: found[1] + output_of(found["command"]) + "\n" + found[4], text)


def commands(text: str) -> list[str]:
    """Every line of the shell blocks, without its comment; lines that end in a backslash are joined."""
    lines = "".join(COMMANDS.findall(text)).replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.strip() and not line.startswith("#")]


def torchlint_calls() -> list[str]:
    calls = (part for page in PAGES for line in commands(page.read_text()) for part in line.split("&&"))
    return sorted({call.strip() for call in calls if re.match(r"\s*(python -m )?torchlint\b", call)})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_generated_parts_are_up_to_date(page: Path) -> None:
    text = page.read_text()
    assert text == up_to_date(text), "run: python -m tests.test_readme"


def test_the_table_names_every_rule() -> None:
    text = PAGES[0].read_text()
    assert all_rules()
    assert [code for code in all_rules() if f"| {code} |" not in text] == []


@pytest.mark.parametrize("call", torchlint_calls())
def test_the_options_of_every_command_exist(call: str) -> None:
    words = call.removeprefix("python -m ").split()
    own = words[1 : words.index("--")] if "--" in words else words[1:]
    command = own[0] if own and re.fullmatch(r"[a-z][a-z-]*", own[0]) and not (ROOT / own[0]).exists() else "check"
    if command == "bench":
        command = " ".join(own[:2])
    shown = output_of(f"torchlint {command} --help")
    assert "Usage" in shown, f"no such command: {command}"
    for option in (word.split("=")[0] for word in own if word.startswith("-") and word != "-"):
        assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", shown + output_of("torchlint --help")), option


def test_the_settings_of_the_readme_are_accepted(tmp_path: Path) -> None:
    (settings,) = re.findall(r"^```toml\n(.*?)^```", PAGES[0].read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "torchlint.toml").touch()  # what the example extends
    file = tmp_path / "project" / "pyproject.toml"
    file.parent.mkdir()
    file.write_text(settings)
    assert str(file) in output_of(f"torchlint config --config {file} examples")


def test_the_files_that_the_readme_names_exist() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), target


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(up_to_date(page.read_text()))
