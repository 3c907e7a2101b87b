"""Rule of Google groups, of which a new cluster knows none until its settings name one."""

from __future__ import annotations

from collections.abc import Iterable

from berth.components.core.problems import Path, Problem
from berth.stacks.settings.environment import EnvironmentSettings


def warnings(settings: EnvironmentSettings) -> Iterable[Problem]:
    """Return `groups` under `access` that would give nobody access on a cluster of berth's own."""
    if settings.cluster.existing or settings.cluster.security_group:
        return
    written: dict[Path, list[str]] = {("defaults",): settings.defaults.access.groups}
    for key in ("engineers", "clusters", "jobs", "services"):
        written |= {(key, name): shape.access.groups for name, shape in getattr(settings, key).items()}
    for path, groups in written.items():
        if groups:
            yield Problem(
                ("environment", *path, "access", "groups"),
                "gives nobody access: the cluster knows no Google groups; write `cluster: {securityGroup:"
                f" gke-security-groups@{groups[0].partition('@')[2] or 'YOUR-DOMAIN'}}}`",
            )
