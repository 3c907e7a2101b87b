"""Facts about the fields of Google's provider: they are those of its source, for every field
that berth sets.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from berth.components.gke.effects import cluster as gke_cluster
from berth.components.gke.effects import node_pool
from berth.components.gke.effects.pool_size import SIZE_FIELDS
from berth.components.gke.effects.stays import ADVICE, UNMENTIONED
from berth.components.gke.field_rules import FORMATS
from berth.components.gke.node_pool import TIMEOUTS
from berth.components.gke.provider_fields import CLUSTER, FILE, NODE_POOL, resource_fields
from berth.components.programs.lifetimes import parse_duration
from berth.lab.home import CLONE
from berth.lab.plugins.gcp.suppressed import NEVER_MET, SUPPRESSIONS
from docs.provider_fields import distilled, is_input, text
from tests.unit.cases import table
from tests.unit.components.gke.registered import (
    at_times,
    google_registrations,
    registered_fields,
)

SHARED = CLONE.parent / "shared"
RESULTS = SHARED / "oracle/results.json"
FACTS = SHARED / "upstream/google-provider/fields.json"
PART = Path(__file__).parent / "google_provider_fields.json"

needs_whole = pytest.mark.skipif(
    not (RESULTS.exists() and FACTS.exists()),
    reason=f"needs the provider's fields: {RESULTS} or {FACTS} is absent",
)


def whole() -> dict[str, Any]:
    """Both files that the table is made of."""
    return {
        "results": json.loads(RESULTS.read_text(encoding="utf-8")),
        "facts": json.loads(FACTS.read_text(encoding="utf-8")),
    }


def part_of(results: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Part of the facts that this folder keeps: those about the fields that berth sets."""
    fields = {token: set(paths) for token, paths in registered_fields().items()}
    # The first pool's node has the fields of a pool's.
    fields[NODE_POOL] |= {path for path in fields[CLUSTER] if path.startswith("nodeConfig.")}
    compiled = {}
    read = {}
    for token, resource in results["resources"].items():
        rows = {
            path: row
            for path, row in resource["fields"].items()
            if is_input(row) and path in fields[token]
        }
        compiled[token] = {**resource, "fields": rows}
        names = {row["terraform"] for row in rows.values()}
        of_source = facts["resources"].get(resource["terraform"], {})
        read[resource["terraform"]] = {
            name: row for name, row in of_source.items() if name in names
        }
    kept = {key: facts[key] for key in ("source", "customizeDiff", "createErrors")}
    return {
        "results": {"source": results["source"], "resources": compiled},
        "facts": kept | {"resources": read},
    }


@needs_whole
def test_the_facts_are_those_of_the_compiled_provider_and_of_its_source() -> None:
    assert FILE.read_text(encoding="utf-8") == text(distilled(**whole())), (
        f"run: python -m docs.provider_fields {RESULTS} {FACTS}"
    )


@needs_whole
def test_the_part_of_the_facts_in_the_tests_is_a_part_of_the_whole(
    request: pytest.FixtureRequest,
) -> None:
    part = part_of(**whole())
    if request.config.getoption("--update-golden"):
        # One line for each field.
        lines = re.sub(r"(?<=[{}],) (?=\"[\w.*]+\": [{\[])", "\n", json.dumps(part))
        PART.write_text(f"{lines}\n", encoding="utf-8")
    assert json.loads(PART.read_text(encoding="utf-8")) == part, (
        "write it anew with --update-golden"
    )


def kept_part() -> dict[str, Any]:
    """The table of the part that this folder keeps."""
    return distilled(**json.loads(PART.read_text(encoding="utf-8")))


def test_the_product_has_the_facts_about_every_field_that_berth_sets() -> None:
    part = kept_part()
    shipped = json.loads(FILE.read_text(encoding="utf-8"))
    assert part["source"] == shipped["source"]
    assert part["timeouts"] == shipped["timeouts"]
    for token, rows in part["resources"].items():
        assert {path: shipped["resources"][token].get(path) for path in rows} == rows


