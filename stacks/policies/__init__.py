"""Policies: rules that every environment keeps, unless its settings waive one with a reason.

Belongs here: one module a policy (rules/), found by registry.py; what policies share (policy.py,
planned.py); their application to a stack's settings before the engine runs (settings.py).
Does not belong here: what Google Cloud or Kubernetes would refuse anyway (the slices' rules).
"""
