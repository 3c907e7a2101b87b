"""Pulumi components, `(name, inputs, opts)`, and the pure functions that make their manifests.

Belongs here: what becomes a resource, and waiting for it. Does not belong here: reading config
(stacks/), commands (cli/), anything simulated (lab/). Only components/gke and stacks/google.py,
which puts it together, import pulumi_gcp: that takes two seconds.
"""
