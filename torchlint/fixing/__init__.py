"""Applying fixes, and what must hold of what they leave."""
