"""Ray in the simulated heads of a lab: a real one on this machine for each head that is used.

A person uses a head by a command of berth's, the KubeRay operator for a RayJob or RayService.

Belongs here: Ray's packages, its start and end, the ways from a simulated pod to it.
Does not belong here: workers, which stay simulated; the head's Ray has their CPUs and GPUs.

Simplified: one node of Ray has the resources of all pods that there are when it starts; of a pod's
volumes there is only the code of a RayService. An image's packages are not there.
"""
