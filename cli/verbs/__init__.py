"""The verbs of `berth`: one module for each, with its arguments, its help and what it runs.

A module has `run`, a function whose docstring is the help and whose result is the exit code, or
`app`, a group of such functions. Modules import what takes time to import inside of these
functions, because `berth --help` imports all of them.
"""
