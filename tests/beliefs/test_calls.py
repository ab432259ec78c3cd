"""What the model believes of calls of torch holds, for the functions and methods that programs call most."""

from __future__ import annotations

import warnings

import pytest
import torch

from tests.beliefs.calls import false_beliefs
from torchlint.semantics import torch_api

NAMES = """
torch.Tensor.sum torch.Tensor.mean torch.Tensor.max torch.Tensor.argmax torch.Tensor.std torch.Tensor.norm
torch.Tensor.view torch.Tensor.reshape torch.Tensor.permute torch.Tensor.squeeze torch.Tensor.unsqueeze
torch.Tensor.expand torch.Tensor.to torch.Tensor.type torch.Tensor.type_as torch.Tensor.size torch.Tensor.cumsum
torch.Tensor.kthvalue torch.Tensor.mode torch.Tensor.count_nonzero torch.Tensor.unique torch.Tensor.tolist
torch.Tensor.masked_fill torch.Tensor.index_select torch.Tensor.add_ torch.Tensor.detach torch.Tensor.nonzero
torch.arange torch.cat torch.stack torch.where torch.max torch.matmul torch.kron torch.unique torch.linalg.svd
torch.linalg.eigh torch.linalg.inv torch.linalg.norm torch.nn.functional.softmax torch.nn.functional.linear
torch.nn.functional.cross_entropy torch.nn.functional.mse_loss torch.nn.functional.max_pool1d
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_what_the_model_makes_of_a_call_is_what_torch_makes_of_it(name: str) -> None:
    entry = torch_api.lookup(name)
    assert entry is not None
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        taken, found = false_beliefs(entry)
    assert taken
    assert found == []
