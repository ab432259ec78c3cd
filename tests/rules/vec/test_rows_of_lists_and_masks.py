"""VEC01, VEC02, LIN01: lists that a loop has made of rows, masks that add up, parts of a list that are tensors."""

from __future__ import annotations

import pytest

from tests.support import findings

LISTED = """
import torch
from torch import nn

distance = nn.L1Loss()


def roughness(x: torch.Tensor, lengths: torch.Tensor):
    steps = []
    for i in range(x.shape[0] - 1):
        {append}
    loss = 0
    for i in range(len(steps) - 1):
        loss += distance(steps[i], steps[i + 1])
    return loss
"""


@pytest.mark.parametrize(
    ("append", "count"),
    [
        ("steps.append(x[i + 1] - x[i])", 1),
        ("steps.append(x[i, : lengths[i]])", 0),
        ("if lengths[i] > 0: steps.append(x[i])", 0),
        ("steps.append(x[i].sum().item())", 0),
        ("steps.append(load(i))", 0),
        ("steps.append(steps[-1] + x[i] if steps else x[i])", 0),
    ],
)
def test_a_list_with_an_element_of_each_row_has_rows_of_one_shape(append: str, count: int) -> None:
    found = [one for one in findings(LISTED.format(append=append), "VEC02") if one.line == 12]
    assert len(found) == count


def test_the_loop_that_makes_the_list_is_one_of_its_own() -> None:
    """differences of neighbours that are only looked at one by one"""
    found = findings(LISTED.format(append="steps.append(x[i + 1] - x[i])"), "VEC01", "VEC02")
    assert [(one.code, one.line) for one in found] == [("VEC01", 9), ("VEC02", 12)]


ROUNDS = """
import torch
from torch import nn

distance = nn.L1Loss()


def roughness(batches: list[torch.Tensor]):
    steps = []
    for batch in batches:
        rows = torch.relu(batch)
        for i in range(rows.shape[0]):
            steps.append(rows[i])
    loss = 0
    for i in range(len(steps) - 1):
        loss += distance(steps[i], steps[i + 1])
    return loss
"""


def test_a_list_of_several_rounds_may_have_rows_of_several_shapes() -> None:
    assert not findings(ROUNDS, "VEC02")


MASKED = """
import torch


def covered(points: torch.Tensor, boxes: torch.Tensor):
    {start}
    for i in range(len(boxes)):
        {mark}
    return inside
"""


@pytest.mark.parametrize(
    ("start", "mark", "count"),
    [
        ("inside = torch.zeros(len(points), dtype=torch.bool)", "inside |= points > boxes[i, 0]", 1),
        ("inside = torch.zeros(len(points), dtype=torch.bool)", "inside = inside | (points > boxes[i, 0])", 1),
        ("inside = torch.ones(len(points), dtype=torch.bool)", "inside = inside & (points > boxes[i, 0])", 1),
        ("inside = torch.ones(len(points), dtype=torch.bool)", "inside ^= points > boxes[i, 0] + inside", 0),
        ("inside = set()", "inside |= set(boxes[i].tolist())", 0),
        ("inside = set()", "inside = inside | set(boxes[i].tolist())", 0),
    ],
)
def test_a_mask_that_each_row_adds_to_needs_no_loop(start: str, mark: str, count: int) -> None:
    assert len(findings(MASKED.format(start=start, mark=mark), "VEC01")) == count


CLASSES = """
import torch


def scores(x: torch.Tensor, precision: torch.Tensor, layer: int):
    tables = {tables}
    for i in range(10):
        rest = x - tables[layer][i]
        term = (rest @ precision * rest).sum(1, keepdim=True)
        if i == 0:
            score = term
        else:
            score = torch.cat((score, term), 1)
    return score
"""


