"""Which files there are, and what a project says about them."""
