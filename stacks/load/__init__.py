"""Stacks, loaded: settings read, resolved and judged once, with all problems at once."""
