"""Checks of the programs on this machine that an update needs."""

import re
import shutil

from berth.cli.shell.programs import output_of
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.components.core.errors import BerthError

TOOLS = Topic("tools")

PULUMI_AT_LEAST = (3, 250)
"""Oldest engine that berth is tested with: the lab builds it (lab/tools/pulumi)."""

_SHOWN_CHARACTERS = 60


def check_programs(*, auth_plugin: bool) -> list[DoctorFinding]:
    """Check every program that an update needs, and useful ones.

    Args:
        auth_plugin: whether kubeconfigs log in by GKE's plugin.
    """
    findings = [_check_pulumi()]
    if auth_plugin:
        findings.append(_check_auth_plugin())
    return [*findings, _check_gcloud(), _check_kubectl()]


def _check_pulumi() -> DoctorFinding:
    if shutil.which("pulumi") is None:
        return TOOLS.missing(
            "pulumi is not on PATH",
            "https://www.pulumi.com/docs/install/   # or bring the lab up, which has its own: make"
            " lab",
        )
    try:
        text = output_of("pulumi", "version")
    except BerthError:
        text = ""
    version = re.match(r"v?(\d+)\.(\d+)(\.\S*)?", text)
    if version is None:
        answer = text[:_SHOWN_CHARACTERS] or "no output"
        return TOOLS.unchecked(f"pulumi does not report its version ({answer})", "pulumi version")
    if (int(version[1]), int(version[2])) < PULUMI_AT_LEAST:
        oldest = ".".join(map(str, PULUMI_AT_LEAST))
        return TOOLS.missing(
            f"pulumi is {text}, older than {oldest}, which berth is tested with",
            "https://www.pulumi.com/docs/install/",
        )
    return TOOLS.fine(f"pulumi {text}")


def _check_auth_plugin() -> DoctorFinding:
    if shutil.which("gke-gcloud-auth-plugin"):
        return TOOLS.fine("gke-gcloud-auth-plugin is installed")
    return TOOLS.missing(
        "gke-gcloud-auth-plugin is not on PATH: without it nothing can be installed on the cluster",
        "gcloud components install gke-gcloud-auth-plugin   # of a package manager: apt-get install"
        " google-cloud-cli-gke-gcloud-auth-plugin",
    )


def _check_gcloud() -> DoctorFinding:
    if shutil.which("gcloud"):
        return TOOLS.fine("gcloud is installed")
    return TOOLS.unchecked(
        "gcloud is not on PATH: berth does not call it, but it logs you in to Google Cloud and"
        " fixes what is missing",
        "https://docs.cloud.google.com/sdk/docs/install",
    )


def _check_kubectl() -> DoctorFinding:
    if shutil.which("kubectl"):
        return TOOLS.fine("kubectl is installed")
    return TOOLS.unchecked(
        "kubectl is not on PATH: berth does not call it, but you may want to look at the cluster",
        "gcloud components install kubectl",
    )
