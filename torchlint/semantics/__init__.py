"""The model of a file: what its names and calls stand for, how often a line runs, and what other files add."""

from torchlint.semantics.light_nodes import import_lightly, lighten

import_lightly()
lighten()
