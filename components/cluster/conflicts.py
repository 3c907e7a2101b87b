"""Conflicts of field managers: somebody else has written to a field that an update sets.

Pulumi's plugin gives up with the API server's text, such as `Apply failed with 1 conflict: conflict
with "kubectl-edit" using v1: .spec.hard.pods` (kubernetes 1.36, apimachinery managedfields).
"""

import re

_CONFLICT = re.compile(
    r'conflicts? with "(?P<manager>[^"]+)"(?: using [\w./-]+)?(?: at'
    r" [^:]+)?:(?P<fields>(?:\s+-?\s*\.\S+)+)"
)


def conflict_advice(error: str, stack: str) -> list[str]:
    """Return what to do about the conflicts that an error of an object names; none for others."""
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
