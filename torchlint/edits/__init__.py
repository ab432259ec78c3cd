"""What edits are written with: nodes and text in, edits out."""
