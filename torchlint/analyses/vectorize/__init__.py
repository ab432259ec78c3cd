"""The loop vectoriser: recognises independent work on the rows of tensors, and says what it is on whole tensors."""
