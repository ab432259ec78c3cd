"""What fixers say that a fix goes with: all of these places change, by whichever rules, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.rewriting import model_of
from tests.support import findings
from torchlint.finding import Applicability, Edit, Finding, Fix
from torchlint.fixing.all_or_none import shown_where_others_stay

CODE = "import torch\n\na = 1\nb = 2\nc = 3\nd = 4\n"
PLACES = {name: (CODE.index(f"{name} ="), CODE.index(f"{name} =") + 1) for name in "abcd"}


def finding(rule: str, name: str, *others: str) -> Finding:
    """One whose fix gives a name to `name`, and goes with others."""
    [known] = findings("import torch\n\nx = torch.zeros(3).cuda()\n", "XFER01")
    edits = (Edit(*PLACES[name], name.upper()),)
    fix = Fix(edits, Applicability.UNSAFE, "It is renamed.", goes_with=(tuple(PLACES[other] for other in others),))
    return replace(known, code=rule, fix=fix)


@pytest.mark.parametrize(
    ("others", "applied"),
    [
        ({"a": "ab", "b": "ab"}, "ab"),  # by two rules
        ({"a": "abd", "b": "", "c": ""}, "bc"),  # nothing changes `d`
        ({"a": "b", "b": "c", "c": "d"}, ""),  # one after the other
        ({"a": "b", "b": "c", "c": ""}, "abc"),
    ],
)
def test_what_leaves_a_place_leaves_its_own(others: dict[str, str], applied: str) -> None:
    model = model_of(CODE)
    node = model.module.body[1]
    found = [(node, finding(f"RULE{at}", name, *others[name])) for at, name in enumerate(others)]
    made = shown_where_others_stay(found, model)
    fixes = {name: each.fix for name, each in zip(others, made, strict=True) if each.fix is not None}
    assert "".join(name for name, fix in fixes.items() if fix.applicability is Applicability.UNSAFE) == applied
    shown = [fix for fix in fixes.values() if fix.applicability is Applicability.DISPLAY]
    assert all("has another like it that would stay as it is" in fix.why for fix in shown)


def test_a_chain_of_many_takes_little_time() -> None:
    """Each place is looked at once for all that share it."""
    lines = "".join(f"x{at} = {at}\n" for at in range(3000))
    model = model_of("import torch\n" + lines)
    text = model.source.text
    spans = tuple((text.index(f"x{at} ="), text.index(f"x{at} =") + 1) for at in range(3000))
    known = finding("RULE", "a")
    made = Fix((), Applicability.UNSAFE, goes_with=(spans,))
    found = [
        (model.module.body[1], replace(known, fix=replace(made, edits=(Edit(start, end, "y"),))))
        for start, end in spans[1:]
    ]
    left = shown_where_others_stay(found, model)
    assert all(each.fix is not None and each.fix.applicability is Applicability.DISPLAY for each in left)
