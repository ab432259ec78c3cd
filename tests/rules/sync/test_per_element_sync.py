"""SYNC07: tensors that are read from the device number by number."""

from __future__ import annotations

import pytest

from tests.rules.sync.programs import evaluation, line_of, training
from tests.support import findings

ALL = ("SYNC01", "SYNC02", "SYNC03", "SYNC04", "SYNC06", "SYNC07", "SYNC09")

ONE_BY_ONE = {
    "a comprehension": evaluation("best = out.argmax(1)\nkept.extend([b.item() for b in best])", "kept = []"),
    "a loop": evaluation("best = out.argmax(1)\nfor b in best:\n    kept.append(b.item())", "kept = []"),
    "int": evaluation("best = out.argmax(1)\nfor b in best:\n    kept.append(int(b))", "kept = []"),
    "an expression": evaluation("for b in out.argmax(1):\n    kept.append(b.item())", "kept = []"),
    "with its number": evaluation("for i, b in enumerate(out.argmax(1)):\n    kept.append((i, b.item()))", "kept = []"),
    "two at once": evaluation(
        "for p, t in zip(out.argmax(1), y):\n    matrix[t.item(), p.item()] += 1", "matrix = np.zeros((3, 3))"
    ),
    "by index": evaluation("best = out.argmax(1)\nfor i in range(9):\n    kept.append(best[i].item())", "kept = []"),
    "by index and counted": evaluation(
        "hits = out.argmax(1).eq(y)\nfor i in range(4):\n    total[i] += hits[i].item()", "total = [0] * 4"
    ),
    "a test of each": training("for b in out.argmax(1):\n    if b.item() == 2:\n        seen += 1", "seen = 0"),
    "in a table": training(
        "for i in range(9):\n    for j in range(3):\n        kept.append(float(out[i, j]))", "kept = []"
    ),
}

SILENT = {
    "all at once": evaluation("for b in out.argmax(1).tolist():\n    kept.append(b)", "kept = []"),
    "on the host": evaluation("best = out.argmax(1).cpu()\nfor b in best:\n    kept.append(b.item())", "kept = []"),
    "a number of each row": evaluation("for p in out:\n    kept.append(p.max().item())", "kept = []"),
    "the loop writes the tensor": evaluation(
        "best = out.argmax(1)\nfor i in range(9):\n    best[i] = best[0] + 1\n    kept.append(best[i].item())",
        "kept = []",
    ),
    "the loop changes the tensor": evaluation(
        "best = out.argmax(1)\nfor i in range(9):\n    best.add_(1)\n    kept.append(best[i].item())", "kept = []"
    ),
    "another value under the name": evaluation(
        "for b in out.argmax(1):\n    b = model(b)\n    kept.append(b.item())", "kept = []"
    ),
    "numbers of Python": evaluation(
        "for i in range(9):\n    kept.append(float(sizes[i]))", "kept, sizes = [], [1] * 9"
    ),
    "at log intervals": training("if step % 100 == 0:\n    print([v.item() for v in out.argmax(1)])"),
    "once, after the training": training("pass", after="return [v.item() for v in out.argmax(1)]"),
}


@pytest.mark.parametrize("code", ONE_BY_ONE.values(), ids=ONE_BY_ONE)
def test_a_tensor_that_is_read_number_by_number_is_found_once_and_by_this_rule_alone(code: str) -> None:
    assert [finding.code for finding in findings(code, *ALL)] == ["SYNC07"]


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_what_cannot_be_one_list_is_silent(code: str) -> None:
    assert findings(code, "SYNC07") == []


def test_the_message_names_the_tensor() -> None:
    code = ONE_BY_ONE["by index"]
    [finding] = findings(code, "SYNC07")
    assert finding.line == line_of(code, "best[i].item()")
    assert "once per element of `best`" in finding.message
    assert "`best.tolist()`" in finding.message
