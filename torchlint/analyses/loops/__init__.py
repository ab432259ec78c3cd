"""What the loops of a program are: training steps, epochs, phases, and what ends them."""
