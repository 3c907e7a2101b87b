"""Fuzzed settings, the long part: `make fuzz`. A real API server judges what berth accepts.

FUZZ_EXAMPLES says how many examples, FUZZ_SEED repeats a campaign. Each finding is written as a
file, and printed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import strategies as st

from tests.fuzz import files, judge
from tests.fuzz.campaign import SEED, Campaign, chosen_seed, size
from tests.fuzz.cluster import Cluster
from tests.lab.conftest import Lab

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    """Cluster with the operators' definitions, and afterward a clean lab for the next file."""
    for chart in ("kuberay-operator", "gpu-operator"):
        crds = lab.home.charts / chart / "crds"
        if crds.is_dir():
            lab.run(["kubectl", "apply", "--server-side", "-f", str(crds)])
    established = ["kubectl", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]
    # kubectl fails on a CRD that has no conditions yet.
    assert any(lab.run(established, check=False).returncode == 0 for _ in range(10))
    yield Cluster(lab.kubeconfig.read_text())
    lab.restart()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return judge.project(folder)


def test_the_api_server_takes_every_shipped_stack(cluster: Cluster, project: Path) -> None:
    for stack, text in files.shipped().items():
        assert judge.check(project, stack, text, cluster.judge), stack


@pytest.mark.long
@pytest.mark.parametrize(
    "examples",
    [files.edited(good=True), files.edited(), files.torn()],
    ids=["good settings", "edited settings", "torn text"],
)
def test_the_api_server_takes_what_berth_accepts(
    cluster: Cluster, project: Path, tmp_path: Path, examples: st.SearchStrategy[tuple[str, str]]
) -> None:
    chosen, campaign = chosen_seed(), Campaign(tmp_path)
    campaign.run(
        examples,
        lambda stack, text: judge.check(project, stack, text, cluster.judge),
        most=size(1000),
        chosen=chosen,
    )
    report = f"{SEED}={chosen}: {campaign.report()}"
    sys.stdout.write(f"\n{report}\n")
    assert not campaign.findings, report