def test_every_field_that_berth_sets_is_one_of_the_part() -> None:
    part = kept_part()["resources"]
    nested = {path for path in part[NODE_POOL] if path.startswith("nodeConfig.")}
    for token, fields in registered_fields().items():
        assert fields, f"no case registers a {token}"
        assert fields - part[token].keys() - (nested if token == CLUSTER else set()) == set()


def test_every_type_that_berth_registers_has_facts() -> None:
    assert {registration.type for registration in google_registrations()} == {*resource_fields()}


def test_the_lab_knows_what_suppresses_a_difference_in_each_field_that_berth_sets() -> None:
    functions = {
        fact.suppress.partition("(")[0]
        for token, fields in registered_fields().items()
        for path in fields
        if (fact := resource_fields()[token].fields[path]).suppress
    }
    assert functions - SUPPRESSIONS - NEVER_MET.keys() == set()


def fields_in(texts: Mapping[str, Mapping[str, str]]) -> set[tuple[str, str]]:
    """Types and paths of the fields that texts are about."""
    return {(token, path) for token, fields in texts.items() for path in fields}


def test_values_that_stay_are_told_for_every_field_that_is_sent_at_times_only() -> None:
    staying = {
        (token, path)
        for token, path in at_times()
        if (fact := resource_fields()[token].fields[path]).keeps or fact.sticks
    }
    assert staying - fields_in(ADVICE) - fields_in(UNMENTIONED) == set()


def test_what_is_told_of_a_value_that_stays_is_of_one_that_may_be_left_out() -> None:
    assert not fields_in(ADVICE) & fields_in(UNMENTIONED)
    for token, path in fields_in(ADVICE) | fields_in(UNMENTIONED):
        fact = resource_fields()[token].fields[path]
        assert fact.keeps or fact.sticks, path
        assert (token, path) in at_times(), f"berth always sends {path}"


@pytest.mark.parametrize("operation", ["create", "update", "delete"])
def test_no_timeout_of_berth_is_shorter_than_the_providers(operation: str) -> None:
    given = getattr(TIMEOUTS, operation)
    assert given is None or parse_duration(given) > resource_fields()[NODE_POOL].timeouts[operation]


def test_every_rule_of_the_preview_is_of_a_field_that_changes_in_place_so() -> None:
    pools = resource_fields()[NODE_POOL].fields
    cluster = resource_fields()[CLUSTER].fields
    assert {path: pools[path].nodes for path in node_pool.RECREATING_FIELDS} == dict.fromkeys(
        node_pool.RECREATING_FIELDS, "yes"
    )
    assert {path: pools[path].nodes for path in SIZE_FIELDS} == dict.fromkeys(SIZE_FIELDS, "no")
    assert {path: cluster[path].nodes for path in gke_cluster.RECREATING_FIELDS} == dict.fromkeys(
        gke_cluster.RECREATING_FIELDS, "yes"
    )
    others = [*gke_cluster.UNNOTICED_FIELDS, *gke_cluster.DISTURBING_FIELDS]
    of_control_plane = dict.fromkeys(gke_cluster.CONTROL_PLANE_FIELDS, "unknown")
    assert {path: cluster[path].nodes for path in others} == dict.fromkeys(
        others, "no"
    ) | of_control_plane
    replaced = [
        path for path in (*gke_cluster.RECREATING_FIELDS, *others) if cluster[path].replaces
    ]
    assert (
        replaced
        + [path for path in (*node_pool.RECREATING_FIELDS, *SIZE_FIELDS) if pools[path].replaces]
        == []
    )


def test_the_lab_checks_every_format_of_a_field_that_berth_sets() -> None:
    formats = {
        fact.format.partition("(")[0]
        for token, fields in registered_fields().items()
        for path in fields
        if (fact := resource_fields()[token].fields[path]).format
    }
    assert formats - FORMATS.keys() == set()


@pytest.mark.parametrize(("path", "known", "nodes"), table(__file__, "provider_fields.yaml"))
def test_a_path_of_the_engine_leads_to_its_field(path: str, known: bool, nodes: str) -> None:
    fact = resource_fields()[NODE_POOL].field_at(path)
    assert (fact is not None) is known
    assert fact is None or fact.nodes == nodes
