"""What a tool measures: a model, its data and its loss, named by the user as `package.module:callable`.

The callable takes no argument, or `batch_size`, and returns `model, data` or `model, data, loss`. `data` is one batch
or a DataLoader of them; `loss(model, batch)` gives the scalar that is trained on. A callable that returns the model
alone, such as a class, does with inputs made by `--input`. For the loader a callable may return the DataLoader alone.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from .errors import ToolError

Loss = Callable[[nn.Module, Any], torch.Tensor]
_INTERNAL = (os.path.dirname(torch.__file__), os.path.dirname(__file__))


@dataclass(frozen=True)
class Subject:
    """`data` is one batch, a DataLoader, or None. `has_own_loss` is false where `loss` is only a stand-in."""

    name: str
    model: nn.Module | None
    data: Any
    loss: Loss
    has_own_loss: bool

    @property
    def loader(self) -> DataLoader[Any]:
        if not isinstance(self.data, DataLoader):
            raise ToolError(f"{self.name} gives no DataLoader: return `model, loader, loss`, or the loader alone")
        return self.data

    def trained(self, device: torch.device) -> nn.Module:
        """The model, on the device. Raises ToolError where the subject has none."""
        if self.model is None:
            raise ToolError(f"{self.name} gives no model: return `model, data` or `model, data, loss`")
        with failing("moving the model to the device fails"):
            return self.model.to(device)

    def batch(self, device: torch.device) -> Any:
        """The batch, or the loader's first, on the device."""
        return self.batches(device, 1)[0]

    def batches(self, device: torch.device, most: int) -> list[Any]:
        """Up to `most` batches on the device."""
        if self.data is None:
            raise ToolError(f"{self.name} gives a model without data: return `model, data`, or give --input SHAPE")
        if not isinstance(self.data, DataLoader):
            return [to_device(self.data, device)]
        with failing("the DataLoader fails"):
            found = [to_device(batch, device) for _, batch in zip(range(most), self.data)]
        if not found:
            raise ToolError(f"the DataLoader of {self.name} is empty")
        return found


def build(name: str, inputs: Sequence[str] = (), batch_size: int | None = None) -> Subject:
    """Import and call what `name` names. `inputs`: shapes such as "N,3,224,224" or "N,128:int64", N the batch size.

    Raises ToolError for a wrong name, a callable that fails, or a result that is no subject.
    """
    made = _call(name, find(name), batch_size)
    subject = _subject(name, made)
    if inputs:
        subject = replace(subject, data=tuple(random_input(shape, batch_size or 1) for shape in inputs))
    return subject


def find(name: str) -> Callable[..., Any]:
    """The callable that `package.module:attribute` or `path/to/file.py:attribute` names."""
    module_name, colon, path = name.partition(":")
    if not colon or not path or not module_name:
        raise ToolError(f"`{name}` names no callable: write package.module:callable, or path/to/file.py:callable")
    found: Any = _import(module_name)
    for attribute in path.split("."):
        if not hasattr(found, attribute):
            raise ToolError(f"{module_name} has no `{attribute}`{_nearest(attribute, dir(found))}")
        found = getattr(found, attribute)
    if not callable(found):
        raise ToolError(f"{name} is {type(found).__name__}, nothing that can be called")
    called: Callable[..., Any] = found
    return called


def _import(name: str) -> Any:
    """Modules of the working directory come first, as under `python -m`; a file finds its neighbours."""
    is_file = name.endswith(".py")
    if is_file and not Path(name).is_file():
        raise ToolError(f"there is no file {name}")
    folder = str(Path(name).resolve().parent) if is_file else os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = Path(name).stem if is_file else name
    try:
        with failing(f"importing {name} fails"):
            return importlib.import_module(module)
    except ToolError as error:
        missing = error.__cause__
        if isinstance(missing, ModuleNotFoundError) and missing.name and f"{module}.".startswith(f"{missing.name}."):
            raise ToolError(f"there is no module {missing.name} in {folder} or among the installed packages") from error
        raise


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, [other for other in known if not other.startswith("__")], 1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _call(name: str, function: Callable[..., Any], batch_size: int | None) -> Any:
    given = {}
    if batch_size is not None and takes_batch_size(function):
        given["batch_size"] = batch_size
    with failing(f"{name} fails"):
        return function(**given)


