"""Terminal and process of a command: output, help, signals, errors, programs.

Belongs here: what any command line needs. Does not belong here: stacks, clusters, berths.
"""
