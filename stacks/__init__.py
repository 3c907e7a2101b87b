"""What users write: a file for each stack, and the gallery of examples.

The Python below reads and builds it: `files`, `settings`, `load`, `policies`, `preview`, `program`.
Does not belong here: resources (components/), commands (cli/), anything simulated (lab/).
"""
