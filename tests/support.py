"""What tests of rules and fixers need, as plugins have it, too."""

from torchlint.testing import findings, fixed, source_of

__all__ = ["as_shown", "findings", "fixed", "marked", "source_of"]

_MOST = 9


def marked(code: str, mark: str = "# here") -> list[int]:
    """The lines of a program that bear the mark: on these a finding is expected."""
    return [number for number, line in enumerate(code.splitlines(), 1) if line.rstrip().endswith(mark)]


def as_shown(code: str, *codes: str) -> str:
    """The code after all fixes of the given rules, those that are only shown, too, one after the other."""
    for _ in range(_MOST):
        fix = next((found.fix for found in findings(code, *codes) if found.fix is not None), None)
        if fix is None:
            return code
        for edit in sorted(fix.edits, key=lambda edit: edit.start, reverse=True):
            code = code[: edit.start] + edit.text + code[edit.end :]
    raise AssertionError("the fixes have no end")
