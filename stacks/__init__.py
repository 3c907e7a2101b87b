"""Stacks: files that users write, and below them the Python that reads and builds them."""
