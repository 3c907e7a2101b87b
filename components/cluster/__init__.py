"""Kubernetes client, provider, and facts about live nodes, pods and devices.

Belongs here: reading a cluster and registering plain objects. Does not belong here: what a feature
    concludes (its slice).
"""
