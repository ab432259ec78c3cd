"""What the machine has for this run: processors and memory."""

from __future__ import annotations

import os
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container
_BYTES_PER_CHARACTER = 100  # of the text of a file whose tree and model are kept
_SHARE = 4  # a quarter of the memory, for all processes together
_FEWEST_CHARACTERS = 4_000_000


def processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """Bytes that the processes of the machine, or of the container, may use together; 0 where nobody tells."""
    known = [_physical_memory()]
    for path in _LIMITS:
        try:
            known.append(int(Path(path).read_text()))
        except (OSError, ValueError):  # no such file, or `max`
            continue
    return min(filter(None, known), default=0)


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0


def characters_kept() -> int:
    """Of how much text one of as many processes as there are processors may keep trees and models."""
    return max(memory() // (_SHARE * processors() * _BYTES_PER_CHARACTER), _FEWEST_CHARACTERS)
