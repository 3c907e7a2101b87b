"""Conflicts of field managers in the texts of Pulumi's plugin and the API server."""

import pytest

from berth.components.cluster.conflicts import NEWER_CRDS, conflict_advice
from tests.unit.cases import table

HEAD = """Server-Side Apply field conflict detected. \
See https://www.pulumi.com/registry/ for troubleshooting help.
The resource managed by field manager "berth-lab" had an apply conflict: Apply failed with """


@pytest.mark.parametrize(("text", "lines"), table(__file__, "conflicts.yaml"))
def test_a_conflict_names_its_manager_and_fields(text: str, lines: list[str]) -> None:
    found = conflict_advice(HEAD + text, "lab")
    assert found[: len(lines)] == lines
    assert "PULUMI_K8S_ENABLE_PATCH_FORCE=true berth up -s lab" in found[-2]
    assert found[-1].endswith("pulumi up -s lab --skip-preview --continue-on-error")


def test_other_errors_have_no_such_advice() -> None:
    assert conflict_advice("the namespace is not found", "lab") == []


def test_a_field_that_kuberays_crds_lack_comes_with_what_brings_them_up_to_date() -> None:
    advice = conflict_advice(
        "failed to create typed patch object (berth-x/x; ray.io/v1, Kind=RayCluster):"
        " .spec.upgradeStrategy: field not declared in schema",
        "lab",
    )
    why, command = advice
    assert why == (
        "the CRDs of KubeRay on the cluster are older than .spec.upgradeStrategy, which berth"
        " writes: bring them up to date, then berth up -s lab goes on"
    )
    assert command == NEWER_CRDS


def test_a_field_that_another_kind_lacks_has_no_such_advice() -> None:
    text = "(x/x; apps/v1, Kind=Deployment): .spec.x: field not declared in schema"
    assert conflict_advice(text, "lab") == []
