"""Findings of `berth doctor` by Google's answers: cases of google_cases.yaml."""

from typing import Any

import pytest

from berth.cli.verbs.doctor import state
from berth.cli.verbs.doctor.findings import DoctorFinding
from berth.cli.verbs.doctor.google_cloud import (
    gke_version,
    networks,
    quotas,
    reservations,
    shared_vpc,
    zones,
)
from berth.cli.verbs.doctor.google_cloud.running_machines import RunningMachine
from berth.components.hardware.machines import MACHINES
from tests.unit.cases import table
from tests.unit.cli.verbs.recorded_google import Recorded, environment, only_missing, states

CASES = table(__file__, "google_cases.yaml")


def findings(check: str, case: dict[str, Any]) -> list[DoctorFinding]:
    google = Recorded(
        {key: answer for key, answer in case["answers"].items() if answer is not None}
    )
    settings = environment(**case.get("settings", {}))
    own = [RunningMachine(MACHINES[machine], *rest) for machine, *rest in case.get("own", [])]
    match check:
        case "quotas":
            return list(quotas.check_quotas(google, settings, own))
        case "reservations":
            return list(reservations.check_reservations(google, settings, own))
        case "zones":
            return zones.check_zones(google, settings)
        case "gke":
            return [gke_version.check_gke(google, settings, "prod")]
        case "shared VPC":
            return list(shared_vpc.check_shared_vpc(google, settings))
        case "networks":
            return list(networks.check_networks(google, settings))
    return [state.check_bucket(google, "state")]


@pytest.mark.parametrize(
    ("check", "case"),
    [
        pytest.param(check, case, id=f"{check}: {case['name']}")
        for check, cases in CASES.items()
        for case in cases
    ],
)
def test_findings(check: str, case: dict[str, Any]) -> None:
    found = findings(check, case)
    if "found" in case:
        assert states(found) == case["found"]
    if "missing" in case:
        missing = only_missing(found)
        assert case["missing"] in missing.text
        assert case.get("remedy", "") in missing.remedy
    texts = [finding.text for finding in found]
    assert [
        words for words in case.get("texts", []) if not any(words in text for text in texts)
    ] == []