@pytest.mark.parametrize(
    ("tables", "count"),
    [
        ("[torch.zeros(10, 64), torch.zeros(10, 128)]", 1),
        ("[[load(i) for i in range(10)], [load(i) for i in range(20)]]", 0),
    ],
)
def test_rows_of_a_tensor_of_a_list_are_rows(tables: str, count: int) -> None:
    assert len(findings(CLASSES.format(tables=tables), "LIN01")) == count


DRAWN = """
import torch
from torch.distributions import Categorical


def one_hot(logits):
    words = Categorical(logits=logits).{method}
    marks = torch.zeros_like(logits)
    for n, word in enumerate(words):
        marks[n, int(word)] = 1
    return marks
"""


@pytest.mark.parametrize(("method", "count"), [("sample()", 1), ("batch_shape", 0)])
def test_what_a_distribution_draws_is_a_tensor(method: str, count: int) -> None:
    assert len(findings(DRAWN.format(method=method), "VEC01")) == count


GROUPS = """
import torch


def overlap(box, target):
    return torch.min(box[:, 2:], target[:, 2:]).prod(1)


def responsible(predicted: torch.Tensor, wanted: torch.Tensor, count: int):
    mask = torch.zeros(len(predicted), dtype=torch.bool)
    best = torch.zeros(len(predicted))
    for i in range(0, len(predicted), count):
        corners = torch.zeros(count, 4)
        corners[:, :2] = predicted[{cut}, :2] - 0.5
        corners[:, 2:] = predicted[{cut}, :2] + 0.5
        value, place = overlap(corners, wanted[{alone}].view(-1, 4)).max(0)
        mask[i + place] = 1
        best[i + place] = value
    return mask, best
"""


@pytest.mark.parametrize(
    ("cut", "alone", "count"),
    [
        ("i : i + count", "i", 1),
        ("i:count + i", "i", 1),
        ("i : i + count", "i : i + count", 0),  # a batch, perhaps
        ("i : i + 2 * count", "i", 0),
    ],
)
def test_groups_of_rows_are_no_batches(cut: str, alone: str, count: int) -> None:
    assert len(findings(GROUPS.format(cut=cut, alone=alone), "VEC02")) == count


FLOWS = """\
import torch
from torch import nn


class Flow(nn.Module):
    def forward(self, x, tested=False):
        steps = []
        for _ in range(12):
            x = self.update(x)
            steps.append(x)
        if tested:
            return x, {pair}
        return {steps}

    def training_step(self, batch: torch.Tensor):
        return loss(self(batch), batch)


def loss(steps: torch.Tensor, wanted):
    total = 0.0
    for i in range(len(steps)):
        total += 0.8 ** (len(steps) - i - 1) * (steps[i] - wanted).abs().mean()
    return total
"""


@pytest.mark.parametrize(("pair", "steps", "count"), [("x.mean()", "steps", 0), ("x.mean()", "torch.stack(steps)", 1)])
def test_what_a_network_returns_is_a_list_whatever_an_annotation_says(pair: str, steps: str, count: int) -> None:
    assert len(findings(FLOWS.format(pair=pair, steps=steps), "VEC01")) == count


@pytest.mark.parametrize(
    ("received", "count"),
    [
        ("dist.all_gather_object(shapes, local)", 0),
        ("dist.broadcast_object_list(shapes, 0)", 0),
        ("dist.gather_object(local, shapes)", 0),
        ("dist.all_gather(shapes, local)", 1),
        ("print(shapes)", 1),
    ],
)
def test_objects_of_other_processes_take_the_places_of_tensors(received: str, count: int) -> None:
    code = f"""
        import torch
        import torch.distributed as dist

        def sizes(local, world):
            shapes = [torch.zeros(4, device="cuda") for _ in range(world)]
            {received}
            return [sum(each) for each in shapes]
    """
    assert len(findings(code, "VEC01")) == count


