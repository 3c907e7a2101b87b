"""Stacks: settings, config files, and one program per kind of stack.

Belongs here: models, the load of a stack's config, the programs that wire components together.
Does not belong here: resources (components/), commands (cli/), anything simulated (lab/).
"""
