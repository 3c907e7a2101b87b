"""Google's documents about its APIs on the requests that the provider sends for berth."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from berth.components.gke.cluster_settings import ClusterSettings, Exclusion
from berth.components.gke.pool_settings import PoolSettings, Taint
from berth.stacks.load.stack import SettingsError
from tests.google.discovery import FILE, choices_of, facts_of, fields_on, problems_of, table
from tests.google.requests import Fields, requests_sent
from tests.unit.components.gke import environment_of

KNOWN = yaml.safe_load(FILE.with_name("differences.yaml").read_text(encoding="utf-8"))
GKE = "container.v1beta1"

SETTINGS: dict[str, tuple[type[BaseModel], str]] = {
    "GPUDriverInstallationConfig.gpuDriverVersion": (PoolSettings, "driver_version"),
    "HostMaintenancePolicy.maintenanceInterval": (PoolSettings, "host_maintenance"),
    "LoggingComponentConfig.enableComponents": (ClusterSettings, "logging"),
    "MaintenanceExclusionOptions.scope": (Exclusion, "scope"),
    "NodeTaint.effect": (Taint, "effect"),
    "ReleaseChannel.channel": (ClusterSettings, "release_channel"),
}
"""Setting with the values of a field of Google's."""

UNSENT = (
    ("compute.beta", "ResourcePolicyWorkloadPolicy.acceleratorTopologyMode"),
    ("compute.beta", "ResourcePolicyWorkloadPolicy.maxTopologyDistance"),
    (GKE, "GPUSharingConfig.gpuSharingStrategy"),
)
"""Fields that berth never sends, and for which a reader may look."""


def requests() -> Iterator[tuple[str, str, Fields]]:
    for api, sent in requests_sent().items():
        for request, fields in sent.items():
            yield api, request, fields


def test_google_knows_every_field_and_value_of_requests() -> None:
    found = {
        problem: f"{request}: {path}"
        for api, request, fields in requests()
        for path, values in fields.items()
        for problem in problems_of(api, request, path, values)
    }
    assert {text: place for text, place in found.items() if text not in KNOWN["requests"]} == {}
    assert [text for text in KNOWN["requests"] if text not in found] == []


@pytest.mark.parametrize(
    ("path", "values", "problem"),
    [
        ("cluster.releaseChanel.channel", ["RAPID"], "Cluster has no releaseChanel"),
        ("cluster.releaseChannel.channel", ["FAST"], "'FAST' is not one of Google's values"),
        ("cluster.shieldedNodes.enabled", ["true"], "'true' is not of type boolean"),
        ("cluster.masterAuthorizedNetworksConfig", [], "is deprecated"),
        ("cluster.resourceLabels.*", ["research"], ""),
    ],
)
def test_a_field_that_google_does_not_know_is_noticed(
    path: str, values: list[object], problem: str
) -> None:
    found = list(problems_of(GKE, "POST projects/{}/locations/{}/clusters", path, values))
    assert problem in "".join(found)
    assert bool(found) == bool(problem)


def sent_on_creation() -> dict[str, dict[str, set[Any]]]:
    """Return the values that were sent for fields with choices, by API and `Object.field`."""
    found: dict[str, dict[str, set[Any]]] = {api: {} for api in table()}
    for api, request, fields in requests():
        for path, values in fields.items() if request.startswith("POST ") else ():
            for name, field, facts in list(fields_on(api, request, path))[-1:]:
                if "choices" in facts:
                    found[api].setdefault(f"{name}.{field}", set()).update(values)
    return found


def values_of(model: type[BaseModel], setting: str) -> set[str]:
    """Return a setting's values in Google's spelling."""
    words = set(literals(model.model_fields[setting].annotation)) - {"SYSTEM"}
    return {
        "".join(
            f"_{letter}" if letter.isupper() and not word.isupper() else letter for letter in word
        )
        .upper()
        .replace("-", "_")
        .removeprefix("_")
        for word in words
    }


def literals(annotation: Any) -> Iterator[str]:
    if isinstance(annotation, str):
        yield annotation
    for argument in get_args(annotation):
        yield from literals(argument)


@pytest.mark.parametrize("field", SETTINGS)
def test_google_has_every_value_that_a_setting_offers(field: str) -> None:
    name, _, key = field.partition(".")
    offered = values_of(*SETTINGS[field])
    assert offered
    assert offered <= choices_of(GKE, name, key)


def test_values_of_google_that_berth_does_not_offer_have_their_reasons() -> None:
    sent = sent_on_creation()
    for field, (model, setting) in SETTINGS.items():
        sent[GKE].setdefault(field, set()).update(values_of(model, setting))
    for api, field in UNSENT:
        sent[api].setdefault(field, set())
    missing = {
        api: {
            field: choices_of(api, *field.split(".")) - values for field, values in of_api.items()
        }
        for api, of_api in sent.items()
    }
    named = {
        (api, field, value)
        for api, fields in KNOWN["values"].items()
        for field, reasons in fields.items()
        for value in reasons
    }
    assert named == {
        (api, field, value)
        for api, fields in missing.items()
        for field, values in fields.items()
        for value in values
    }


def refused(value: dict[str, Any]) -> str:
    """Return the place at which berth refuses settings of a cluster or a pool; "" for none."""
    cluster = value.get("cluster", {})
    pool = {"machineType": "n2-standard-4", "nodes": 1, **value.get("pool", {})}
    try:
        environment_of({"it": pool}, cluster=cluster)
    except SettingsError as error:
        return str(error)
    return ""


def test_settings_end_where_google_says() -> None:
    name = facts_of(GKE, "Cluster", "name")["longest"]
    assert refused({"cluster": {"name": "n" * name}}) == ""
    assert "environment.cluster.name" in refused({"cluster": {"name": "n" * (name + 1)}})
    disk = facts_of(GKE, "NodeConfig", "diskSizeGb")["least"]
    assert refused({"pool": {"diskSizeGb": disk}}) == ""
    assert "pools.it.diskSizeGb" in refused({"pool": {"diskSizeGb": disk - 1}})
    labels = facts_of(GKE, "NodeConfig", "labels")["longest"]
    many = {f"team-{number:04}": "x" * 63 for number in range(labels // 64)}
    assert "pools.it.labels" in refused({"pool": {"labels": many}})
    mtu = facts_of("compute.beta", "Network", "mtu")
    sent = requests_sent()["compute.beta"]["POST projects/{}/global/networks"]["mtu"]
    assert all(mtu["least"] <= value <= mtu["most"] for value in sent)
