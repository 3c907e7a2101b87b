"""Pod templates of head and workers: pure functions of a RayCluster's settings and its pools."""

from collections.abc import Mapping

from berth.components.core.manifest import Manifest
from berth.components.fabric import (
    NVLINK,
    claim_of,
    gib_variables_command,
    joined_by_nvlink,
    nccl_parts,
)
from berth.components.gke import tolerations
from berth.components.hardware.machines import GIB
from berth.components.hardware.names import CLAIMED_GPUS, POOL_LABEL, VISIBLE_DEVICES
from berth.components.nested import NestedParts, nested_parts, with_nested_parts
from berth.components.ray.complete_settings import Head, RayClusterSettings, WorkerGroup
from berth.components.ray.pod_template.merging import patched
from berth.components.ray.storage.mounts import with_home, with_volumes
from berth.components.ray.variables import Variables, entries_of, references_of
from berth.components.sharing import Pool

RAY_HEAD = "ray-head"
"""Name of Ray's container in a head."""

RAY_WORKER = "ray-worker"
"""Name of Ray's container in a worker."""

_HEAD_PORTS = {"gcs-server": 6379, "dashboard": 8265, "client": 10001}
"""Ports of Ray's container in a head."""


def head_template(settings: RayClusterSettings, pool: Pool, labels: dict[str, str]) -> Manifest:
    """Return the pod template of a head on its pool."""
    head = settings.head
    amounts = {"cpu": head.cpu, "memory": head.memory}
    if head.gpus and pool.offer:
        amounts[pool.offer.resource] = str(head.gpus)
    container: Manifest = {
        "name": RAY_HEAD,
        "image": settings.image,
        "env": _environment(settings, {}, head),
        "resources": {"limits": amounts, "requests": dict(amounts)},
        "ports": [{"name": name, "containerPort": port} for name, port in _HEAD_PORTS.items()],
    }
    template = _template(settings, container, pool, labels)
    template = with_nested_parts(template, nested_parts(settings.nested_containers, gpus=head.gpus))
    template = with_home(template, settings.home)
    template = with_volumes(template, settings.volumes, settings.gcs_fuse, worker=False)
    return patched(template, head.pod_template)


def worker_template(
    settings: RayClusterSettings, group: WorkerGroup, pool: Pool, labels: dict[str, str]
) -> Manifest:
    """Return the pod template of a group's workers on their pool."""
    gpus = {}
    if group.gpus and not pool.settings.by_dra:
        gpus[group.gpu_resource] = str(group.gpus)
    nccl = nccl_parts(group)
    container: Manifest = {
        "name": RAY_WORKER,
        "image": settings.image,
        "env": _environment(settings, nccl.env, group),
        "resources": {
            "limits": {"cpu": group.cpu_limit, "memory": group.memory, **gpus},
            "requests": {"cpu": group.cpu, "memory": group.memory, **gpus},
        },
    }
    template = _template(settings, container, pool, labels)
    template = with_nested_parts(template, NestedParts(volumes=nccl.volumes, mounts=nccl.mounts))
    template = _with_claims(template, group, pool)
    template = with_nested_parts(
        template, nested_parts(settings.nested_containers, gpus=group.gpus)
    )
    template = with_volumes(template, settings.volumes, settings.gcs_fuse, worker=True)
    template = patched(template, group.pod_template)
    if group.nccl.profile != GIB:
        return template
    variables = [variable["name"] for variable in template["spec"]["containers"][0]["env"]]
    return with_nested_parts(template, NestedParts(command=[gib_variables_command(variables)]))


def _template(
    settings: RayClusterSettings, container: Manifest, pool: Pool, labels: dict[str, str]
) -> Manifest:
    """Return the pod template that Ray's container has on any pool."""
    spec: Manifest = {
        "nodeSelector": {POOL_LABEL: pool.name},
        "tolerations": tolerations(pool.settings),
        "containers": [container],
    }
    if settings.image_pull_secrets:
        names = dict.fromkeys(settings.image_pull_secrets)
        spec["imagePullSecrets"] = [{"name": name} for name in names]
    return {"metadata": {"labels": labels}, "spec": spec}


def _with_claims(template: Manifest, group: WorkerGroup, pool: Pool) -> Manifest:
    """Return a worker's template with its claims on devices.

    The pod names the claims to create, and a container gets the devices of claims that it names.
    """
    templates: dict[str, str] = {}
    claim = claim_of(group, pool)
    if claim:
        templates[claim.name] = claim.template_name
    if joined_by_nvlink(group, pool):
        templates[NVLINK] = NVLINK
    if not templates:
        return template
    metadata = dict(template["metadata"])
    if claim and claim.gpus:
        metadata["annotations"] = {CLAIMED_GPUS: str(claim.gpus)}
    (container,) = template["spec"]["containers"]
    resources = {**container["resources"], "claims": [{"name": name} for name in templates]}
    spec = {
        **template["spec"],
        "containers": [{**container, "resources": resources}],
        "resourceClaims": [
            {"name": name, "resourceClaimTemplateName": of_claim}
            for name, of_claim in templates.items()
        ],
    }
    return {"metadata": metadata, "spec": spec}


def _environment(
    settings: RayClusterSettings, nccl: Mapping[str, str], role: Head | WorkerGroup
) -> list[Manifest]:
    """Return the environment of Ray's container; later sources of a variable win."""
    variables: Variables = {**nccl} | settings.env | references_of(settings.secrets) | role.env
    if settings.auth == "none":
        # KubeRay sets no mode then, and Ray 2.61 or newer requires tokens
        # (https://docs.ray.io/en/latest/ray-security).
        variables["RAY_AUTH_MODE"] = "disabled"
    if not role.gpus:
        # NVIDIA's runtime reads a missing value as "all", and a pod without GPUs would see those of
        # its node.
        variables[VISIBLE_DEVICES] = "void"
    return entries_of(variables)
