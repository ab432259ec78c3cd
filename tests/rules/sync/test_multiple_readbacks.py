"""SYNC02: several numbers that are read one by one, and numbers that are read again."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import evaluation, line_of, training
from tests.support import findings

ALL = ("SYNC01", "SYNC02", "SYNC03", "SYNC04", "SYNC06", "SYNC07", "SYNC09")

SEVERAL = {
    "in a print": training("print(loss.item(), out.mean().item())"),
    "in a log": training("wandb.log({'loss': loss.item(), 'mean': out.mean().item()})"),
    "in a text": training("print(f'{loss.item():.3f} {out.mean().item():.3f} {out.std().item():.3f}')"),
    "in a list": training("history.append((loss.item(), out.mean().item()))", "history = []"),
    "by float": evaluation("history.append([float(loss), float(out.mean())])", "history = []"),
}

AGAIN = {
    "summed and printed": training("total += loss.item()\nprint(loss.item())", "total = 0.0"),
    "once more on one way": training(
        "print(loss.item())\nif step > 3:\n    history.append(loss.item())", "history = []"
    ),
}

SINGLE = {
    "two sums": training("total += loss.item()\nmean += out.mean().item()", "total = mean = 0.0"),
    "a new value under the name": training("print(loss.item())\nloss = loss * 2\nprint(loss.item())"),
    "changed in place": training("print(out[0, 0].item())\nout.zero_()\nprint(out[0, 0].item())"),
    "a value that is changed": training("print(loss.item())\nloss.mul_(2)\nprint(loss.item())"),
    "on different ways": training("if step > 3:\n    print(loss.item())\nelse:\n    print('loss', loss.item())"),
}

SILENT = {
    "at log intervals": training("if step % 100 == 0:\n    print(loss.item(), out.mean().item())"),
    "on the host": training("low = out.detach().cpu()\nprint(low.mean().item(), low.std().item())"),
    "all at once": training("print(*torch.stack([loss, out.mean()]).tolist())"),
}


@pytest.mark.parametrize("code", SEVERAL.values(), ids=SEVERAL)
def test_the_reads_of_one_statement_are_one_finding(code: str) -> None:
    [finding] = findings(code, *ALL)
    assert finding.code == "SYNC02"
    assert "numbers from the device one by one" in finding.message


@pytest.mark.parametrize("code", AGAIN.values(), ids=AGAIN)
def test_what_is_read_again_is_found_where_it_is_read_the_second_time(code: str) -> None:
    first, second = findings(code, *ALL)
    assert (first.code, second.code) == ("SYNC01", "SYNC02")
    assert f"on line {first.line}" in second.message


@pytest.mark.parametrize("code", SINGLE.values(), ids=SINGLE)
def test_reads_of_different_numbers_in_different_statements_are_matters_of_their_own(code: str) -> None:
    assert [finding.code for finding in findings(code, *ALL)] == ["SYNC01", "SYNC01"]


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_reads_that_are_rare_or_cost_nothing_are_silent(code: str) -> None:
    assert findings(code, "SYNC02") == []


def test_a_sum_of_a_product_is_one_finding_and_a_matter_of_the_sum() -> None:
    code = training("total += float(loss) * float(out.std())", "total = 0.0", "return total")
    assert [finding.code for finding in findings(code, *ALL)] == ["SYNC01"]


def test_the_message_counts_the_reads() -> None:
    code = SEVERAL["in a text"]
    [finding] = findings(code, "SYNC02")
    assert finding.line == line_of(code, "out.std()")
    assert "reads 3 numbers" in finding.message
