"""The `berth` command: thin and rich. Every verb calls a function that a test can call.

Belongs here: arguments, tables, exit codes. Does not belong here: state of its own; a second way to do what
`pulumi up` does.
"""
