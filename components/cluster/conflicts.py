"""Refusals of server-side apply: conflicts of field managers, and fields that a CRD lacks.

Pulumi's plugin gives up with the API server's text, such as `Apply failed with 1 conflict: conflict
with "kubectl-edit" using v1: .spec.hard.pods` (kubernetes 1.36, apimachinery managedfields),
or `failed to create typed patch object (berth-x/x; ray.io/v1, Kind=RayCluster): .spec.authOptions:
field not declared in schema` (structured-merge-diff, typed/validate.go).
"""

import re

from berth.components.hardware.versions import KUBERAY

NEWER_CRDS = (
    "kubectl apply --server-side --force-conflicts -k"
    f" 'github.com/ray-project/kuberay/ray-operator/config/crd?ref=v{KUBERAY}'"
)
"""Command that brings KubeRay's CRDs up to date: the folder is KubeRay's own kustomization."""

_CONFLICT = re.compile(
    r'conflicts? with "(?P<manager>[^"]+)"(?: using [\w./-]+)?(?: at'
    r" [^:]+)?:(?P<fields>(?:\s+-?\s*\.\S+)+)"
)
_UNDECLARED = re.compile(r"(?P<field>\.[\w.\[\]\"=/-]+): field not declared in schema")
_RAY_KIND = re.compile(r"ray\.io/v1, Kind=Ray\w+")


def conflict_advice(error: str, stack: str) -> list[str]:
    """Return what to do about a refusal of server-side apply that an error has; none for others."""
    if _RAY_KIND.search(error) and (fields := _UNDECLARED.findall(error)):
        older_than = ", ".join(dict.fromkeys(fields))
        cause = f"the CRDs of KubeRay on the cluster are older than {older_than}, which berth"
        return [
            f"{cause} writes: bring them up to date, then berth up -s {stack} goes on",
            NEWER_CRDS,
        ]
    lines = []
    for conflict in _CONFLICT.finditer(error):
        fields = [field.strip(" -") for field in conflict["fields"].split()]
        lines.append(f"{conflict['manager']} has set {', '.join(filter(None, fields))}")
    if lines:
        lines += [
            (
                "write its value into the settings, or take the field back:"
                f" PULUMI_K8S_ENABLE_PATCH_FORCE=true berth up -s {stack}"
            ),
            (
                f"update everything else meanwhile: pulumi up -s {stack} --skip-preview"
                " --continue-on-error"
            ),
        ]
    return lines
