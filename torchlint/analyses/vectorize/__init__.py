"""The loop vectoriser: recognises independent work on the rows of tensors, and says what it is on whole tensors.

`plan` is the way in: `headers` reads what a loop runs over, `body` its statements, and `lifting` turns each expression
of one iteration into the one of all of them, by the rules of `batching` and of the modules for one kind of operation;
`mapping` falls back to `torch.vmap`. What cannot be proven is refused by RefusedError. `edits` writes the rewrite.
"""
