"""RayClusters, RayJobs and RayServices: settings, rules, manifests, effects.

Belongs here: everything that Ray and KubeRay decide. Does not belong here: isolation, GPUs and
networks of the pods. Live objects, waits and the fleet have a door of their own: `ray.live`.
"""

from berth.components.ray.complete_settings import RayClusterSettings, WorkerGroup
from berth.components.ray.completion import complete_cluster
from berth.components.ray.demand import (
    Demand,
    demands_of,
    disk_of_a_container,
    disk_of_a_node,
)
from berth.components.ray.effects import RAY_EFFECTS
from berth.components.ray.job_settings import JobShape, JobWait, RayJobSettings
from berth.components.ray.jobs import ray_job
from berth.components.ray.kuberay_form import shared_with_kuberay
from berth.components.ray.manifest import INTERNAL_LOAD_BALANCER, dashboard_service, ray_cluster
from berth.components.ray.place import place_cluster
from berth.components.ray.placed import AvailablePools
from berth.components.ray.rules import cluster_problems, cluster_warnings
from berth.components.ray.rules.capacity import capacity_problems, second_cluster_warnings
from berth.components.ray.rules.eviction import head_may_be_evicted, workers_may_be_evicted
from berth.components.ray.rules.workloads import workload_problems, workload_warnings
from berth.components.ray.rules.written import shape_problems
from berth.components.ray.secret_manager import (
    SYNC_ACCOUNT,
    SYNC_API,
    SYNCS_PATH,
    secret_objects,
    synchronized_secrets,
)
from berth.components.ray.service_settings import RayServiceSettings, ServiceShape
from berth.components.ray.settings import BerthShape, ClusterOptions, RayShape, Wait
from berth.components.ray.storage.buckets import BUCKET_DRIVER
from berth.components.ray.storage.claims import (
    SHARE_PREFIX,
    has_storage_that_stays,
    home_claim,
    share_claims,
)
from berth.components.ray.storage.home import HOME_CLAIM, HOME_FOLDER, Home
from berth.components.ray.storage.volumes import mounts_buckets, mounts_shares
from berth.components.ray.submitter import SUBMITTER, submitter_pod
from berth.components.ray.variables import from_secret_manager
from berth.components.ray.workload import (
    Workload,
    cluster_workload,
    job_workload,
    service_workload,
)

__all__ = [
    "BUCKET_DRIVER",
    "HOME_CLAIM",
    "HOME_FOLDER",
    "INTERNAL_LOAD_BALANCER",
    "RAY_EFFECTS",
    "SHARE_PREFIX",
    "SUBMITTER",
    "SYNCS_PATH",
    "SYNC_ACCOUNT",
    "SYNC_API",
    "AvailablePools",
    "BerthShape",
    "ClusterOptions",
    "Demand",
    "Home",
    "JobShape",
    "JobWait",
    "RayClusterSettings",
    "RayJobSettings",
    "RayServiceSettings",
    "RayShape",
    "ServiceShape",
    "Wait",
    "WorkerGroup",
    "Workload",
    "capacity_problems",
    "cluster_problems",
    "cluster_warnings",
    "cluster_workload",
    "complete_cluster",
    "dashboard_service",
    "demands_of",
    "disk_of_a_container",
    "disk_of_a_node",
    "from_secret_manager",
    "has_storage_that_stays",
    "head_may_be_evicted",
    "home_claim",
    "job_workload",
    "mounts_buckets",
    "mounts_shares",
    "place_cluster",
    "ray_cluster",
    "ray_job",
    "second_cluster_warnings",
    "secret_objects",
    "service_workload",
    "shape_problems",
    "share_claims",
    "shared_with_kuberay",
    "submitter_pod",
    "synchronized_secrets",
    "workers_may_be_evicted",
    "workload_problems",
    "workload_warnings",
]
