"""Stacks, loaded: settings read, resolved and judged once, with all problems at once.

Belongs here: the one load path. Does not belong here: models (stacks/settings), resources.
"""
