"""Pulumi components, `(name, inputs, opts)`, and the pure functions that make their manifests.

Belongs here: what becomes a resource, and waiting for it. Does not belong here: reading config
(stacks/), commands (cli/), anything simulated (lab/). Nothing imports the modules of pulumi_gcp,
which takes two seconds: components/gke/resource.py registers resources without them.
"""
