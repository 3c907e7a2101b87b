"""Reach of a command: how it finds a stack, a cluster and a berth, and what several verbs do there.

Belongs here: what more than one verb needs. Does not belong here: what one verb alone needs, which
stands in the verb's own folder.
"""
