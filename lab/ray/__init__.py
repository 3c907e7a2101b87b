"""Ray in the simulated heads of a lab: a real one on this machine for each head that somebody uses.

Belongs here: Ray's packages, its start and end, the ways from a simulated pod to it.
Does not belong here: workers, which stay simulated; the head's Ray has their CPUs and GPUs.

Simplified: one node of Ray has the resources of all pods; no volume of a pod is mounted. RayJobs
and RayServices do not reach it.
"""
