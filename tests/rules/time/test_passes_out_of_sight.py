"""TIME01 counts a pass as queued where it is seen to hand tensors on, and where there is a GPU to compute it."""

from __future__ import annotations

import pytest

from tests.support import findings

PASS = """
import time

import torch

def measure(model: torch.nn.Module, x):
    x = x.cuda()
    start = time.time()
    out = model{method}(x)
    print(time.time() - start)
"""


@pytest.mark.parametrize(("method", "count"), [("", 1), (".forward", 1), (".inference", 0), (".predict_action", 0)])
def test_a_method_out_of_sight_may_have_waited(method: str, count: int) -> None:
    assert len(findings(PASS.format(method=method), "TIME01")) == count


def test_a_method_in_sight_that_runs_a_layer_of_its_own_has_not_waited() -> None:
    code = """
        import time

        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(3, 2)

            def inference(self, x):
                return self.layer(x)

        model, x = Net().cuda(), torch.ones(3).cuda()
        start = time.time()
        out = model.inference(x)
        print(time.time() - start)
        """
    assert len(findings(code, "TIME01")) == 1


BRANCH = """
import time

import torch
from nets import Net

def measure(model: torch.nn.Module, x, device):
    if {test}:
        model(x.cuda())
    else:
        start = time.time()
        model(x)
        print(time.time() - start)

measure(Net().cuda(), torch.ones(3), torch.device("cuda"))
"""


@pytest.mark.parametrize(
    ("test", "count"),
    [
        ("len(x) > 3", 1),
        ('device.type == "cuda"', 0),
        ('device.type != "cpu"', 0),
        ("x.is_cuda", 0),
        ("'cuda' in str(device)", 0),
        ("str(device).startswith('cuda')", 0),
        ("device.startswith('cuda')", 0),
        ("device.startswith('mps')", 1),
    ],
)
def test_the_branch_without_a_gpu(test: str, count: int) -> None:
    assert len(findings(BRANCH.format(test=test), "TIME01")) == count


SAMPLE = """
import time

import torch
from nets import Net, read

class Sounds(torch.utils.data.Dataset):
    def __init__(self):
        self.encoding = torch.nn.Sequential(Net())

    def {name}(self, i):
        start = time.time()
        sound = self.encoding(read(i))
        return sound, time.time() - start

model = Net().cuda()
"""


@pytest.mark.parametrize(("name", "count"), [("encoded", 1), ("__getitem__", 0)])
def test_samples_are_made_on_the_host(name: str, count: int) -> None:
    assert len(findings(SAMPLE.format(name=name), "TIME01")) == count


@pytest.mark.parametrize(
    ("called", "count"),
    [
        ("model.encode(sentences)", 0),
        ("model.encode_query(sentences, convert_to_tensor=False)", 0),
        ("model.encode(sentences, convert_to_tensor=True)", 1),
        ("model.encode(sentences, convert_to_numpy=False)", 1),
        ("model.encode(sentences, convert_to_numpy=True, output_value='sentence_embedding')", 0),
        ("model.encode(sentences, output_value='token_embeddings')", 1),
        ("model(sentences)", 1),
    ],
)
def test_sentence_transformers_hand_arrays_over_unless_they_are_asked_for_tensors(called: str, count: int) -> None:
    code = f"""
        import time

        import torch
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer("small").cuda()
        model.eval()
        sentences = open("sentences")
        start = time.time()
        {called}
        print(time.time() - start)
        """
    assert len(findings(code, "TIME01")) == count
