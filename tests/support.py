"""What tests of rules and fixers need, as plugins have it, too."""

from torchlint.testing import findings, fixed, source_of

__all__ = ["findings", "fixed", "marked", "source_of"]


def marked(code: str, mark: str = "# here") -> list[int]:
    """The lines of a program that bear the mark: on these a finding is expected."""
    return [number for number, line in enumerate(code.splitlines(), 1) if line.rstrip().endswith(mark)]
