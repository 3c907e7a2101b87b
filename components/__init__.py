"""Pulumi components, each `(name, settings, opts)`, and the pure functions that make their manifests.

Belongs here: what becomes a resource, and waiting for it. Does not belong here: reading config (stacks/), commands
(cli/), anything simulated (lab/). Only components/gke imports pulumi_gcp, which takes two seconds to import.
"""
