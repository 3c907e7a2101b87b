"""`berth explain`."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, get_args

import pytest
import yaml
from pydantic import BaseModel, TypeAdapter
from typer.testing import CliRunner

from berth.cli.main import app
from berth.cli.verbs.explain.schema_nodes import yaml_flow
from berth.cli.verbs.explain.search import settings_named
from berth.cli.verbs.explain.settings import root_settings, setting_at, with_settings_inside
from berth.components.core.errors import BadInputError
from berth.stacks.load.schema import schema
from berth.stacks.load.stack import KINDS
from tests.unit.cases import table


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    """Schema of all settings."""
    return schema()


@pytest.mark.parametrize(("path", "found"), table(__file__, "explain.yaml"))
def test_a_path_finds_its_setting(path: str, found: str, known: dict[str, Any]) -> None:
    assert setting_at(known, path).path == found


@pytest.mark.parametrize(("path", "found"), table(__file__, "explain_ends.yaml"))
def test_the_end_of_a_path_finds_all_settings_that_end_so(
    path: str, found: list[str], known: dict[str, Any]
) -> None:
    assert [setting.path for setting in settings_named(known, path)] == found


def test_one_setting_of_a_name_is_shown_and_several_are_listed() -> None:
    invoke = CliRunner().invoke
    shown = invoke(app, ["explain", "hourlyRate"]).stdout
    assert shown.startswith("environment.pools.NAME.hourlyRate  ")
    document = json.loads(invoke(app, ["explain", "hourlyRate", "--json"]).stdout)
    assert document["path"] == "environment.pools.NAME.hourlyRate"
    several = invoke(app, ["explain", "worker"])
    assert several.exit_code == 0
    assert "  environment.engineers.ENGINEER.worker  mapping\n" in several.stdout
    assert "  engineer.worker  mapping\n" in several.stdout
    assert several.stdout.endswith("One of them: berth explain PATH\n")
    refused = invoke(app, ["explain", "worker", "--json"])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "name one: engineer.worker, environment.defaults.worker, " in refused.stderr


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("rmda", "rdma"),
        ("hourlyrate", "hourlyRate"),
        ("polls.rdma", "pools.rdma"),
        ("engineer.wroker", "worker"),
        ("polls", "pools"),
    ],
)
def test_a_misspelled_end_is_refused_with_the_nearest_one(
    path: str, near: str, known: dict[str, Any]
) -> None:
    with pytest.raises(BadInputError, match=f"did you mean '{near}'"):
        settings_named(known, path)


@pytest.mark.parametrize(("path", "near"), [("pools.capasity", "capacity"), ("polls", "pools")])
def test_a_misspelled_path_is_refused_with_the_nearest_name(
    path: str, near: str, known: dict[str, Any]
) -> None:
    with pytest.raises(BadInputError, match=f"did you mean '{near}'"):
        setting_at(known, path)


def test_the_verb_shows_type_default_and_what_an_edit_does() -> None:
    shown = CliRunner().invoke(app, ["explain", "pools.diskSizeGb"]).stdout
    assert "environment.pools.NAME.diskSizeGb  integer" in shown
    assert "default: 200" in shown
    assert "an edit: recreates the nodes of the pool" in shown
    assert "for example: 500" in shown
    document = json.loads(
        CliRunner().invoke(app, ["explain", "engineers.worker", "--json", "--recursive"]).stdout
    )
    inside = {field["path"].rpartition(".")[2]: field for field in document["fields"]}
    assert inside["memory"]["effect"] == "restarts the RayCluster"
    assert inside["memory"]["examples"] == ["32Gi"]


def test_settings_of_defaults_clusters_and_own_stacks_have_the_effect_of_an_engineers(
    known: dict[str, Any],
) -> None:
    paths = (
        "engineers.worker.cpu",
        "defaults.worker.cpu",
        "clusters.worker.cpu",
        "engineer.worker.cpu",
    )
    assert {setting_at(known, path).effect for path in paths} == {"restarts the RayCluster"}
    assert setting_at(known, "jobs.worker.cpu").effect == "runs the job again"


def test_every_setting_has_a_description_and_an_example(known: dict[str, Any]) -> None:
    found = [
        (root, setting) for root in root_settings(known) for setting in with_settings_inside(root)
    ]
    # Entries of mappings and lists have the description of the setting that holds them.
    named = [
        pair for pair in found if not pair[1].name.isupper() and not pair[1].path.endswith("[]")
    ]
    assert [setting.path for _, setting in named if not setting.description] == []
    assert [
        setting.path for root, setting in named if setting is not root and not setting.examples
    ] == []


def models(model: type[BaseModel], found: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """A model of settings, and all models inside it."""
    if model not in found:
        found.add(model)
        for field in model.model_fields.values():
            for inner in models_of(field.annotation):
                models(inner, found)
    return found


def models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_of(part)


MODELS = sorted(
    set[type[BaseModel]]().union(*(models(kind, set()) for kind in KINDS.values())), key=str
)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_examples_of_a_setting_are_valid(model: type[BaseModel]) -> None:
    for key, node in model.model_json_schema(by_alias=True).get("properties", {}).items():
        name = next(
            name for name, field in model.model_fields.items() if key in (name, field.alias)
        )
        field = model.model_fields[name]
        declared: Any = Annotated[field.annotation, None, *field.metadata]
        checked: TypeAdapter[Any] = TypeAdapter(declared)
        for example in node.get("examples", []):
            checked.validate_python(example)


@pytest.mark.parametrize(("value", "text"), table(__file__, "explain_values.yaml"))
def test_a_value_in_flow_style_is_what_yaml_reads_back(value: Any, text: str) -> None:
    assert yaml_flow(value) == text
    assert yaml.safe_load(text) == value
