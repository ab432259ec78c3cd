"""VEC01, VEC06: parts of a row that a mask picks or that leave one element out, and elements in steps."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.support import findings

MINED = """
import torch
import torch.nn.functional as F


def mined(features: torch.Tensor, labels: torch.Tensor):
    dist = torch.cdist(features, features)
    same = labels[:, None] == labels[None]
    far, near = [], []
    for i in range(features.size(0)):
{body}
    return F.margin_ranking_loss(torch.{join}(near), torch.{join}(far), torch.ones(len(far)))
"""


@pytest.mark.parametrize(
    ("body", "join"),
    [
        ("far.append(dist[i][same[i]].max())\nnear.append(dist[i][same[i] == 0].min())", "stack"),
        ("far.append(dist[i][same[i]].max().unsqueeze(0))\nnear.append(dist[i][~same[i]].min().unsqueeze(0))", "cat"),
        ("far.append(torch.max(dist[i, same[i]]))\nnear.append(torch.amin(dist[i, ~same[i]]))", "stack"),
    ],
)
def test_the_greatest_of_what_a_mask_picks_of_each_row(body: str, join: str) -> None:
    (found,) = findings(MINED.format(body=indent(body, " " * 8), join=join), "VEC01", "VEC02")
    assert "`dist`" in found.message or "`same`" in found.message


@pytest.mark.parametrize(
    ("body", "join"),
    [
        ("far.append(dist[i][same[i]].argmax())\nnear.append(dist[i][~same[i]].argmin())", "stack"),
        ("far.append(dist[i][same[i]].median())\nnear.append(dist[i][~same[i]].median())", "stack"),
        ("far.append(dist[i][same[i]].sort()[0])\nnear.append(dist[i][~same[i]].sort()[0])", "cat"),
    ],
)
def test_what_a_mask_picks_and_that_is_no_number(body: str, join: str) -> None:
    assert not findings(MINED.format(body=indent(body, " " * 8), join=join), "VEC01", "VEC02", "VEC06")


GROUPS = """
import torch


def peaks(scores: torch.Tensor, labels: torch.Tensor, count: int):
    best = []
    for c in range(count):
        best.append(scores[labels == c].max())
    return torch.stack(best)
"""


def test_groups_by_label_have_sizes_of_their_own() -> None:
    assert not findings(GROUPS, "VEC01", "VEC02")


OTHERS = """
import torch


def others(scores: torch.Tensor, labels: torch.Tensor, lengths: list[int]):
    rows, columns = scores.shape
    return torch.{join}([{element} for i, y in enumerate(labels)])
"""


@pytest.mark.parametrize(
    ("join", "element"),
    [
        ("cat", "torch.cat((scores[i, :y], scores[i, y + 1 :])).unsqueeze(0)"),
        ("stack", "torch.cat([scores[i][:y], scores[i][y + 1 :]])"),
        ("stack", "torch.cat((scores[i, :i], scores[i, i + 1 :])).logsumexp(0)"),
        ("stack", "torch.cat((scores[i, :y], scores[i, 1 + y :]), dim=0).exp().sum()"),
    ],
)
def test_each_row_without_one_element(join: str, element: str) -> None:
    (found,) = findings(OTHERS.format(join=join, element=element), "VEC01", "VEC06")
    assert found.code == "VEC06"


@pytest.mark.parametrize(
    ("join", "element"),
    [
        ("cat", "torch.cat((scores[i, :y], scores[i, y + 2 :]))"),
        ("cat", "torch.cat((scores[i, :y], scores[i, : y + 1]))"),
        ("cat", "torch.cat((scores[i, :y], labels[y + 1 :]))"),
        ("stack", "torch.cat((scores[:i], scores[i + 1 :])).mean(0)"),
        ("cat", "torch.cat((scores[i, : lengths[i]], scores[i, y + 1 :]))"),
    ],
)
def test_pieces_of_which_none_is_left_out(join: str, element: str) -> None:
    assert not findings(OTHERS.format(join=join, element=element), "VEC01", "VEC06")


PLACES = """
import math

import torch


def encoded(places: torch.Tensor, width: int, size: int):
    batch, length, _ = places.shape
    out = torch.zeros(batch, length, width)
    for b in range(batch):
        for t in range(length):
            x = places[b, t, 0]
            for i in range(0, width, {step}):
                {fill}
    return out
"""


@pytest.mark.parametrize(
    ("step", "fill"), [("2", "out[b, t, i] = math.sin(x / 100 ** (i / width))"), ("2", "out[b, t, i + 1] = x * i")]
)
def test_every_other_element_of_each_row(step: str, fill: str) -> None:
    (found,) = findings(PLACES.format(step=step, fill=fill), "VEC01")
    assert "`out`" in found.message or "`places`" in found.message


@pytest.mark.parametrize(
    ("step", "fill"),
    [
        ("size", "out[b, t, i] = x * i"),
        ("2", "out[b, t, i : i + 2] = x * i"),
        ("4", "out[b, t, i:] = torch.sin(places[b, t, 0] * i)"),
    ],
)
def test_pieces_of_each_row_that_are_made_one_by_one(step: str, fill: str) -> None:
    assert not findings(PLACES.format(step=step, fill=fill), "VEC01", "VEC02")


HANDED = """
import torch
from torch import nn


