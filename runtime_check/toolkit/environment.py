"""What decides how fast and how exactly torch computes on this machine: devices, libraries, switches, threads."""

from __future__ import annotations

import os
import platform
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Any

import torch

from .device import MIB, cpu_name

PACKAGES = ("numpy", "torchvision", "torchaudio", "triton", "lightning", "accelerate", "transformers", "torchlint")
_PREFIXES = (
    *("CUDA_", "CUBLAS_", "CUDNN_", "HIP_", "HSA_", "KMP_", "MIOPEN_", "MKL_", "NCCL_", "OMP_", "PYTORCH_"),
    *("RCCL_", "ROCR_", "TORCH_", "TORCHINDUCTOR_", "TRITON_"),
)
Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Report:
    """Facts by heading. `devices` has one entry for each visible GPU; `variables` are the environment variables that
    torch and its libraries read; `notes` are sentences about what looks unintended."""

    torch: Facts
    host: Facts
    devices: tuple[Facts, ...]
    precision: Facts
    determinism: Facts
    allocator: Facts
    packages: Facts
    variables: Facts
    notes: tuple[str, ...]


def report() -> Report:
    """Read everything. Changes no setting; starts CUDA where there is a device."""
    devices = tuple(map(_device, range(torch.cuda.device_count() if torch.cuda.is_available() else 0)))
    host = _host()
    return Report(
        torch=_torch(),
        host=host,
        devices=devices,
        precision=_precision(),
        determinism=_determinism(),
        allocator=_allocator(bool(devices)),
        packages=_packages(),
        variables={name: os.environ[name] for name in sorted(os.environ) if name.startswith(_PREFIXES)},
        notes=tuple(_notes(bool(devices), host)),
    )


def _torch() -> Facts:
    cudnn = torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None
    return {
        "version": torch.__version__,
        "debug build": torch.version.debug,
        "CUDA": torch.version.cuda,
        "ROCm": torch.version.hip,
        "MIOpen" if torch.version.hip else "cuDNN": cudnn,
        "NCCL": _nccl(),
        "oneDNN": torch.backends.mkldnn.is_available(),
        "Python": platform.python_version(),
        "interpreter": sys.executable,
        "system": platform.platform(),
    }


def _nccl() -> str | None:
    if not torch.cuda.is_available() or not torch.distributed.is_available():
        return None
    version = _read(lambda: torch.cuda.nccl.version())
    return ".".join(map(str, version)) if isinstance(version, tuple) else version


def _host() -> Facts:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "CPU": cpu_name(),
        "cores": os.cpu_count(),
        "usable cores": usable,
        "threads in an operator": torch.get_num_threads(),
        "threads between operators": torch.get_num_interop_threads(),
        "vector instructions": torch.backends.cpu.get_cpu_capability(),
    }


def _device(index: int) -> Facts:
    properties = torch.cuda.get_device_properties(index)
    free, total = torch.cuda.mem_get_info(index)
    return {
        "device": f"cuda:{index}",
        "name": properties.name,
        "architecture": getattr(properties, "gcnArchName", None) or f"{properties.major}.{properties.minor}",
        "multiprocessors": properties.multi_processor_count,
        "memory, MB": total // MIB,
        "free memory, MB": free // MIB,
        "bfloat16": torch.cuda.is_bf16_supported(),
    }


def _precision() -> Facts:
    return {
        "default dtype": str(torch.get_default_dtype()),
        "float32 matrix products": _read(torch.get_float32_matmul_precision),
        "TF32 in matrix products": _read(lambda: torch.backends.cuda.matmul.allow_tf32),
        "TF32 in convolutions": _read(lambda: torch.backends.cudnn.allow_tf32),
        "float16 sums in float16": _read(lambda: torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction),
        "bfloat16 sums in bfloat16": _read(lambda: torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction),
        "autocast dtype, cuda": str(torch.get_autocast_dtype("cuda")),
        "autocast dtype, cpu": str(torch.get_autocast_dtype("cpu")),
    }


def _determinism() -> Facts:
    return {
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "cuDNN deterministic": torch.backends.cudnn.deterministic,
        "cuDNN benchmark": torch.backends.cudnn.benchmark,
        "seed": torch.initial_seed(),
    }


def _allocator(has_device: bool) -> Facts:
    names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
    given = {name: os.environ[name] for name in names if name in os.environ}
    backend = _read(torch.cuda.get_allocator_backend) if has_device else None
    return {"backend": backend, "settings": given or "none given"}


def _packages() -> Facts:
    return {name: version for name in PACKAGES if (version := _read(partial(metadata.version, name)))}


def _notes(has_device: bool, host: Facts) -> list[str]:
    notes = []
    if not has_device and (torch.version.cuda or torch.version.hip):
        notes.append("torch is built for a GPU, but none is visible: look at the driver and CUDA_VISIBLE_DEVICES")
    if (host["usable cores"] or 0) < (host["cores"] or 0):
        notes.append(f"this process may use {host['usable cores']} of {host['cores']} cores: size num_workers by that")
    if host["threads in an operator"] > (host["usable cores"] or 1):
        notes.append("an operator starts more threads than this process has cores: set OMP_NUM_THREADS")
    return notes


def _read(get: Callable[[], Any]) -> Any:
    """None for what this version of torch does not have, or refuses to tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return get()
        except (AttributeError, RuntimeError, metadata.PackageNotFoundError):
            return None
