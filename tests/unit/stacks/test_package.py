"""Components of the Pulumi package, and its schema."""

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.provider.server import ProviderServicer

from berth.stacks.package.provider import PackageProvider
from berth.stacks.package.schema import package_schema
from tests.unit.recording import Recorder, run

ENVIRONMENT = "berth:index:Environment"
POOLS = {"cpu": {"machineType": "n2-standard-16", "nodes": 1}}
SETTINGS = {
    "project": "my-project",
    "zone": "us-central1-b",
    "pools": POOLS,
    "engineers": {"alice": {"worker": {"gpus": 0}}},
}


def construct(
    components: Mapping[str, dict[str, Any]], kind: str = ENVIRONMENT
) -> tuple[Recorder, dict[str, Any]]:
    """Registrations of components, by name and inputs, with outputs by name."""
    made = {}

    async def one(name: str, inputs: dict[str, Any]) -> None:
        # The engine's calls have a context of their own, as tasks have.
        result = PackageProvider().construct(name, kind, inputs)
        made[name] = await pulumi.Output.all(**result.state).future()

    async def program() -> None:
        tasks = [asyncio.create_task(one(*component)) for component in components.items()]
        await asyncio.gather(*tasks)

    return run(program, "demo"), made


def test_components_of_one_program_share_no_name() -> None:
    recorder, _ = construct({"research": SETTINGS, "train": SETTINGS})
    seen = Counter((made.type, made.name) for made in recorder.registrations)
    assert [name for name, count in seen.items() if count > 1] == []
    begin = {made.name.partition("-")[0] for made in recorder.registrations}
    assert begin == {"research", "train"}
    clusters = recorder.of_type("gcp:container/cluster:Cluster")
    assert sorted(made.inputs["name"] for made in clusters) == ["research", "train"]
    rays = recorder.of_type("kubernetes:ray.io/v1:RayCluster")
    assert sorted(made.name for made in rays) == ["research-alice", "train-alice"]
    assert {made.inputs["metadata"]["name"] for made in rays} == {"alice"}


def test_a_cluster_keeps_the_name_that_its_settings_give_it() -> None:
    recorder, _ = construct({"research": SETTINGS | {"cluster": {"name": "gpus"}}})
    (cluster,) = recorder.of_type("gcp:container/cluster:Cluster")
    assert (cluster.name, cluster.inputs["name"]) == ("research-gpus", "gpus")


def test_a_name_that_is_null_is_the_component_s() -> None:
    recorder, _ = construct({"research": SETTINGS | {"cluster": {"name": None}}})
    (cluster,) = recorder.of_type("gcp:container/cluster:Cluster")
    assert cluster.inputs["name"] == "research"


def test_outputs_are_of_the_types_of_the_schema() -> None:
    _, made = construct({"research": SETTINGS})
    outputs = package_schema()["resources"][ENVIRONMENT]["properties"]
    kinds = {"string": str, "array": list, "object": dict}
    wrong = {
        name: made["research"][name]
        for name, output in outputs.items()
        if not isinstance(made["research"][name], kinds[output["type"]])
    }
    assert wrong == {}
    assert made["research"]["berths"] == ["alice"]


def refusal(settings: dict[str, Any], kind: str = ENVIRONMENT) -> str:
    """Error as the engine shows it: text, and paths of inputs, whose values it shows too."""
    with pytest.raises(pulumi.InputPropertiesError) as refused:
        construct({"research": settings}, kind)
    error = refused.value
    servicer = ProviderServicer(PackageProvider(), [], "")
    sent = servicer.create_grpc_invalid_properties_status(error.message, error.errors)
    assert sent.trailing_metadata, "the SDK can send it"
    return " ".join([error.message, *(found["property_path"] for found in error.errors or ())])


def test_secrets_are_refused_since_they_would_be_plain_text() -> None:
    engineers = {"alice": {"env": {"TOKEN": pulumi.Output.secret("hf_1")}}}
    shown = refusal(SETTINGS | {"engineers": engineers})
    assert shown.startswith("research: inputs with a secret: engineers; ")
    assert not shown.endswith(" engineers"), "no path, by which the engine shows the secret"


def test_what_cannot_be_made_is_shown_by_its_own_text() -> None:
    shown = refusal({"environment": "organization/research/own"}, "berth:index:EngineerBerth")
    assert shown.startswith("environment 'organization/research/own' has no output `environment`")


def test_problems_have_the_paths_of_the_inputs() -> None:
    assert refusal(SETTINGS | {"colour": "blue"}).endswith(" colour")


def test_all_settings_but_those_of_other_programs_have_a_type() -> None:
    """Helm values, arguments of Google's provider, pod templates, Ray's and Serve's own configs."""
    free = set()

    def look(key: str, node: Any) -> None:
        if isinstance(node, dict):
            if node.get("$ref") == "pulumi.json#/Any":
                free.add(key)
            for inner, value in node.items():
                look(key if inner in ("additionalProperties", "items") else inner, value)

    schema = package_schema()
    look("", schema["types"])
    look("", {token: node["inputProperties"] for token, node in schema["resources"].items()})
    assert free == {"arguments", "podTemplate", "runtimeEnv", "serveConfig", "values"}


def test_texts_of_which_only_some_are_allowed_are_enums() -> None:
    types = package_schema()["types"]
    rdma = types["berth:index:PoolSettings"]["properties"]["rdma"]
    assert rdma["$ref"] == "#/types/berth:index:PoolRdma"
    values = [member["value"] for member in types["berth:index:PoolRdma"]["enum"]]
    assert values == ["none", "managed", "networks"]


def test_the_program_leaves_quietly_when_the_engine_closes_it() -> None:
    program = Path(sys.executable).with_name("pulumi-resource-berth")
    pipe = subprocess.PIPE
    with subprocess.Popen([program, "127.0.0.1:1"], stdout=pipe, stderr=pipe, text=True) as running:
        assert running.stdout
        assert running.stdout.readline().strip().isdigit(), "the port, once it serves"
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate()
    assert (running.returncode, errors) == (0, "")