class Similarity(nn.Module):
    def similarities(self, rows, centroids):
        found = []
        for row in rows:
            found.append(torch.mv(centroids, row) / row.norm())
        return torch.stack(found)

    def forward(self, rows):
        {first}
        return self.similarities(rows, centroids)
"""


@pytest.mark.parametrize(
    "first", ["centroids = rows.view(-1, rows.size(-1))", "n = rows.size(0)\n        centroids = torch.eye(n)"]
)
def test_what_the_caller_uses_as_a_tensor_is_one(first: str) -> None:
    assert len(findings(HANDED.format(first=first), "LIN01", "VEC01", "VEC02")) == 1


@pytest.mark.parametrize(
    "first", ["centroids = torch.stack(rows)", "centroids = torch.cat(list(rows))", "centroids = self.centroids"]
)
def test_what_the_caller_may_hand_on_as_a_list(first: str) -> None:
    assert not findings(HANDED.format(first=first), "LIN01", "VEC01", "VEC02")


PADDED = """
import torch


def means(frames: torch.Tensor, lengths: torch.Tensor):
    batch, channels, steps = frames.shape
    return torch.stack([{element} for i, n in enumerate(lengths)])
"""


@pytest.mark.parametrize(
    "element",
    [
        "torch.mean(frames[i][:, 0:n], 1)",
        "torch.mean(frames[i, :, :n], dim=1)",
        "frames[i][:, :n].mean(1)",
        "frames[i, 0, :n].sum(0)",
        "torch.sum(frames[i][:n], 0)",
    ],
)
def test_the_mean_of_each_row_up_to_a_length_of_its_own(element: str) -> None:
    (found,) = findings(PADDED.format(element=element), "VEC01", "VEC06")
    assert found.code == "VEC06"


@pytest.mark.parametrize(
    "element",
    [
        "torch.mean(frames[i][:, 0:n], 0)",
        "torch.mean(frames[i, :, :n], dim=0)",
        "frames[i][:, :n].mean(0)",
        "torch.max(frames[i][:, 0:n], 1)",
        "frames[i, :n, :n].sum(0)",
        "torch.mean(frames[i][:, 1:n:2], 0)",
    ],
)
def test_what_is_as_long_as_each_row_says(element: str) -> None:
    assert not findings(PADDED.format(element=element), "VEC01", "VEC06")


ROWS_OF_ROWS = """
import torch


def similarities(speakers: torch.Tensor, centroids: torch.Tensor):
    found = []
    for speaker in {iterable}:
        for utterance in speaker{part}:
            found.append(torch.mv(centroids, utterance) / utterance.norm())
    return torch.stack(found)
"""


@pytest.mark.parametrize(
    ("iterable", "part", "count"),
    [("speakers", "", 1), ("speakers", ".tolist()", 0), ("centroids.items()", "", 0), ("load(speakers)", "", 0)],
)
def test_rows_of_rows(iterable: str, part: str, count: int) -> None:
    code = ROWS_OF_ROWS.format(iterable=iterable, part=part)
    assert len(findings(code, "LIN01", "VEC01", "VEC02")) == count


JOINED = """
import torch


def spread(x: torch.Tensor, labels: torch.Tensor, count: int):
    dist = torch.cdist(x, x)
    mask = labels[:, None] == labels[None]
    found = []
    for i in range(x.size(0)):
        value = {value}
        found.append(value)
    {use}
"""


@pytest.mark.parametrize(
    ("value", "use"),
    [
        ("dist[i][mask[i]].clamp(min=1e-12)", "found = torch.cat(found)\n    return found.mean()"),
        ("dist[i, mask[i]] * 2", "return torch.cat(found, dim=0).mean()"),
        ("torch.masked_select(dist[i], mask[i])", "return torch.cat(found).mean()"),
        ("x[i][mask[i, 0]]", "return torch.cat(found)"),
    ],
)
def test_what_a_mask_picks_of_each_row_joined(value: str, use: str) -> None:
    (found,) = findings(JOINED.format(value=value, use=use), "VEC01")
    assert "x[mask]" in found.message


@pytest.mark.parametrize(
    ("value", "use"),
    [
        ("dist[i][mask[i]].sort()[0]", "return torch.cat(found)"),
        ("dist[i][mask[i]].softmax(0)", "return torch.cat(found)"),
        ("dist[i][mask[i]]", "return found"),
        ("dist[i][mask[i]]", "return torch.cat(found), found[0]"),
        ("dist[i][mask[i]]", "return torch.stack(found)"),
        ("x[i, :, mask[i]]", "return torch.cat(found)"),
        ("dist[i][labels == i]", "return torch.cat(found)"),
        ("dist[i][mask[i]].cumsum(0)", "return torch.cat(found)"),
    ],
)
def test_what_a_mask_picks_of_each_row_and_that_stays_apart(value: str, use: str) -> None:
    assert not findings(JOINED.format(value=value, use=use), "VEC01", "VEC02")
