"""Data loaders: what they load from, with which options, and what comes of their batches."""
