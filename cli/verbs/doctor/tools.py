"""Checks of the programs on this machine."""

import re
import shutil

from berth.cli.shell.programs import output_of
from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.components.core.errors import BerthError

TOPIC = Topic("tools")

PULUMI_AT_LEAST = (3, 250)
"""Oldest engine that berth is tested with: the lab builds it (lab/tools/pulumi)."""


def check(*, auth_plugin: bool) -> list[Finding]:
    """Check every program that an update needs, the login's plugin included, and useful ones."""
    names = [*(["gke-gcloud-auth-plugin"] if auth_plugin else []), "gcloud", "kubectl"]
    others = (
        TOPIC.found("installed", name=name) if shutil.which(name) else TOPIC.found(f"no-{name}") for name in names
    )
    return [_pulumi(), *others]


def _pulumi() -> Finding:
    if shutil.which("pulumi") is None:
        return TOPIC.found("no-pulumi")
    try:
        text = output_of("pulumi", "version")
    except BerthError:
        text = ""
    version = re.match(r"v?(\d+)\.(\d+)(\.\S*)?", text)
    if version is None:
        return TOPIC.found("no-version", said=text[:60] or "no output")
    if (int(version[1]), int(version[2])) < PULUMI_AT_LEAST:
        return TOPIC.found("old-pulumi", version=text, oldest=".".join(map(str, PULUMI_AT_LEAST)))
    return TOPIC.found("pulumi", version=text)
