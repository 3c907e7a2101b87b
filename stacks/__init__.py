"""Stacks: settings, config files, and one program per kind of stack.

Belongs here: settings models, reading and checking a stack's config, the programs that wire components together.
Does not belong here: resources of their own (components/), commands (cli/), anything simulated (lab/).
"""
