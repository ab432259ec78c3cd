"""What tests of rules and fixers need, as plugins have it, too."""

from torchlint.testing import findings, fixed, source_of

__all__ = ["findings", "fixed", "source_of"]
