"""Checks of the programs on this machine."""

from __future__ import annotations

import re
import shutil

from berth.cli.shell.programs import output_of
from berth.cli.verbs.doctor.findings import Finding, Topic
from berth.components.core.errors import BerthError

TOPIC = Topic("tools")

PULUMI_AT_LEAST = (3, 250)
"""Oldest engine that berth is tested with: the lab builds it (lab/tools/pulumi)."""

AUTH_PLUGIN = "gke-gcloud-auth-plugin"

_PULUMI_DOCS = "https://www.pulumi.com/docs/install/"
_PLUGIN_DOCS = (
    "gcloud components install gke-gcloud-auth-plugin   # of a package manager: apt-get install"
    " google-cloud-cli-gke-gcloud-auth-plugin"
)

_ADVICE = {
    "gcloud": (
        "berth does not call it, but it logs you in to Google Cloud and fixes what is missing",
        "https://docs.cloud.google.com/sdk/docs/install",
    ),
    "kubectl": (
        "berth does not call it, but you may want to look at the cluster",
        "gcloud components install kubectl",
    ),
}


def check(*, auth_plugin: bool) -> list[Finding]:
    """Check every program that an update needs, and useful ones.

    Args:
        auth_plugin: the cluster's kubeconfig calls Google's credential plugin.
    """
    findings = [_pulumi()]
    if auth_plugin:
        loss = "without it nothing can be installed on the cluster"
        found = shutil.which(AUTH_PLUGIN)
        missing = TOPIC.missing(f"{AUTH_PLUGIN} is not on PATH: {loss}", _PLUGIN_DOCS)
        findings.append(TOPIC.fine(f"{AUTH_PLUGIN} is installed") if found else missing)
    for name, (use, remedy) in _ADVICE.items():
        if shutil.which(name):
            findings.append(TOPIC.fine(f"{name} is installed"))
        else:
            findings.append(TOPIC.unchecked(f"{name} is not on PATH: {use}", remedy))
    return findings


def _pulumi() -> Finding:
    if shutil.which("pulumi") is None:
        return TOPIC.missing(
            "pulumi is not on PATH", f'{_PULUMI_DOCS}   # for the lab: eval "$(.venv/bin/berth lab env)"'
        )
    try:
        text = output_of("pulumi", "version")
    except BerthError:
        text = ""
    found = re.match(r"v?(\d+)\.(\d+)(\.\S*)?", text)
    oldest = ".".join(map(str, PULUMI_AT_LEAST))
    if found is None:
        return TOPIC.unchecked(f"pulumi does not report its version ({text[:60] or 'no output'})", "pulumi version")
    if (int(found[1]), int(found[2])) < PULUMI_AT_LEAST:
        return TOPIC.missing(f"pulumi is {text}, older than {oldest}, which berth is tested with", _PULUMI_DOCS)
    return TOPIC.fine(f"pulumi {text}")
