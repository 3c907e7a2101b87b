"""Pulumi components, `(name, inputs, opts)`, and the pure functions that make their manifests.

Belongs here: what becomes a resource, and waiting for it. Does not belong here: reading config
(stacks/), commands (cli/), anything simulated (lab/). A module that imports pulumi_gcp or
pulumi_kubernetes is imported where something is registered, and not where settings are checked.
"""
