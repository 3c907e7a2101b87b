"""Stacks: files that users write, and below them the Python that reads and builds them.

Belongs here: files of stacks and the gallery; below, models, the load of a stack's config, the
programs that wire components together. Does not belong here: resources (components/), commands
(cli/), anything simulated (lab/).
"""
