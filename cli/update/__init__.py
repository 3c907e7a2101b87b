"""`berth up` and `berth destroy`: the engine's own update, with losses named first.

Belongs here: losses, the question, progress by component, the summary. Does not belong here:
state, and anything that `pulumi up` would not do as well.
"""
