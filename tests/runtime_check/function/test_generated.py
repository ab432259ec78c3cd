"""Arguments made up from what the source says."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from textwrap import dedent

import pytest
import torch
from torchlint.runtime_check.equivalence import Sameness
from torchlint.runtime_check.function import FunctionError, FunctionVerdict, load, verify_function
from torchlint.runtime_check.function.call import Reading
from torchlint.runtime_check.function.generate import OneOf, Shape, generated, specifications
from torchlint.runtime_check.function.version import Version

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def version(text: str, name: str = "f") -> Version:
    file = Path(f"made_{next(_numbers)}.py")
    file.write_text("import torch\nfrom torch import Tensor, nn\n" + dedent(text))
    return load(f"{file}:{name}")


SAID = {
    "jaxtyping": 'from __future__ import annotations\ndef f(x: Float[Tensor, "b n"], m: Bool[Tensor, "n"]): ...',
    "a docstring of Google": '''
        def f(x, m):
            """Do it.

            Args:
                x (torch.Tensor): input of shape (b, n), not (wide, very, wide indeed).
                m: a mask of bool, [n,]
            """''',
    "a docstring of NumPy": '''
        def f(x, m):
            """
            Parameters
            ----------
            x : Tensor
                of shape (b, n)
            m : bool tensor, shape (n,)
            """''',
    "a docstring of Sphinx": '''
        def f(x, m):
            """
            :param x: (b, n)
            :param torch.Tensor m: bool (n,)
            """''',
    "comments": """
        def f(
            x,  # (b, n)
            m,  # bool [n,]
        ):
            pass""",
    "comments in the body": """
        def f(x, m):
            # x: [b, n]
            # m: bool, shape [n]
            pass""",
}


@pytest.mark.parametrize("kind", SAID)
def test_shapes_are_read_where_people_write_them(kind: str) -> None:
    text = SAID[kind].removeprefix("from __future__ import annotations\n")
    file = Path(f"said_{next(_numbers)}.py")
    header = "from __future__ import annotations\nimport torch\nfrom torch import Tensor\n"
    file.write_text(header + dedent(text))
    found = specifications(load(f"{file}:f"))
    assert {name: (what.dimensions, what.dtype) for name, what in found.items() if isinstance(what, Shape)} == {
        "x": (("b", "n"), torch.float32),
        "m": (("n",), torch.bool),
    }


def test_an_annotation_that_is_an_object_and_numbers() -> None:
    made = version("""
        class Ints:
            dim_str, __name__ = "batch 3 2*batch", "Int64[Tensor, ...]"

        def f(x: Ints(), k: int, on: bool, size: float = 0.25): ...
    """)
    found = specifications(made)
    assert found["x"] == Shape(("batch", "3", "2*batch"), torch.int64, "Int64, batch 3 2*batch")
    assert [what.values for what in found.values() if isinstance(what, OneOf)] == [(1, 2, 3), (False, True), (0.25,)]
    for call in generated(made, 8):
        x = call.load(made, made, Reading()).keywords["x"]
        assert x.shape == (x.shape[0], 3, 2 * x.shape[0])


def test_what_nothing_is_known_of_is_named() -> None:
    with pytest.raises(FunctionError, match=r"nothing says what `x` and `w` of made_\d+.py:f may be: annotate it"):
        specifications(version("def f(x: torch.Tensor, w, y=1, *rest): ..."))


def test_one_name_is_one_size_and_all_kinds_of_numbers_occur() -> None:
    made = version('def f(x, w):\n    """\n    x: (b, n)\n    w: (n, 4)\n    """')
    calls = [*generated(made, 60)]
    tensors = [call.load(made, made, Reading()).keywords for call in calls]
    assert all(given["x"].shape[1] == given["w"].shape[0] and given["w"].shape[1] == 4 for given in tensors)
    assert {given["x"].shape[0] for given in tensors} >= {1, 2, 3}
    assert all(given["x"].requires_grad for given in tensors)
    assert any(not given["x"].is_contiguous() for given in tensors)
    finite = [bool(given["x"].isfinite().all() and given["w"].isfinite().all()) for given in tensors]
    assert finite == [call.is_finite for call in calls]
    assert 0 < finite.count(False) < 20
    again = [call.load(made, made, Reading()).keywords for call in generated(made, 60)]
    assert all(torch.equal(a["x"], b["x"]) for a, b in zip(tensors, again, strict=True) if a["x"].isfinite().all())


def compare(old: str, new: str, shapes: str = "x: (b, n)") -> FunctionVerdict:
    one, other = (version(f'def f(x):\n    """{shapes}"""\n    {text}\n') for text in (old, new))
    return verify_function(one, other, generated(one), generated=True)


def test_made_up_calls_tell_right_from_wrong() -> None:
    rows = "return torch.stack([row.softmax(0) for row in x])"
    right = compare(rows, "return x.softmax(1)")
    assert right.verdict in (Sameness.IDENTICAL, Sameness.EQUIVALENT), right.reason
    assert (right.arguments, right.seen) == ("generated", 60)
    assert compare(rows, "return x.softmax(0)").verdict is Sameness.DIFFERENT


def test_what_the_original_refuses_says_nothing() -> None:
    found = compare("assert len(x) > 2; return x", "return x")
    assert found.verdict is Sameness.IDENTICAL
    assert 0 < found.outside < 60
    assert len(found.calls) + found.outside == 60
    nothing = compare("raise ValueError", "return x")
    assert (nothing.verdict, nothing.reason, nothing.outside) == (Sameness.UNKNOWN, "no call was compared", 60)


def test_a_difference_for_missing_numbers_alone_leaves_it_open() -> None:
    found = compare("return torch.where(x > 0, x, torch.zeros_like(x))", "return x * (x > 0)")
    assert (found.verdict, found.exit_code) == (Sameness.UNKNOWN, 3)
    assert found.reason.startswith("the same but for infinite or missing numbers")


def test_methods_need_an_instance() -> None:
    text = '''
        class Net(nn.Module):
            def __init__(self, wide{default}):
                super().__init__()
                self.layer = nn.Linear(4, wide)

            def forward(self, x):
                """x: (b, 4)"""
                return self.layer(x)

            @staticmethod
            def double(x):
                """x: (b,)"""
                return 2 * x
    '''
    made = version(text.replace("{default}", "=3"), "Net")
    found = verify_function(made, made, generated(made, 4), generated=True)
    assert (found.verdict, len(found.calls)) == (Sameness.IDENTICAL, 4)
    needy = version(text.replace("{default}", ""), "Net")
    with pytest.raises(FunctionError, match=r"Net\(\) cannot be made without arguments .* record real calls"):
        [*generated(needy, 1)]
    static = version(text.replace("{default}", ""), "Net.double")
    assert verify_function(static, static, generated(static, 2), generated=True).verdict is Sameness.IDENTICAL


def test_nothing_of_a_version_stays_among_the_modules() -> None:
    made = version("def f(): ...")
    assert made.module.__name__ not in sys.modules
