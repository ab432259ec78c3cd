"""Comments at the ends of lines stay in one column."""

from __future__ import annotations

import pytest

from torchlint.config import Settings
from torchlint.fixing.comment_columns import realigned
from torchlint.fixing.passes import fix_source
from torchlint.source import Source

LONGER = [
    pytest.param("a = f(x)      # one\nb = 2         # two\n", "f(x)", "g(x, 2)", 14, id="below"),
    pytest.param("b = 2         # two\na = f(x)      # one\n", "f(x)", "g(x, 2)", 14, id="above"),
    pytest.param("a = f(x)      # one\nb = 2         # two\n", "f(x)", "y", 14, id="shorter"),
    pytest.param("a = f(x)      # one\nb = 2         # two\n", "f(x)", "g(x, 2, 3)", 16, id="no room"),
    pytest.param("a = f(x)      # one\nb = 2    # two\n", "f(x)", "g(x, 2)", 17, id="in line with nothing"),
    pytest.param("a = f(x)      # one\n# two\n", "f(x)", "g(x, 2)", 17, id="by a comment on a line of its own"),
    pytest.param("a = f(x)      # one\nb = 2\n", "f(x)", "g(x, 2)", 17, id="alone"),
    pytest.param("if y:\n\ta = f(x)      # one\n\tb = 2         # two\n", "f(x)", "g(x, 2)", 15, id="behind a tab"),
    pytest.param("a = 'f(x)     # one'\nb = 2         # two\n", "f(x)", "g(x, 2)", 17, id="in a string"),
]


@pytest.mark.parametrize(("before", "old", "new", "column"), LONGER)
def test_a_comment_stays_in_line_with_others_where_there_is_room(before: str, old: str, new: str, column: int) -> None:
    after = before.replace(old, new)
    done = realigned(Source.from_text(before), Source.from_text(after)).text
    line = next(line for line in done.splitlines() if "# one" in line)
    assert line.index("# one") == column
    assert done.split() == after.split()


def test_the_comment_of_a_fix_stays_where_it_was() -> None:
    before = (
        "import torch\n\n\ndef f(n, x):\n"
        "    m = torch.zeros(n, 3).to(x.device)           # mask\n"
        "    k = 1                                        # rest\n"
        "    return m + k\n"
    )
    assert fix_source(Source.from_text(before), Settings()).source.text == before.replace(
        ".to(x.device)    ", ", device=x.device)", 1
    ).replace("3), device", "3, device")
