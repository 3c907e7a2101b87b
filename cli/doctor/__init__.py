"""`berth doctor`: what an environment needs outside of berth, and whether it is there.

Belongs here: checks that only read, one module for each thing that is looked at, each telling what
mends what is missing. Does not belong here: what the settings alone tell (stacks/settings), and
anything that makes or changes something.
"""
