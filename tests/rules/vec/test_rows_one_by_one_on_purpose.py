"""VEC01, VEC02, VEC06: rows that are taken one by one, or in blocks, for want of memory."""

from __future__ import annotations

import pytest

from tests.support import findings

LIKELIHOOD = """
    import torch
    import torch.nn.functional as F

    def log_likelihood(logits: torch.Tensor, labels: torch.Tensor):
        {above}
        found = []
        for row, label in zip(logits, labels):{beside}
            found.append(F.log_softmax(row, dim=-1).gather(-1, label.unsqueeze(-1)).squeeze(-1))
        return torch.stack(found)

    def normalisers(logits: torch.Tensor):
        {above}
        return torch.stack([torch.logsumexp(row, dim=-1) for row in logits]){beside}
"""


@pytest.mark.parametrize(
    ("above", "beside", "codes"),
    [
        ("pass", "", ["VEC01", "VEC06"]),
        ("pass", "  # the memory of a bfloat16 softmax would be too much at once", []),
        ("pass", "  # loop to reduce peak mem consumption", []),
        ("pass", "  # remember that rows are samples", ["VEC01", "VEC06"]),
        ("memory = 1", "", ["VEC01", "VEC06"]),
    ],
)
def test_a_loop_that_is_said_to_spare_memory(above: str, beside: str, codes: list[str]) -> None:
    found = findings(LIKELIHOOD.format(above=above, beside=beside), "VEC01", "VEC06")
    assert [finding.code for finding in found] == codes


def test_a_comment_above_the_loop_says_so_too() -> None:
    code = """
        import torch

        def normalisers(logits: torch.Tensor):
            found = []
            # Row by row, or
            # a long context runs out of memory.
            for row in logits:
                found.append(torch.logsumexp(row, dim=-1))
            return torch.stack(found)
    """
    assert findings(code, "VEC01") == []
    assert len(findings(code.replace("out of memory", "for long"), "VEC01")) == 1


ENCODING = """
    import torch

    class Encoder(torch.nn.Module):
        def forward(self, x):
            return self.net(x)

    @torch.no_grad()
    def encode(encoder: Encoder, images: torch.Tensor, size):
        found = []
        for i in range(0, len(images), {step}):
            taken = images[i : i + size] if size > 1 else images[i].unsqueeze(0)
            found.append(encoder({given}))
        return torch.cat(found)
"""


@pytest.mark.parametrize(
    ("step", "given", "count"),
    [("size", "taken", 0), ("size", "images[i].unsqueeze(0)", 0), ("1", "images[i][None]", 1)],
)
def test_a_loop_that_takes_steps_takes_blocks(step: str, given: str, count: int) -> None:
    assert len(findings(ENCODING.format(step=step, given=given), "VEC02")) == count


LAYER = """
    import torch

    @torch.no_grad()
    def run(layer: torch.nn.Module, inputs: torch.Tensor):
        layer = layer.to("cuda")
        outputs = torch.zeros_like(inputs)
        for j in range(len(inputs)):
            outputs[j] = layer(inputs[j].unsqueeze(0))[0]
        layer.cpu()
        {after}
        return outputs
"""


@pytest.mark.parametrize(("after", "count"), [("torch.cuda.empty_cache()", 0), ("torch.cuda.synchronize()", 1)])
def test_who_takes_layers_to_the_gpu_one_by_one_has_no_memory_for_all_rows(after: str, count: int) -> None:
    assert len(findings(LAYER.format(after=after), "VEC02")) == count


TWO_WAYS = """
import torch

class Codec(torch.nn.Module):
    def __init__(self, inner: torch.nn.Module):
        super().__init__()
        self.inner = self.other = inner

    def decode(self, rows: torch.Tensor, one_by_one):
        with torch.no_grad():
            if one_by_one:
                parts = []
                for i in range(rows.shape[0]):
                    parts.append(self.{first}(rows[i : i + 1]))
                return torch.cat(parts)
            else:
                return self.inner(rows)
"""


@pytest.mark.parametrize(
    ("first", "test", "count"),
    [
        ("inner", "one_by_one", 0),
        ("other", "one_by_one", 1),
        ("inner", "len(rows) > 64", 0),
        ("inner", "len(rows.shape) == 3", 1),
        ("inner", "rows.dim() == 3", 1),
    ],
)
def test_whoever_runs_it_says_whether_the_rows_go_one_by_one(first: str, test: str, count: int) -> None:
    code = TWO_WAYS.replace("if one_by_one", f"if {test}")
    assert len(findings(code.format(first=first), "VEC02")) == count


STREAMED = """
import torch

@torch.no_grad()
def advance(layer: torch.nn.Module, rows: torch.Tensor, out: torch.Tensor):
    for i in range(len(rows)):
        out[i].copy_({}, non_blocking=True)
"""


@pytest.mark.parametrize(
    ("computed", "count"), [('layer(rows[i].to("cuda").unsqueeze(0))[0]', 0), ("layer(rows[i].unsqueeze(0))[0]", 1)]
)
def test_rows_that_go_to_the_device_and_back_need_not_fit_there(computed: str, count: int) -> None:
    assert len(findings(STREAMED.format(computed), "VEC02")) == count


@pytest.mark.parametrize(("each", "count"), [("float(f'{share * 100:.2f}')", 0), ("float(share * 100)", 1)])
def test_each_row_becomes_a_text_of_its_own(each: str, count: int) -> None:
    code = f"""
        import torch

        def show(net, x, log):
            shares = net(x).softmax(-1)[0]
            log([{each} for share in shares])
        """
    assert len(findings(code, "VEC06")) == count
