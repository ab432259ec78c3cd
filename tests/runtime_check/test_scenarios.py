from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from torchlint.runtime_check import Options
from torchlint.runtime_check.scenarios import Measurement, Scenario, add_evidence, measure, scenarios

from tests import measured
from tests.support import findings, fixed
from torchlint.rule import all_rules, has_fixer

pytestmark = pytest.mark.usefixtures("forked")

SCENARIOS = list(scenarios().values())
FAMILIES = ("DATA", "KERN", "LIN", "MEM", "SYNC", "VEC", "XFER")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.rule)
def test_the_fixer_of_the_rule_makes_the_program_without_the_problem(scenario: Scenario) -> None:
    assert len(findings(scenario.program, scenario.rule)) == 1
    after = fixed(scenario.program, scenario.rule)
    assert findings(after, scenario.rule) == []
    compile(after, scenario.rule, "exec")


def test_every_fix_that_claims_speed_or_memory_has_a_program() -> None:
    claims = {code for code in all_rules() if code[:-2] in FAMILIES and has_fixer(code)}
    assert claims <= {scenario.rule for scenario in SCENARIOS}


def test_sizes_go_from_small_to_large() -> None:
    assert all(scenario.sizes == tuple(sorted(set(scenario.sizes))) for scenario in SCENARIOS)


@pytest.fixture(scope="module")
def result() -> Measurement:
    scenario = replace(scenarios()["MEM01"], sizes=(8,))
    few = Options(steps=6, warmup=1, blocks=0, timeout=120.0)
    (one,) = measure([scenario], lambda scenario: fixed(scenario.program, scenario.rule), few, lambda message: None)
    return one


def test_a_scenario_is_judged_by_verify(result: Measurement) -> None:
    verdict = result.verdict
    assert verdict.overall.value == "accept", verdict
    assert verdict.target.command == ("python", "train.py", "8")
    assert verdict.before is not None
    assert verdict.after is not None
    assert verdict.before.graph_nodes_kept_per_step > verdict.after.graph_nodes_kept_per_step == 0  # type: ignore[operator]


def test_evidence_replaces_what_was_measured_of_the_same_rule_and_size(result: Measurement, tmp_path: Path) -> None:
    file = tmp_path / "device.json"
    for rule, size in (("VEC01", 8), ("MEM01", 16), ("MEM01", 8), ("MEM01", 8)):
        add_evidence(file, f"torchlint bench {rule}", replace(result, rule=rule, size=size))
    evidence = json.loads(file.read_text())
    assert evidence["schema"] == "torchlint.evidence/1"
    assert [(row["rule"], row["size"]) for row in evidence["scenarios"]] == [("MEM01", 8), ("MEM01", 16), ("VEC01", 8)]
    assert evidence["scenarios"][0]["verdict"]["environment"]["torch"]


def test_evidence_is_of_rules_that_exist_and_holds_every_sample_unless_results_differ() -> None:
    for row in measured.evidence():
        timing = row["verdict"]["timing"]
        assert row["rule"] in all_rules()
        assert row["verdict"]["environment"]["device_name"]
        if timing is None:
            assert row["verdict"]["equivalence"]["verdict"] == "different", row["rule"]
            continue
        assert len(timing["original"]) == len(timing["control"]) == len(timing["changed"]) > 1
