"""What a user can put right: a wrong name, a model that fails, a device that is not there."""

from __future__ import annotations


class ToolError(Exception):
    """The message is one sentence that says what is wrong, and where it helps, what to do."""
