"""Tools of the lab: their list, where they come from, how they are built and kept.

Belongs here: the list of tools, finding installed ones, finding Go, building, the cache.
Does not belong here: running them.
"""
