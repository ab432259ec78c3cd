"""Lines that outgrow their project's limit by a fix are broken as a person would; all others stay."""

from __future__ import annotations

import pytest

from torchlint.config import Settings
from torchlint.edits.line_breaking import within_length
from torchlint.fixing.passes import fix_source
from torchlint.source import Source

FILL = "value = 1\n" * 120  # enough lines to show a limit of 79
SHORT = "x = 1\n"


def broken(before: str, after: str, fill: str = FILL) -> str:
    made = within_length(Source.from_text(fill + before), Source.from_text(fill + after), None).text
    assert made.startswith(fill)
    return made.removeprefix(fill)


CLOSED = "f(\n    a,\n)\n" * 120

BROKEN = [
    pytest.param(
        "    total_of_all = torch.zeros(1, dtype=predicted_trajectory.dtype, device=predicted_trajectory.device)\n",
        "    total_of_all = torch.zeros(1, dtype=predicted_trajectory.dtype,\n"
        "                               device=predicted_trajectory.device)\n",
        id="under the first argument",
    ),
    pytest.param(
        "    everything = sum_of(first_one(aaaaaaaaaa, bbbbbbbbbbbbbb), second_one(cccccccccccc, ddddddddd))\n",
        "    everything = sum_of(first_one(aaaaaaaaaa, bbbbbbbbbbbbbb),\n"
        "                        second_one(cccccccccccc, ddddddddd))\n",
        id="behind a comma of the outermost bracket",
    ),
    pytest.param(
        "    network.load_state_dict(torch.load(os.path.join(model_dir, name), map_location=device))\n",
        "    network.load_state_dict(torch.load(os.path.join(model_dir, name),\n"
        "                                       map_location=device))\n",
        id="behind one of an inner bracket",
    ),
    pytest.param(
        "    a_value_of_the_whole = a_table_of_values[aaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbb].double(cccccccccc)\n",
        "    a_value_of_the_whole = a_table_of_values[aaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbb].double(cccccccccc)\n",
        id="not in an index",
    ),
    pytest.param(
        "        all_of_them = list(map(lambda first_one, second_one: first_one * second_one, xs, ys))\n",
        "        all_of_them = list(\n            map(lambda first_one, second_one: first_one * second_one, xs, ys))\n",
        id="not between what a lambda takes",
    ),
    pytest.param(
        "    partials = torch.linspace(1, number, number, dtype=torch.float32, device=device).unsqueeze(-1)\n",
        "    partials = torch.linspace(1, number, number, dtype=torch.float32,\n"
        "                              device=device).unsqueeze(-1)\n",
        id="in front of one short call more",
    ),
    pytest.param(
        "    moved = {key: value.to(device, torch.float64, non_blocking=True) for key, value in extras.items()}\n",
        "    moved = {key: value.to(device, torch.float64, non_blocking=True)\n"
        "             for key, value in extras.items()}\n",
        id="before the loop of a comprehension",
    ),
    pytest.param(
        "        a_long_name_for_the_result = a_function_with_some_name(aaaaaaaaaaaaaaaaaa).double()\n",
        "        a_long_name_for_the_result = a_function_with_some_name(\n            aaaaaaaaaaaaaaaaaa).double()\n",
        id="behind the bracket where there is no comma",
    ),
    pytest.param(
        "    n += int((aaaaaaaaaaaa.flatten(1) > bbbbbbbbbbbbbbbbbbbb).movedim(-1, 0).sum())\n",
        "    n += int(\n        (aaaaaaaaaaaa.flatten(1) > bbbbbbbbbbbbbbbbbbbb).movedim(-1, 0).sum())\n",
        id="not between two short arguments of a call inside",
    ),
    pytest.param(
        "    x = a_call(aaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbb, device=device)  # what it is all about\n",
        "    # what it is all about\n    x = a_call(aaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbb, device=device)\n",
        id="a comment goes above",
    ),
    pytest.param(
        "    x = a_call(aaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbb, device=device)  # noqa: what it is\n",
        "    x = a_call(aaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbb, device=device)  # noqa: what it is\n",
        id="one that a tool reads stays",
    ),
    pytest.param(
        "\tx = a_call_of_a_function(aaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbb, device=device)\n",
        "\tx = a_call_of_a_function(aaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbb,\n"
        "\t                         device=device)\n",
        id="tabs stay tabs",
    ),
]


