"""Measures that stand on their own: memory, transfers, precision, loaders, batch sizes. Needs torch.

Each is a function that returns a plain dataclass, and a command, `torchlint bench`.
"""

from .errors import ToolError
from .memory import GPUMemoryTracker

__all__ = ["GPUMemoryTracker", "ToolError"]
