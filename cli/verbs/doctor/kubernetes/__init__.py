"""Checks of a Kubernetes cluster, by its API server."""
