"""Reach of a command: a stack, a cluster and a berth, and what several verbs do there."""