def takes_batch_size(function: Callable[..., Any]) -> bool:
    try:
        return "batch_size" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _subject(name: str, made: Any) -> Subject:
    match made:
        case DataLoader():
            return Subject(name, None, made, stand_in_loss, False)
        case nn.Module():
            return Subject(name, made, None, stand_in_loss, False)
        case (nn.Module() as model, data):
            return Subject(name, model, data, stand_in_loss, False)
        case (nn.Module() as model, data, loss) if callable(loss):
            return Subject(name, model, data, loss, True)
    shown = f"({', '.join(type(item).__name__ for item in made)})" if isinstance(made, tuple) else type(made).__name__
    raise ToolError(f"{name} returned {shown}, not `model, data` or `model, data, loss`")


def random_input(shape: str, batch_size: int) -> torch.Tensor:
    """A batch of the shape "N,3,224,224", normally distributed; ":int64" after it gives zeros and ones."""
    sizes, _, dtype_name = shape.partition(":")
    dtype = getattr(torch, dtype_name or "float32", None)
    try:
        numbers = [batch_size if size.strip() == "N" else int(size) for size in sizes.split(",")]
    except ValueError:
        numbers = [-1]
    if not isinstance(dtype, torch.dtype) or min(numbers) < 0:
        raise ToolError(f"`{shape}` is no shape: write sizes with commas, as in N,3,224,224 or N,128:int64")
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(numbers, dtype=dtype)
    return torch.randint(0, 2, numbers, dtype=dtype)


def stand_in_loss(model: nn.Module, batch: Any) -> torch.Tensor:
    """The model's own `loss` where its output has one, a scalar output as it is, or the mean of all squares."""
    output = call_model(model, batch)
    own = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    if isinstance(output, torch.Tensor) and output.numel() == 1:
        return output.reshape(())
    squares = [leaf.float().square().mean() for leaf in tensors_in(output) if leaf.requires_grad]
    if not squares:
        raise ToolError("no output of the model has a gradient, and the subject gives no loss")
    return torch.stack(squares).sum()


def call_model(model: nn.Module, batch: Any) -> Any:
    if isinstance(batch, Mapping):
        return model(**batch)
    return model(*batch) if isinstance(batch, (tuple, list)) else model(batch)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of nested tuples, lists and mappings."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (Mapping, tuple, list)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from tensors_in(item)


def to_device(value: Any, device: torch.device, non_blocking: bool = False) -> Any:
    """Nested tuples, lists and dicts with their tensors on the device; what else has a method `to` is moved by it."""
    if isinstance(value, torch.Tensor):
        return value.to(device, non_blocking=non_blocking)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_device(item, device, non_blocking) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(to_device(item, device, non_blocking) for item in value)
    if isinstance(value, dict):
        return {key: to_device(item, device, non_blocking) for key, item in value.items()}
    return value.to(device) if hasattr(value, "to") else value


@contextmanager
def failing(what: str) -> Iterator[None]:
    """Code of the user runs in here: its errors become a ToolError with the line of the user's file. Running out of
    memory passes through for those who wait for it."""
    try:
        yield
    except ToolError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        text = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
        raise ToolError(f"{what}: {reason}{_place(error)}") from error


def is_out_of_memory(error: BaseException) -> bool:
    """Of the allocator, of a CUDA library's own, or of the host."""
    if isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)):
        return True
    words = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED", "can't allocate memory")
    return isinstance(error, RuntimeError) and any(word in str(error) for word in words)


def _place(error: BaseException) -> str:
    """The innermost line that is neither torch's nor a tool's."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_INTERNAL)]
    shown = [frame for frame in frames if not frame.filename.startswith("<") and "importlib" not in frame.filename]
    return f" ({os.path.relpath(shown[-1].filename)}:{shown[-1].lineno})" if shown else ""
