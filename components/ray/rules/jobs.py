"""Rules of RayJobs: settings that KubeRay would refuse, or that count for nothing."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import SettingPath
from berth.components.core.rules import Breach, Rules
from berth.components.ray.job_settings import JobShape
from berth.components.ray.settings import RayShape

_LONGEST_NAME = 38
"""A RayJob's name has 47 characters at most (kuberay v1.6.2,
ray-operator/controllers/ray/utils/constant.go), and ends in "-" and eight characters of its
content."""

_FIELDS_OF_OWN_CLUSTER = (
    *(name for name in JobShape.model_fields if name in RayShape.model_fields),
    "backoff_limit",
    "shutdown_after_job_finishes",
    "ttl_after_finished",
)
_KEYS_OF_OWN_CLUSTER = {
    name: str(JobShape.model_fields[name].alias) for name in _FIELDS_OF_OWN_CLUSTER
}
"""Settings of a RayCluster of the job's own: keys in YAML by the names of the fields."""


@dataclass(frozen=True)
class NamedJob:
    """A job of an environment.

    Attributes:
        name: the job's name.
        job: the job as written.
        clusters: names of the engineers and clusters whose RayClusters may run the job.
    """

    name: str
    job: JobShape
    clusters: Collection[str]


JOBS = Rules[NamedJob](JobShape)
"""Rules of a RayJob."""


@JOBS.problem()
def job_name_above_the_longest(named: NamedJob) -> str | None:
    """KubeRay leaves the name of a RayJob some characters."""
    length = len(named.name)
    if length <= _LONGEST_NAME:
        return None
    return (
        f"{named.name!r} has {length} characters; KubeRay leaves a RayJob and the end that tells"
        f" its content {_LONGEST_NAME}"
    )


@JOBS.problem("cluster")
def job_on_an_unknown_cluster(named: NamedJob) -> Iterator[Breach]:
    """A job runs on the RayCluster of an engineer or of a named cluster."""
    cluster = named.job.cluster
    if cluster and cluster not in named.clusters:
        owners: tuple[SettingPath, ...] = (
            ("environment", "engineers", cluster),
            ("environment", "clusters", cluster),
        )
        yield Breach(
            f"there is no engineer or cluster {cluster!r}{did_you_mean(cluster, named.clusters)}",
            rests_on=owners,
        )


@JOBS.problem(*_KEYS_OF_OWN_CLUSTER.values())
def cluster_settings_beside_an_existing_cluster(named: NamedJob) -> Iterator[Breach]:
    """A job on an existing RayCluster has none of its own to be set."""
    job = named.job
    for name, key in _KEYS_OF_OWN_CLUSTER.items():
        if job.cluster and name in job.model_fields_set:
            yield Breach(
                f"is about a RayCluster of the job's own, but it runs on that of {job.cluster!r};"
                " take one of the two out",
                at=(key,),
            )


@JOBS.problem("ttlAfterFinished")
def time_to_live_of_a_cluster_that_stays(named: NamedJob) -> str | None:
    """A RayCluster that is not deleted has no time of deletion."""
    job = named.job
    if job.cluster or not job.ttl_after_finished or job.shutdown_after_job_finishes:
        return None
    return "says when its RayCluster goes, but shutdownAfterJobFinishes is false: it stays"
