"""Which findings count: suppressions, the baseline, changed lines."""
