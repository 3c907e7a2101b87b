"""The lab controller: programs that would run on nodes, played for nodes that are only simulated.

Belongs here: the device plugins' effect on KWOK nodes, and KubeRay's operator, which the lab runs
as a local process while its Deployment exists. Rules are pure functions of the API server's
objects; `controller` connects them to it. Does not belong here: making nodes (`lab/plugins/gcp`),
and the work that a real node does itself.
"""
