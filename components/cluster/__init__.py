"""A Kubernetes cluster as berth talks to it: the client, the provider, and facts about live nodes, pods and devices.

Belongs here: reading a cluster and registering plain objects. Does not belong here: what a feature makes of them (its slice).
"""
