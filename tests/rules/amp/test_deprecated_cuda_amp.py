"""AMP01: the mixed precision API of one device. Old and new spelling are run, and make the same objects."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from tests.support import findings, fixed
from torchlint.finding import Applicability

# `made` holds what is compared: contexts, scalers, results.
CASES = {
    "no argument": (
        "from torch.cuda.amp import autocast\nimport torch\nmade = [autocast()]\n",
        'import torch\nmade = [torch.amp.autocast("cuda")]\n',
    ),
    "an alias of the class": (
        "import torch\nfrom torch.cuda.amp import autocast as cast\nmade = [cast(False)]\n",
        'import torch\nmade = [torch.amp.autocast("cuda", enabled=False)]\n',
    ),
    "an alias of the module": (
        "import torch\nfrom torch.cuda import amp\nmade = [amp.autocast(enabled=False), amp.GradScaler()]\n",
        'import torch\nmade = [torch.amp.autocast("cuda", enabled=False), torch.amp.GradScaler("cuda")]\n',
    ),
    "arguments by their old positions": (
        "import torch\nuse = False\nmade = [torch.cuda.amp.autocast(use, torch.bfloat16, False)]\n",
        "import torch\nuse = False\n"
        'made = [torch.amp.autocast("cuda", enabled=use, dtype=torch.bfloat16, cache_enabled=False)]\n',
    ),
    "options from a dict": (
        'import torch\noptions = {"enabled": False}\nmade = [torch.cuda.amp.autocast(**options)]\n',
        'import torch\noptions = {"enabled": False}\nmade = [torch.amp.autocast("cuda", **options)]\n',
    ),
    "scalers": (
        "import torch\nmade = [torch.cpu.amp.GradScaler(2.0, enabled=True), torch.cpu.amp.GradScaler()]\n",
        'import torch\nmade = [torch.amp.GradScaler("cpu", 2.0, enabled=True), torch.amp.GradScaler("cpu")]\n',
    ),
    "the host": (
        "import torch\nwith torch.cpu.amp.autocast(True):\n    made = [torch.ones(4, 4) @ torch.rand(4, 4)]\n",
        'import torch\nwith torch.amp.autocast("cpu", enabled=True):\n'
        "    made = [torch.ones(4, 4) @ torch.rand(4, 4)]\n",
    ),
    "a type that somebody sets": (
        "import torch\ntorch.set_autocast_gpu_dtype(torch.bfloat16)\nmade = [torch.cuda.amp.autocast()]\n"
        "torch.set_autocast_gpu_dtype(torch.float16)\n",
        "import torch\ntorch.set_autocast_gpu_dtype(torch.bfloat16)\n"
        'made = [torch.amp.autocast("cuda", dtype=torch.float16)]\n'
        "torch.set_autocast_gpu_dtype(torch.float16)\n",
    ),
    "a decorator": (
        "import torch\n@torch.cuda.amp.autocast()\ndef f(x):\n    return x * 2\nmade = [f(torch.ones(2))]\n",
        'import torch\n@torch.amp.autocast("cuda")\ndef f(x):\n    return x * 2\nmade = [f(torch.ones(2))]\n',
    ),
}
_FUNCTION = """\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    @{forward}
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @{backward}
    def backward(ctx, gradient):
        return gradient * 2


