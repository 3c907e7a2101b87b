"""Google's APIs by their recorded answers: what is not recorded is not there."""

from collections.abc import Iterable
from typing import Any

from berth.cli.reach.google_cloud import GoogleClient, GoogleError
from berth.cli.verbs.doctor.findings import DoctorFinding
from berth.stacks.settings.environment import EnvironmentSettings

PROJECT = "your-project"


class Recorded(GoogleClient):
    """Answers by service and path, below `projects/your-project/` where that is left out."""

    def __init__(self, answers: dict[str, Any], account: str = "") -> None:
        self.project = PROJECT
        self.account = account
        self.simulated = ""
        self.answers = answers
        self.asked: list[str] = []

    def _call(self, method: str, service: str, path: str, **arguments: Any) -> dict[str, Any]:
        del method
        key = f"{service} {path.removeprefix(f'projects/{PROJECT}').lstrip('/')}".strip()
        self.asked.append(key)
        if key not in self.answers:
            raise GoogleError("absent", f"The resource '{path}' was not found")
        answer = self.answers[key]
        if isinstance(answer, GoogleError):
            raise answer
        if callable(answer):
            return dict(answer(arguments.get("json") or arguments.get("params") or {}))
        return dict(answer)


def environment(**changes: Any) -> EnvironmentSettings:
    given = {
        "project": PROJECT,
        "zone": "us-central1-b",
        "pools": {
            "cpu": {"machineType": "n2-standard-16", "nodes": 2},
            "train": {"machineType": "a4-highgpu-8g", "nodes": 2},
        },
    }
    return EnvironmentSettings.model_validate(given | changes, by_alias=True, by_name=False)


def pool(machine_type: str, nodes: Any = 1, **more: Any) -> dict[str, Any]:
    return {"machineType": machine_type, "nodes": nodes, **more}


def states(findings: Iterable[DoctorFinding]) -> list[str]:
    return [finding.state for finding in findings]


def only_missing(findings: Iterable[DoctorFinding]) -> DoctorFinding:
    missing = [finding for finding in findings if finding.state == "missing"]
    assert len(missing) == 1, findings
    return missing[0]
