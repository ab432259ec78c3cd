"""Makes torchlint/semantics/torch_api.tsv, the table of what torch's names are and do: `python -m tools.torch_api`.

The facts are measured: every name is looked up in the installed torch and, if it can be called, called on small
seeded inputs (mostly those of torch's own operator tests) while its results, its inputs and the operators below it
are watched. `supplement.py` holds what a single CPU process cannot tell.
"""
