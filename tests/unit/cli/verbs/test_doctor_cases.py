"""Findings of `berth doctor` by Google's answers: cases of google_cases.yaml."""

from typing import Any

import pytest

from berth.cli.verbs.doctor import capacity, machine, place
from berth.cli.verbs.doctor.capacity import Running
from berth.cli.verbs.doctor.findings import Finding
from berth.components.hardware.machines import MACHINES
from tests.unit.cases import table
from tests.unit.cli.verbs.recorded_google import Recorded, environment, only_missing, states

CASES = table(__file__, "google_cases.yaml")


def findings(check: str, case: dict[str, Any]) -> list[Finding]:
    google = Recorded(
        {key: answer for key, answer in case["answers"].items() if answer is not None}
    )
    settings = environment(**case.get("settings", {}))
    own = [Running(MACHINES[machine], *rest) for machine, *rest in case.get("own", [])]
    match check:
        case "quotas":
            return list(capacity.check_quotas(google, settings, own))
        case "reservations":
            return list(capacity.check_reservations(google, settings, own))
        case "zones":
            return place.check_zones(google, settings)
        case "gke":
            return place.check_gke(google, settings, "prod")
        case "networks":
            return list(place.check_networks(google, settings))
    return [machine.check_bucket(google, "state")]


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
