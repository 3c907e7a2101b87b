from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from berth.lab.toolchain import installed
from berth.lab.toolchain.tools import BY_NAME, HELM, KUBECTL, PULUMI

if TYPE_CHECKING:
    from pathlib import Path

    from berth.lab.toolchain.tools import Tool


def _program(folder: Path, name: str, says: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


@pytest.mark.parametrize(("version", "good"), [("v3.260.0", True), ("v3.249.9", False)])
def test_a_new_enough_pulumi_with_its_python_host_is_used(programs: Path, version: str, good: bool) -> None:  # noqa: FBT001
    _program(programs, "pulumi", version)
    assert installed.find(PULUMI) is None
    _program(programs, "pulumi-language-python", "")
    expected = installed.Installed(version[1:], programs / "pulumi") if good else None
    assert installed.find(PULUMI) == expected


@pytest.mark.parametrize(
    ("tool", "version", "good"),
    [
        *((HELM, version, True) for version in ("v3.8.0", "v3.22.1")),
        *((HELM, version, False) for version in ("v3.7.2", "v4.0.0", "")),
        *((KUBECTL, version, True) for version in ("v1.35.9", "v1.37.0")),
        *((KUBECTL, version, False) for version in ("v1.34.1", "no version")),
        (BY_NAME["etcd"], "3.6.8", False),  # always built
    ],
)
def test_helm_has_to_be_a_recent_three_and_kubectl_one_minor_older(
    programs: Path,
    tool: Tool,
    version: str,
    good: bool,  # noqa: FBT001
) -> None:
    text = f'{{"clientVersion": {{"gitVersion": "{version}"}}}}' if tool is KUBECTL else version
    _program(programs, tool.name, text)
    assert (installed.find(tool) is not None) is good


def test_output_that_is_no_version_is_not_used(programs: Path) -> None:
    _program(programs, "kubectl", "no json")
    assert installed.find(KUBECTL) is None


def test_the_labs_own_links_are_not_taken_for_installed(programs: Path) -> None:
    _program(programs, "helm", "v3.22.0")
    assert installed.find(HELM, (programs.resolve(),)) is None