@pytest.mark.parametrize(
    ("lines", "count"), [("file.read().splitlines()", 0), ("sorted(file)", 0), ("pickle.load(file)", 1)]
)
def test_lines_of_a_text_are_no_rows(lines: str, count: int) -> None:
    code = f"""
        import pickle
        import numpy as np
        import torch

        def matrix(path, nodes):
            adjacent = np.zeros((nodes, nodes))
            with open(path) as file:
                lines = {lines}
            for ends in lines:
                i = int(ends[0])
                j = int(ends[1])
                adjacent[i - 1, j - 1] = 1
            return torch.from_numpy(adjacent)
    """
    assert len(findings(code, "VEC01")) == count


@pytest.mark.parametrize(
    ("moved", "count"), [("images.cpu().numpy()", 0), ("images.cpu().tolist()", 0), ("images.cpu().float()", 1)]
)
def test_a_tensor_that_may_be_an_array_by_then(moved: str, count: int) -> None:
    code = f"""\
import numpy as np
import torch

def plot(labels: dict, images: torch.Tensor | np.ndarray | None = None):
    images = labels.get("img", images)
    if len(images) and isinstance(images, torch.Tensor):
        images = {moved}
    _, _, h, w = images.shape
    mosaic = np.full((h * 4, w * 4, 3), 255)
    for i in range(len(images)):
        x, y = w * i, h * i
        mosaic[y : y + h, x : x + w, :] = images[i].transpose(1, 2, 0)
    return mosaic
"""
    assert len(findings(code, "VEC01")) == count


ASSERTED = """
    import torch

    def hidden_loss(states, matches, mask):
        {assertion}
        count = mask.sum() * states[0].size(-1)
        kept = torch.stack([states[i] for i in range(len(matches))])
        return kept.sum() / count
"""


@pytest.mark.parametrize(
    ("assertion", "count"),
    [
        ('assert not isinstance(states, torch.Tensor), f"a tensor of {states.shape}"', 0),
        ('assert not torch.is_tensor(states) and len(states), f"a tensor of {states.shape}"', 0),
        ('assert isinstance(states, torch.Tensor), f"no tensor, {type(states.shape)}"', 1),
        ('assert mask is not None, f"no mask for {states.shape}"', 1),
    ],
)
def test_what_is_asserted_to_be_no_tensor_is_none(assertion: str, count: int) -> None:
    assert len(findings(ASSERTED.format(assertion=assertion), "VEC06")) == count


FIRST = """
    import torch

    def first(logits: torch.Tensor, texts, n):
        count = {count}
        found = []
        for i in range({stop}):
            found.append(torch.argmax(logits[i], dim=-1)[len(texts[i]) :].tolist())
        return found
"""


@pytest.mark.parametrize(
    ("count", "stop", "reported"),
    [
        ("min(logits.shape[0], 3)", "count", 0),
        ("logits.shape[0]", "min(3, n)", 0),
        ("min(logits.shape[0], 300)", "count", 1),
        ("min(logits.shape[0], n)", "count", 1),
        ("max(logits.shape[0], 3)", "count", 1),
        ("min(texts, default=0)", "count", 1),
    ],
)
def test_the_first_few_rows_are_not_worth_a_word(count: str, stop: str, reported: int) -> None:
    assert len(findings(FIRST.format(count=count, stop=stop), "VEC01")) == reported


LISTED_BY_THEN = """
    import torch

    def kept(ids, mask):
        if isinstance(ids, torch.Tensor):
            ids = ids.{ids}
        if isinstance(mask, torch.Tensor):
            mask = mask.{mask}
        found = []
        for i in range(len(ids)):
            found.append([ids[i][j] for j in range(len(ids[i])) if mask[i][j] == 1])
        return found
"""


@pytest.mark.parametrize(
    ("ids", "mask", "count"),
    [("cpu().numpy()", "float().cpu().tolist()", 0), ("tolist()", "tolist()", 0), ("float()", "float()", 1)],
)
def test_a_tensor_that_is_a_list_by_then(ids: str, mask: str, count: int) -> None:
    assert len(findings(LISTED_BY_THEN.format(ids=ids, mask=mask), "VEC01")) == count
