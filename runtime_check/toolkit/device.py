"""The device that a tool measures on."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

from .errors import ToolError

MIB = 1 << 20


def choose(name: str | int | torch.device | None = None) -> torch.device:
    """`cpu`, `cuda`, `cuda:N` or N; without a name the current CUDA device if there is one, or else the CPU.

    Raises ToolError for a device that torch does not know, or that this machine or this torch has not.
    """
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(f"cuda:{name}" if isinstance(name, int) else name)
    except RuntimeError as error:
        raise ToolError(f"there is no device `{name}`: name cpu, cuda or cuda:N") from error
    if device.type == "cpu":
        return torch.device("cpu")
    if device.type != "cuda":
        raise ToolError(f"only cpu and cuda devices are measured, not {device.type}")
    if not torch.cuda.is_available():
        raise ToolError(f"there is no CUDA device here: {_why_no_cuda()}; use --device cpu")
    index = torch.cuda.current_device() if device.index is None else device.index
    if index >= torch.cuda.device_count():
        raise ToolError(f"there is no cuda:{index}: this machine has {torch.cuda.device_count()} CUDA device(s)")
    return torch.device("cuda", index)


def _why_no_cuda() -> str:
    if torch.version.cuda is None and torch.version.hip is None:
        return f"torch {torch.__version__} is built for the CPU only"
    return f"torch {torch.__version__} is built for one, but no driver with a visible device answers"


def synchronize(device: torch.device) -> None:
    """Wait for what was queued on the device; nothing on a CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def describe(device: torch.device) -> str:
    """The name under which it was sold, as far as the system tells."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU: {cpu_name()}"


def cpu_name() -> str:
    """From Linux's table of processors, or what Python knows."""
    table = Path("/proc/cpuinfo")
    lines = table.read_text(encoding="utf-8").splitlines() if table.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
