"""RayClusters, RayJobs and RayServices: settings, rules, manifests, effects of edits, and their state in a cluster.

Belongs here: everything that Ray and KubeRay decide. Does not belong here: isolation, GPUs and networks of the pods.
`readiness` and `suspension` talk to a live cluster and are imported by name.
"""

from berth.components.ray.complete import complete
from berth.components.ray.condition import condition_of, gpus_of
from berth.components.ray.manifest import dashboard_service, ray_cluster
from berth.components.ray.settings import RayClusterSettings, RayShape
from berth.components.ray.submitter import SUBMITTER, submitter_pod
from berth.components.ray.workload import ClusterWorkload, JobWorkload, ServiceWorkload, Workload
from berth.components.ray.workload_condition import job_condition, service_condition
from berth.components.ray.workload_settings import JobShape, RayJobSettings, RayServiceSettings, ServiceShape
from berth.components.ray.workloads import as_kuberay_writes_it, ray_job, ray_service

__all__ = [
    "SUBMITTER",
    "ClusterWorkload",
    "JobShape",
    "JobWorkload",
    "RayClusterSettings",
    "RayJobSettings",
    "RayServiceSettings",
    "RayShape",
    "ServiceShape",
    "ServiceWorkload",
    "Workload",
    "as_kuberay_writes_it",
    "complete",
    "condition_of",
    "dashboard_service",
    "gpus_of",
    "job_condition",
    "ray_cluster",
    "ray_job",
    "ray_service",
    "service_condition",
    "submitter_pod",
]
