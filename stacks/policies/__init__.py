"""Policies: what every environment keeps to, unless its settings waive one by name and with a reason.

Belongs here: the policies, each with what it asks and why; judges, pure functions from planned resources to what is wrong
with them; and what a stack's settings plan, so that the same judges speak before the engine runs (settings.py) and on the
engine's own plan (judges.py).
Does not belong here: what Google Cloud or Kubernetes would refuse anyway (stacks/settings/rules).
"""