@pytest.mark.parametrize(("after", "expected"), BROKEN)
def test_a_line_that_is_too_long_is_broken(after: str, expected: str) -> None:
    assert broken(SHORT, after) == expected


def test_where_brackets_close_on_lines_of_their_own_so_does_this() -> None:
    after = "    network.load_state_dict(torch.load(os.path.join(model_dir, name), map_location=device))\n"
    assert broken(SHORT, after, CLOSED) == (
        "    network.load_state_dict(\n        torch.load(os.path.join(model_dir, name), map_location=device)\n    )\n"
    )
    many = "    network.load_state_dict(aaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbb, ccccccccc=device)\n"
    assert broken(SHORT, many, CLOSED) == (
        "    network.load_state_dict(\n        aaaaaaaaaaaaaaaaaaaaaaaaaaaaa,\n"
        "        bbbbbbbbbbbbbbbbbbbbbbbb,\n        ccccccccc=device,\n    )\n"
    )


def test_lists_that_close_on_lines_of_their_own_say_nothing_of_calls() -> None:
    lists = "f([\n    a,\n])\n" * 120
    after = "    network.load_state_dict(torch.load(os.path.join(model_dir, name), map_location=device))\n"
    assert broken(SHORT, after, lists) == broken(SHORT, after)


def test_arguments_on_a_line_between_their_brackets_get_a_line_each() -> None:
    before = "    x = f(\n        aaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbb\n    )\n"
    after = before.replace("bbb\n", "bbb, dtype=predicted.dtype, device=predicted.device\n")
    assert broken(before, after) == after.replace(", ", ",\n        ").replace(".device\n", ".device,\n")
    behind = after.replace("device\n    )", "device)")
    assert broken(before, behind) == behind.replace(" dtype", "\n        dtype").replace(", \n", ",\n")


def test_they_do_where_longer_lines_are_the_custom_too() -> None:
    before = "loader = Loader(\n    " + "first=aaaaaaaaaaaaaaaaaaaaaaaaaaaa, " * 3 + "b=1\n)\n"
    after = before.replace("b=1", "b=1, second=cccccccccccccccccccccccccccc")
    made = broken(before, after, FILL + "x = " + "1" * 200 + "\n" + ("x = " + "1" * 200 + "\n") * 9)
    assert made == after.replace(", ", ",\n    ").replace("c\n)", "c,\n)")


LONG = (
    "    x = a_call(aaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, ccccccccccccccccccccccccccccc, d)\n"
)


@pytest.mark.parametrize(
    ("before", "after", "fill"),
    [
        pytest.param(LONG, LONG, FILL, id="a line that was there"),
        pytest.param(LONG.replace(", d)", ", dd)"), LONG, FILL, id="one that was longer"),
        pytest.param(LONG.replace("d)", "d" * 20 + ")"), LONG.replace("d)", "d" * 20 + ", e)"), FILL, id="a few more"),
        pytest.param(SHORT, LONG, FILL + LONG * 2, id="where such lines are the custom"),
        pytest.param(
            LONG.replace(", d)", ", dd)"),
            LONG.replace(", d)", ", dd, eee)"),
            f"{FILL}x = {'1' * 103}\n",
            id="a few more where nobody measured",
        ),
        pytest.param(
            SHORT,
            "    the_offset_of_it = (torch.zeros(3, number, dtype=kind) * half).requires_grad_()\n",
            FILL,
            id="a group that a method is called on",
        ),
        pytest.param(SHORT, LONG.replace(", d)", ", d"), FILL, id="no Python"),
        pytest.param(SHORT, '    x = """' + LONG[8:-1] + '"""\n', FILL, id="a string"),
    ],
)
def test_other_lines_stay(before: str, after: str, fill: str) -> None:
    assert broken(before, after, fill) == after


