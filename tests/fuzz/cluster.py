"""Dry runs against a real API server: whether it takes what a program registers, and its pods."""

from collections.abc import Iterator
from typing import Any

from berth.components.cluster.api import APPLY, ClusterApi, RefusedError
from berth.components.core.numbers import whole_numbers
from berth.components.isolation import cluster_spec
from berth.stacks.load.stack import Environment, load_stack
from tests.fuzz.judge import FindingError, registered
from tests.unit.recording import Recorder

Manifest = dict[str, Any]

_FIRST = (
    "Namespace",
    "PriorityClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)
"""Kinds that are created, since the API server judges other objects by them."""

_ELSEWHERE = ("no PriorityClass with name", "serviceaccount")
"""Refusals for objects that somebody else creates."""


class Cluster:
    """API server that judges objects."""

    def __init__(self, kubeconfig: str) -> None:
        self._api = ClusterApi(kubeconfig)
        self._paths: dict[tuple[str, str], tuple[str, bool]] = {}
        self._there: dict[str, Manifest] = {}

    def judge(self, stack: str) -> int:
        """Dry-run all objects of a stack, and its pods and nodes; return their number.

        Raises:
            FindingError: the API server refuses one.
        """
        found = list(objects(registered(stack)))
        first = [manifest for manifest in found if manifest["kind"] in _FIRST]
        rest = [manifest for manifest in found if manifest["kind"] not in _FIRST]
        for manifest in first:
            self._create(manifest)
        every = [*rest, *(pod for manifest in rest for pod in pods(manifest)), *nodes(stack)]
        for manifest in every:
            self._apply(manifest, dry=True)
        return len(first) + len(every)

    def _create(self, manifest: Manifest) -> None:
        key = f"{manifest['kind']} {manifest['metadata']['name']}"
        if self._there.get(key) != manifest:
            self._apply(manifest, dry=False)
            self._there[key] = manifest

    def _apply(self, manifest: Manifest, *, dry: bool) -> None:
        query = {"fieldManager": "fuzz", "force": "true", "fieldValidation": "Strict"} | (
            {"dryRun": "All"} if dry else {}
        )
        metadata = manifest["metadata"]
        path, namespaced = self._path(manifest["apiVersion"], manifest["kind"])
        place = f"/namespaces/{metadata.get('namespace', 'default')}" if namespaced else ""
        base, _, plural = path.rpartition("/")
        try:
            self._api.request(
                "PATCH", f"{base}{place}/{plural}/{metadata['name']}", manifest, query, APPLY
            )
        except RefusedError as error:
            if not any(text in str(error) for text in _ELSEWHERE):
                kind = f"refused by the API server {manifest['kind']}"
                raise FindingError(kind, f"{metadata['name']}: {error}") from None

    def _path(self, version: str, kind: str) -> tuple[str, bool]:
        if (version, kind) not in self._paths:
            base = f"/apis/{version}" if "/" in version else f"/api/{version}"
            for resource in self._api.request("GET", base)["resources"]:
                if "/" not in resource["name"]:
                    self._paths[version, resource["kind"]] = (
                        f"{base}/{resource['name']}",
                        resource["namespaced"],
                    )
        return self._paths[version, kind]


def objects(recorder: Recorder) -> Iterator[Manifest]:
    """Yield the Kubernetes objects that a program registers, as the engine hands them on."""
    for registration in recorder.registrations:
        if registration.type.startswith("kubernetes:") and "kind" in registration.inputs:
            yield whole_numbers(registration.inputs)


def pods(manifest: Manifest) -> Iterator[Manifest]:
    """Yield a pod of each group of a RayCluster, RayJob or RayService, which no CRD checks."""
    spec = cluster_spec(manifest) if manifest["apiVersion"].startswith("ray.io/") else None
    groups = [spec["headGroupSpec"], *spec.get("workerGroupSpecs", [])] if spec else []
    templates = [group["template"] for group in groups]
    if (
        submitter := manifest.get("spec", {}).get("submitterPodTemplate")
        if spec is not None or groups
        else None
    ):
        templates.append(submitter)
    for number, template in enumerate(templates):
        metadata = template.get("metadata", {})
        names = {
            "name": f"{manifest['metadata']['name']}-{number}",
            "namespace": manifest["metadata"]["namespace"],
        }
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata | names,
            "spec": template["spec"],
        }


def nodes(stack: str) -> Iterator[Manifest]:
    """Yield a node of each pool, with its labels and taints."""
    loaded = load_stack(stack)
    for name, pool in loaded.settings.pools.items() if isinstance(loaded, Environment) else ():
        taints = [taint.model_dump() for taint in pool.taints]
        metadata = {"name": f"node-{name}", "labels": dict(pool.labels)}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints}}
