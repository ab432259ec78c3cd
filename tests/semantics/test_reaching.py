"""Which writes of a variable reach a read: asked for one by one, or all at once, it is the same."""

from __future__ import annotations

import libcst as cst
import pytest

from tests.semantics.programs import binding_of, model_of
from torchlint.semantics.dataflow import reaches, writes_reaching

CODE = """
    def branches(x, c):
        if c:
            x = x + 1
        else:
            x = 2
        if c:
            x = x + 1
        return x

    def always(x):
        x = 1
        x = x + 2
        x = x + 3; print(x); x = x + 4
        return x

    def loop(x):
        for i in x:
            print(x)
            if i:
                x = i
            print(x)
        x = x, x
        return x

    def target(xs, x):
        for x in xs:
            print(x)
            x = x + 1
            print(x)
        return x

    def repeated(x):
        while x:
            x = x - 1
            print(x)
        else:
            x = x + 1
        return x

    def tried(x):
        try:
            x = g(x)
        except ValueError:
            print(x)
            x = None
        finally:
            print(x)
        with open(x) as x, g(x) as y:
            print(x)
            x = y
        return x

    def named(x):
        if x := x + 1:
            return x
        return ((x := 2) and x) or (3 if (x := 4) else x)

    def inner(x):
        def g():
            return x

        x = 1
        y = [x for x in x if x]
        return x, g, lambda: x

    y = 1
    if y:
        y = 2
    print(y)

    def outer():
        global y
        y = y + 1
        return y

    class F:
        def f(self, x):
            self.x = x
            self.x = self.x + 1
            return self.x
"""


def test_all_at_once_is_one_by_one() -> None:
    model = model_of(CODE)
    found = {model.binding(node) for node in model.nodes_of(cst.Name, cst.Attribute)}
    pairs = 0
    for binding in filter(None, found):
        for read in [*binding.reads, *(write.target for write in binding.writes)]:
            expected = [write for write in binding.writes if reaches(model, binding, write.target, read)]
            assert writes_reaching(model, binding, read) == expected
            pairs += len(binding.writes)
    assert pairs > 100


def test_a_write_that_always_comes_between_hides_the_others() -> None:
    model = model_of(CODE)
    variable = binding_of(model, "x", "always")
    first, *others = sorted(variable.reads, key=lambda read: model.span(read)[0])
    assert writes_reaching(model, variable, first) == [variable.writes[1]]
    assert writes_reaching(model, variable, others[0]) == [variable.writes[2]]


IN_ORDER = [
    ("show((x := 1), x)", [0, 1]),
    ("y = (x := 1) < x", [0, 1]),
    ("y[x] = (x := 1)", [0, 1]),
    ("y = (x := x)", [0]),
    ("match y:\n        case [_, x]:\n            show(x)", [0, "x"]),
    ("match y:\n        case [_, x] if x > 1:\n            pass", [0, "x"]),
    ("match y:\n        case [_, x] if y[0]:\n            pass\n        case _:\n            show(x)", [0, "x"]),
    ("match y:\n        case _ if (x := 1):\n            show(x)", [0, 1]),
    ("with y:\n        show(x)\n        x = 1", [0]),
    ("with y as x:\n        show(x)\n        x = 1", [0, "x"]),
    ("try:\n        show(x)\n        x = 1\n    finally:\n        x = 2", [0]),
    ("try:\n        x = 1\n    except y:\n        show(x)\n        x = 2\n    finally:\n        x = 3", [0, 1]),
    (
        "try:\n        x = 1\n    except KeyError:\n        x = 2\n    finally:\n        show(x)\n        x = 3",
        [0, 1, 2],
    ),
    ("for _ in y:\n        try:\n            show(x)\n        finally:\n            x = 1", [0, 1]),
]


@pytest.mark.parametrize(("code", "reaching"), IN_ORDER)
def test_what_may_run_before_a_read_reaches_it_and_what_runs_behind_it_does_not(
    code: str, reaching: list[int | str]
) -> None:
    model = model_of(f"def f(y):\n    x = 0\n    {code}\n")
    variable = binding_of(model, "x", "f")
    [read] = variable.reads
    found = [
        write.value.value if isinstance(write.value, cst.Integer) else model.code(write.target)
        for write in writes_reaching(model, variable, read)
    ]
    assert [int(value) if value.isdigit() else value for value in found] == reaching
