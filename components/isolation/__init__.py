"""What keeps a berth apart from the others: pure functions from its settings and its pods to manifests.

What depends on the pods (the level of Pod Security, the quota) is derived from the manifests that make them, so that the two
cannot disagree. Belongs here: what is in a berth's namespace, or is said of its pods, for the sake of others. What does not: Ray.
"""
