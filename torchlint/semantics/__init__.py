"""The model of a file: what its names and calls stand for, how often a line runs, and what other files add.

`model.Model` is what rules, analyses and fixers ask; `entities` and `values` are the nouns of its answers, `tree` and
`dataflow` small questions about the syntax tree and about how values move. It is made in this order: `collecting` walks
the tree once, and `linking` ties names to their variables; `names` gives them qualified names; `evaluate` runs every
function of the file on what is known of its arguments, through `statements`, `expressions` and `calls`, with what torch
returns as data in `torch_api.tsv`; then `effects` says what functions do, and `roles` what loops are for. `project` and
`foreign` bring in the other files.
"""

from torchlint.semantics.light_nodes import import_lightly, lighten

import_lightly()
lighten()
