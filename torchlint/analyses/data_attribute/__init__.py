"""Reads of `.data`: what is made of them, and whether they are of tensors."""