x = torch.ones(3, requires_grad=True)
Double.apply(x).sum().backward()
made = [x.grad]
"""


def made_by(code: str) -> list[Any]:
    scope: dict[str, Any] = {}
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, scope)
    return [described(item) for item in scope["made"]]


def described(item: Any) -> Any:
    if isinstance(item, torch.Tensor):
        return item.dtype, item.tolist()
    if isinstance(item, torch.amp.GradScaler):
        return item._device, item._enabled, item.state_dict()
    return item.device, item.fast_dtype, item._enabled, item._cache_enabled


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_the_new_spelling_makes_the_same(before: str, after: str) -> None:
    assert fixed(before, "AMP01", unsafe=False) == after
    assert made_by(before) == made_by(after)


@pytest.mark.parametrize(
    ("forward", "after"),
    [
        ("custom_fwd", 'custom_fwd(device_type="cuda")'),
        ("custom_fwd(cast_inputs=torch.float32)", 'custom_fwd(cast_inputs=torch.float32, device_type="cuda")'),
    ],
)
def test_decorators_without_a_call_become_calls(forward: str, after: str) -> None:
    old = _FUNCTION.format(forward=f"torch.cuda.amp.{forward}", backward="torch.cuda.amp.custom_bwd")
    new = _FUNCTION.format(forward=f"torch.amp.{after}", backward='torch.amp.custom_bwd(device_type="cuda")')
    assert fixed(old, "AMP01", unsafe=False) == new
    assert made_by(old) == made_by(new)


SILENT = {
    "a class of the file": "import torch\nclass autocast: ...\nautocast()\n",
    "the new one": "import torch\ntorch.amp.autocast('cuda')\ntorch.autocast('cuda')\n",
    "a framework": "import torch\nfrom accelerate import Accelerator\nAccelerator().autocast()\n",
    "a fallback": "try:\n    from torch.amp import GradScaler\nexcept ImportError:\n"
    "    from torch.cuda.amp import GradScaler\nGradScaler()\n",
    "one of two expressions": "import torch\nnew = hasattr(torch.amp, 'GradScaler')\n"
    "scaler = torch.amp.GradScaler('cuda') if new else torch.cuda.amp.GradScaler()\n",
    "one of two branches": "import torch\nfrom releases import IS_NEW\nif not IS_NEW:\n"
    "    scaler = torch.cuda.amp.GradScaler()\nelse:\n    scaler = torch.amp.GradScaler('cuda')\n",
    "a constant that tells of the release": "import torch\nfrom releases import _TORCH_GREATER_EQUAL_2_4\n"
    "scaler = None if _TORCH_GREATER_EQUAL_2_4 else torch.cuda.amp.GradScaler()\n",
}


@pytest.mark.parametrize("code", SILENT.values(), ids=SILENT)
def test_stays_silent(code: str) -> None:
    assert findings(code, "AMP01") == []


def test_a_question_that_leads_to_nothing_newer_is_no_fallback() -> None:
    code = "import torch\nscaler = torch.cuda.amp.GradScaler() if torch.cuda.is_available() else None\n"
    assert len(findings(code, "AMP01")) == 1


REASONS = {
    "fills in arguments": "import torch\nfrom functools import partial\n"
    "off = partial(torch.cuda.amp.autocast, enabled=False)\nwith off():\n    pass\n",
    "hides which argument is which": "import torch\noptions = [False]\ntorch.cuda.amp.autocast(*options)\n",
    "asks with `isinstance` for the old class": "import torch\nscaler = torch.cuda.amp.GradScaler()\n"
    "assert isinstance(scaler, torch.cuda.amp.GradScaler)\n",
}


@pytest.mark.parametrize(("reason", "code"), REASONS.items(), ids=REASONS)
def test_why_there_is_no_fix(reason: str, code: str) -> None:
    [finding] = findings(code, "AMP01")
    assert finding.fix is None
    assert reason in finding.no_fix


def test_what_is_compiled_is_no_safe_fix() -> None:
    code = "import torch\n@torch.jit.script\ndef f(x):\n    with torch.cuda.amp.autocast():\n        return x\n"
    [finding] = findings(code, "AMP01")
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE


@pytest.mark.parametrize(
    ("other", "is_fixed"),
    [
        ("context = torch.cuda.amp.autocast if fast else None", False),
        ("context = functools.partial(torch.cuda.amp.autocast, enabled=fast)", False),
        ("context = torch.amp.autocast if fast else None", True),
    ],
    ids=["handed on", "filled in", "the new one"],
)
def test_a_file_keeps_to_one_api(other: str, is_fixed: bool) -> None:
    code = "import functools\nimport torch\n\ndef run(net, fast):\n"
    code += f"    {other}\n    with torch.cuda.amp.autocast():\n        return net(context)\n"
    assert findings(code, "AMP01")
    assert ('torch.amp.autocast("cuda")' in fixed(code, "AMP01")) is is_fixed