@pytest.mark.parametrize(("more", "stays"), [("", True), (" of all rows", False)])
def test_a_comment_may_reach_past_a_limit_that_nobody_has_set(more: str, stays: bool) -> None:
    before = "    x = a_call(aaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbb)  # the sum of all\n"
    after = f"    x = a_call(aaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbb, ccc)  # the sum of all{more}\n"
    moved = f"    # the sum of all{more}\n" + after.partition("  #")[0] + "\n"
    assert broken(before, after) == (after if stays else moved)


def test_the_line_of_a_fix_is_broken() -> None:
    body = "    return g(a_mean, torch.zeros(100).to(device), a_further_argument_of_it_all)\n"
    head = "import torch\n" + FILL + "def f(a_mean, device, a_further_argument_of_it_all):\n"
    fixed = fix_source(Source.from_text(head + body), Settings()).source.text
    assert fixed.removeprefix(head) == body.replace(
        "torch.zeros(100).to(device), ", "torch.zeros(100, device=device),\n             "
    )


WHOLE = "    batches = cycle(Loader({arguments}))\n"


def test_a_call_that_is_all_that_another_is_given_is_broken_inside() -> None:
    parts = ["first_dataset_of_all", "batch_size=size_of_a_batch", "drop_last=True", "num_workers=count_of_workers"]
    after = WHOLE.format(arguments=", ".join(parts))
    before = WHOLE.format(arguments=", ".join(parts[:2]))
    inner = "        " + ",\n        ".join(parts) + ","
    assert broken(before, after, CLOSED) == f"    batches = cycle(Loader(\n{inner}\n    ))\n"
    more = after.replace("))\n", ", more=1), 2)\n")
    assert broken(before, more, CLOSED) != f"    batches = cycle(Loader(\n{inner}\n    ))\n"


@pytest.mark.parametrize(
    ("front", "after"),
    [
        (
            "labels, others = torch.ones(known.shape[:2] + (1,), device=known.device), ",
            "torch.zeros(\n            others_of_it.shape, device=known.device)",
        ),
        ("labels = ", "torch.zeros(others_of_it.shape, device=known.device)"),
    ],
)
def test_no_argument_is_put_far_to_the_right_under_a_single_one(front: str, after: str) -> None:
    line = f"        {front}torch.zeros(others_of_it.shape{{device}})\n"
    made = broken(line.format(device=""), line.format(device=", device=known.device"))
    assert made == f"        {front}{after}\n"


CHAIN = "    mask = torch.arange(the_largest_number, device=device).view(1, -1).repeat(points, 1)\n"


def test_a_chain_of_calls_gets_a_line_for_each_where_brackets_close_on_lines_of_their_own() -> None:
    lines = ["torch.arange(the_largest_number, device=device)", ".view(1, -1)", ".repeat(points, 1)"]
    inner = "\n".join(f"        {line}" for line in lines)
    assert broken(SHORT, CHAIN, CLOSED) == f"    mask = (\n{inner}\n    )\n"
    returned = CHAIN.replace("mask =", "return")
    assert broken(SHORT, returned, CLOSED) == f"    return (\n{inner}\n    )\n"


@pytest.mark.parametrize("end", [".T\n", " + 1\n", "\n"], ids=["an attribute", "a sum", "elsewhere"])
def test_no_line_is_broken_between_two_short_arguments(end: str) -> None:
    after = CHAIN.replace("\n", end)
    assert "(points,\n" not in broken(SHORT, after, FILL if end == "\n" else CLOSED)


def test_arguments_on_a_further_line_are_broken_whatever_follows_their_bracket() -> None:
    before = (
        "    loader = Loader(\n        first_dataset_of_all, batch_size=32, shuffle=False) if is_wanted else None\n"
    )
    after = before.replace("shuffle=False", "shuffle=False, num_workers=count_of_workers")
    assert broken(before, after) == after.replace("False, ", "False,\n        ")
