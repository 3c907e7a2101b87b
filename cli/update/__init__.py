"""`berth up` and `berth destroy`: thin fronts of the engine's own commands.

Belongs here: what is said before and asked, progress by component, the summary. Does not belong here: state; anything that
`pulumi up` does not do too.
"""
