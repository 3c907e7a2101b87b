from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from berth.lab.plugins.kubernetes.helm_release import Releases
from berth.lab.plugins.provider import CreateRequest, Engine, ProviderError

NOT_SERVED = """\
Error: INSTALLATION FAILED: unable to build kubernetes objects from release manifest: resource mapping not found for \
name: "cluster-policy" namespace: "" from "": no matches for kind "ClusterPolicy" in version "nvidia.com/v1"
ensure CRDs are installed first"""
"""Error of helm 3.21.4 beside a busy API server."""
RELEASE = {
    "name": "one",
    "namespace": "space",
    "version": 1,
    "info": {"status": "deployed"},
    "chart": {"metadata": {"name": "chart", "version": "1.0.0"}},
}


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, failures: int, error: str) -> int:
    """Create a release with a helm that fails so often; return the number of its installations."""
    (folder / "error").write_text(error)
    (folder / "release").write_text(json.dumps(RELEASE))
    program = folder / "helm"
    program.write_text(f"""#!/bin/sh
cd {folder}
[ "$1" = list ] && exit
[ "$1" = install ] || {{ echo Error: release: not found >&2; exit 1; }}
echo >> installations
[ $(wc -l < installations) -gt {failures} ] || {{ cat error >&2; exit 1; }}
cat release
""")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    (folder / "chart").mkdir()
    inputs: dict[str, Any] = {"name": "one", "namespace": "space", "chart": str(folder / "chart"), "timeout": 60}
    releases = Releases("{}", cast("Engine", None), threading.Event())
    try:
        releases.create(CreateRequest("urn:one", properties=inputs, timeout=60, preview=False))
    finally:
        releases.close()
    return len((folder / "installations").read_text().splitlines())


def test_helm_is_run_again_while_a_kind_is_not_served_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert install(tmp_path, monkeypatch, 2, NOT_SERVED) == 3


def test_a_kind_that_nothing_defines_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProviderError, match=r'Helm release "space/one" was not created: .*"ClusterPolicy"'):
        install(tmp_path, monkeypatch, 99, NOT_SERVED)


def test_another_error_is_reported_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProviderError, match="no route"):
        install(tmp_path, monkeypatch, 1, "Error: no route")
