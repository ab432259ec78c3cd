"""The table of torch's names: it is what the installed torch gives, and what it says holds when torch is called."""

from __future__ import annotations

import pytest
import torch

from torchlint.semantics import torch_api
from torchlint.semantics.names import canonical
from torchlint.semantics.torch_api import Entry

DESCRIBED = torch.__version__.partition("+")[0] == torch_api.version()
described = pytest.mark.skipif(not DESCRIBED, reason="the table describes another torch")
UNCALLED = {"data_ptr", "backward", "retain_grad", "share_memory_", "pin_memory", "cuda", "xpu", "ipu", "mtia"}


def callable_methods() -> list[Entry]:
    """Methods that measured facts are known of and that a tensor alone can be called with."""
    rows = [row for row in torch_api.entries("torch.Tensor") if row.kind == "method" and row.results]
    return [row for row in rows if "removed" not in row.flags and row.short not in UNCALLED]


def call(row: Entry, tensor: torch.Tensor) -> object:
    try:
        return getattr(tensor, row.short)()
    except (TypeError, RuntimeError, IndexError, AttributeError, ValueError, AssertionError):
        return None  # needs arguments, or numbers of another kind


def storage(tensor: torch.Tensor) -> int | None:
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else None


@described
@pytest.mark.filterwarnings("ignore")
def test_what_is_said_of_methods_holds_when_they_are_called() -> None:
    called = 0
    for row in callable_methods():
        made = torch.rand(3, 3, generator=torch.Generator().manual_seed(1)).requires_grad_()
        tensor = made * 1  # no leaf, which in-place methods would refuse
        state, place = torch.get_rng_state(), storage(tensor)
        result = call(row, tensor)
        if not isinstance(result, torch.Tensor):
            continue
        called += 1
        told = f"{row}: {result.shape}, {result.dtype}"
        assert row.returns_tensors or ("tensor",) in row.results, told
        assert row.grad != "no" or not result.requires_grad, told
        assert row.grad != "yes" or result.requires_grad or not result.dtype.is_floating_point, told
        assert row.rank != "keep" or result.dim() == 2, told
        assert row.rank != "reduce" or result.dim() == 0, told
        assert row.dtype not in ("same", "inexact", "real", "inexact-real") or result.dtype is torch.float32, told
        assert row.dtype not in ("bool", "int64") or str(result.dtype) == f"torch.{row.dtype}", told
        assert ("inplace" in row.flags) == (result is tensor and row.short.endswith("_")), told
        if "inplace" not in row.flags and not row.may("view"):
            assert storage(result) != place, told
        if "view" in row.flags:
            assert storage(result) == place, told
        assert row.may("random") == (not torch.equal(state, torch.get_rng_state())), told
    assert called > 150


@described
@pytest.mark.filterwarnings("ignore")
def test_rows_of_a_sample_are_what_the_generator_makes_of_the_installed_torch() -> None:
    pytest.importorskip("expecttest")  # torch's own tests need it, which the samples come from
    from tools.torch_api.rows import COLUMNS, table

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    lines = torch_api._lines()
    names = sorted(lines)[::101]
    try:
        made = table(frozenset(names))
    finally:
        torch.set_num_threads(threads)
    assert [row["name"] for row in made] == names
    for row in made:
        assert "\t".join(row[column] for column in COLUMNS).rstrip("\t") == lines[row["name"]]


def test_paths_of_one_object_have_one_name() -> None:
    assert canonical("torch.nn.modules.loss.CrossEntropyLoss") == "torch.nn.CrossEntropyLoss"
    assert canonical("torch.nn.modules.linear.Linear.forward") == "torch.nn.Linear.forward"
    assert canonical("torch.utils.data.dataloader.DataLoader") == "torch.utils.data.DataLoader"
    assert canonical("torch.optim.adamw.AdamW") == "torch.optim.AdamW"
    assert canonical("torchvision.models.resnet18") == "torchvision.models.resnet18"


def test_a_star_import_brings_what_torch_exports() -> None:
    assert {"tensor", "no_grad", "sum"} <= torch_api.star_exports("torch")
    assert "Variable" in torch_api.star_exports("torch.autograd")
    assert "symeig" not in torch_api.star_exports("torch")  # removed


def test_arguments_are_counted_after_the_first_tensor() -> None:
    assert torch_api.position("torch.Tensor.sum", "dim") == 0
    assert torch_api.position("torch.sum", "dim") == 0
    assert torch_api.position("torch.Tensor.norm", "dim") == 1
    assert torch_api.position("torch.Tensor.sum", "nothing") is None


def test_what_torch_has_not_has_no_row() -> None:
    assert torch_api.lookup("torch.nothing") is None
    assert torch_api.method("shape") is None  # an attribute
    assert torch_api.attribute("shape") is not None
