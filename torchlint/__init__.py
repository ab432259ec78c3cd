"""torchlint: finds PyTorch code that wastes a GPU or trains wrong, rewrites it, and proves the rewrite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchlint.config import Settings
    from torchlint.finding import Finding
    from torchlint.source import Source

__version__ = "0.1.0"

# In a checkout `rules`, `fixers` and `runtime_check` stand beside this package; installed, inside it.
if not Path(__file__).with_name("rules").is_dir():
    __path__.append(str(Path(__file__).parent.parent))


def lint(source: Source | str, settings: Settings | None = None) -> list[Finding]:
    """Findings of one file in the order of its text. Nothing is read, written or executed.

    source: `Source.read(path)`, or the text of a module.
    settings: `Settings()` runs every rule, `Settings.selecting("MEM01")` only those named.
    """
    from torchlint import config, engine
    from torchlint.source import Source

    if isinstance(source, str):
        source = Source.from_text(source)
    return engine.lint(source, config.Settings() if settings is None else settings)
