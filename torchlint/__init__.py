"""torchlint: finds PyTorch code that wastes a GPU or trains wrong, rewrites it, and proves the rewrite."""

from pathlib import Path

__version__ = "0.1.0"

# In a checkout `rules`, `fixers` and `runtime_check` stand beside this package; installed, inside it.
if not Path(__file__).with_name("rules").is_dir():
    __path__.append(str(Path(__file__).parent.parent))
