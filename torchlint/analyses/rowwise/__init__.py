"""Loops that do to the rows of a tensor, one at a time, what torch does to all of them in one call.

`work` finds them: `trace` reads the body of a loop, `expressions` what each value in it depends on, and `state` is what
they note; `certainty` knows what is a tensor. A loop that `vectorize` has a plan for is reported with it; of the others
`costly` says which rule they belong to, and `wording` what to tell. The other modules know one more form each.
"""
