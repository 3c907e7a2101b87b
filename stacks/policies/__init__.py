"""Policies: rules that every environment keeps, unless its settings waive one by name and with a reason.

Belongs here: one module a policy (rules/), found by registry.py; what the policies share (policy.py, planned.py); and the same
policies applied to a stack's settings before the engine runs (settings.py).
Does not belong here: what Google Cloud or Kubernetes would refuse anyway (the slices' rules).
"""
