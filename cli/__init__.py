"""The `berth` command line.

Belongs here: arguments, tables, exit codes. Does not belong here: state of its own; a second way to
do what the programs in stacks/ do.
"""
