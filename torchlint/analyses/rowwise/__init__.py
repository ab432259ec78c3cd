"""Loops that do to the rows of a tensor, one at a time, what torch does to all of them in one call."""
