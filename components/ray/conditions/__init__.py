"""Conditions of RayClusters, RayJobs and RayServices, from their objects: pure functions."""
