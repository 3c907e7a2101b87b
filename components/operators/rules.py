"""What is installed for the fabric: from where it comes, and settings of it that nothing would use."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel

from berth.components.core.problems import Path, Problem
from berth.components.core.written import written
from berth.stacks.settings.environment import EnvironmentSettings

_OPERATORS: Path = ("environment", "operators")
_POOLS: Path = ("environment", "pools")

_BY_CHART = ("chart", "repository", "version", "namespace")
_THERE = "it is there already"


def problems(settings: EnvironmentSettings) -> Iterable[Problem]:
    """Settings of operators for the fabric that contradict each other, or that nothing would use."""
    yield from _ray_operator(settings)
    operators, pools = settings.operators, settings.pools.values()
    for key, given, used, needs in (
        ("dranet", operators.dranet, any(pool.rdma == "networks" for pool in pools), "`rdma: networks`"),
        ("gpuDra", operators.gpu_dra, any(pool.by_dra for pool in pools), "`gpuAllocation: dra`"),
        ("gib", operators.gib, any(pool.rdma != "none" for pool in pools), "`rdma`"),
    ):
        path = (*_OPERATORS, key)
        if not used:
            if written(given):
                yield Problem(
                    path, f"would be ignored, since no pool has {needs}; take it out", of_key=True, rests_on=(_POOLS,)
                )
            continue
        yield from _of_source(given, path)
    dranet = operators.dranet
    if dranet.source == "manifest" and dranet.manifest is None:
        yield Problem(
            (*_OPERATORS, "dranet", "manifest"),
            "is required with `source: manifest`: the file with DraNet's objects, for example manifest: ./dranet/install.yaml",
        )


def _ray_operator(settings: EnvironmentSettings) -> Iterable[Problem]:
    """The add-on or the chart, never both: each brings the same CRDs and would reconcile the same RayClusters."""
    kuberay = settings.operators.kuberay
    path = (*_OPERATORS, "kuberay")
    if kuberay.source == "addon" and settings.cluster.existing:
        yield Problem(
            (*path, "source"),
            "the add-on is a setting of the cluster, and berth does not change one that exists; switch it on there (gcloud"
            " container clusters update NAME --update-addons=RayOperator=ENABLED) and write `source: present`",
        )
    if kuberay.source == "chart":
        return
    whose = "GKE installs it, in a version of its own choice" if kuberay.source == "addon" else "it is there already"
    for key in written(kuberay):
        if key != "source":
            yield Problem(
                (*path, key),
                f"belongs to `source: chart`, but here {whose} (source: {kuberay.source}); take this line out, or `source`",
                rests_on=((*path, "source"),),
            )


def _of_source(given: BaseModel, path: Path) -> Iterable[Problem]:
    """Keys that belong to another source than the one that was chosen."""
    source = str(getattr(given, "source"))  # noqa: B009 (each of them has one, of different values)
    belongs = {
        "chart": _BY_CHART,
        "manifest": ("manifest",),
        "chart or manifest": ("nodeSelector",),
        "installer": ("image",),
    }
    whose = {"present": _THERE, "manifest": "its objects are in a file"}.get(source, "it comes by its chart")
    for sources, keys in belongs.items():
        if source in sources.split(" or "):
            continue
        for key in (key for key in written(given) if key in keys):
            yield Problem(
                (*path, key),
                f"belongs to `source: {sources}`, but here {whose} (source: {source}); take this line out, or change `source`",
                rests_on=((*path, "source"),),
            )
