"""The GKE network, cluster and node pools, and the pure functions that make their arguments.

Only the components themselves import pulumi_gcp, and stacks/google.py, which puts them together.
"""
