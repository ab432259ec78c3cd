"""The model of a file: what its names and calls stand for, how often a line runs, and what other files add."""
