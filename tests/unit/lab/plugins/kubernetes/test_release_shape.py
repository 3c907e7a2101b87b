from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pulumi import FileAsset, StringAsset

from berth.lab.plugins.kubernetes import release_shape
from berth.lab.plugins.provider import ProviderError


def nowhere(_: str) -> Path | None:
    return None


def test_every_option_is_recorded() -> None:
    inputs = release_shape.with_defaults({"chart": "./chart", "name": "r", "compat": "true"}, "team")
    assert inputs == {
        **dict.fromkeys(
            (
                *("allowNullValues", "atomic", "cleanupOnFail", "createNamespace", "dependencyUpdate", "devel"),
                *("disableCRDHooks", "disableOpenapiValidation", "disableWebhooks", "forceUpdate", "lint"),
                *("recreatePods", "renderSubchartNotes", "replace", "resetValues", "reuseValues", "skipAwait"),
                *("skipCrds", "verify", "waitForJobs"),
            ),
            False,
        ),
        "chart": "./chart",
        "description": "",
        "keyring": "",
        "name": "r",
        "namespace": "team",
        "postrender": "",
        "timeout": 300,
        "values": {},
        "version": "",
    }


def test_values_over_files_in_order() -> None:
    files = [StringAsset("a: {b: 1, c: 1}"), StringAsset("a: {c: 2}\nd: 3")]
    given = {"valueYamlFiles": files, "values": {"a": {"b": None}}}
    assert release_shape.values_of(given, nowhere) == {"a": {"b": None, "c": 2}, "d": 3}


@pytest.mark.parametrize(
    ("asset", "message"),
    [
        (FileAsset("missing.yaml"), "missing.yaml is not there"),
        (StringAsset("- a"), "not a mapping"),
        (StringAsset("a: ["), "not YAML"),
    ],
)
def test_value_files_that_cannot_be_read(asset: Any, message: str) -> None:
    with pytest.raises(ProviderError, match=message):
        release_shape.values_of({"valueYamlFiles": [asset]}, nowhere)


def test_flags() -> None:
    given = {
        "chart": "c",
        "version": "1.2.3",
        "createNamespace": True,
        "skipCrds": True,
        "atomic": True,
        "timeout": 60,
        "repositoryOpts": {"repo": "file:///charts"},
    }
    inputs = release_shape.with_defaults(given, "n")
    assert release_shape.install_flags(inputs) == [
        *("--atomic", "--create-namespace", "--skip-crds", "--version", "1.2.3", "--repo", "file:///charts"),
        *("--wait", "--timeout", "60s"),
    ]
    upgrade = release_shape.upgrade_flags({**inputs, "skipAwait": True, "maxHistory": 3.0})
    assert "--wait" not in upgrade
    assert "--create-namespace" not in upgrade
    assert upgrade[-2:] == ["--history-max", "3"]


@pytest.mark.parametrize(
    ("option", "flag"),
    [
        ("disableOpenapiValidation", "--disable-openapi-validation"),
        ("disableWebhooks", "--no-hooks"),
        ("skipCrds", "--skip-crds"),
        ("createNamespace", "--create-namespace"),
    ],
)
def test_options_that_the_real_plugin_gives_to_an_installation_only(option: str, flag: str) -> None:
    """pulumi-kubernetes v4.32.0, provider/pkg/provider/helm_release.go: set in helmCreate, and not in helmUpdate."""
    inputs = release_shape.with_defaults({"chart": "c", option: True}, "n")
    assert flag in release_shape.install_flags(inputs)
    assert flag not in release_shape.upgrade_flags(inputs)


def test_an_upgrade_without_hooks() -> None:
    inputs = release_shape.with_defaults({"chart": "c", "disableCRDHooks": True}, "n")
    assert "--no-hooks" in release_shape.upgrade_flags(inputs)
    assert "--no-hooks" not in release_shape.install_flags(inputs)


def test_names_by_kind() -> None:
    manifest = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
---
# empty
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: n}
"""
    assert release_shape.resource_names(manifest) == {"ConfigMap/v1": ["a", "b"], "Deployment.apps/apps/v1": ["n/d"]}
