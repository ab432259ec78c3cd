"""Where tensors are, what moves them, and what asks for them on the host."""
