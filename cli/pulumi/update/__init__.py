"""Update or destruction of a stack: the question, the runs of the engine, progress and summary.

Does not belong here: state, waits, and anything that `pulumi up` would not do as well.
"""
