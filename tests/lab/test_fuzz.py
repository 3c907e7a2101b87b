"""Fuzzed settings, the long part: `make fuzz`. A real API server judges what berth accepts.

FUZZ_EXAMPLES says how many examples, FUZZ_SEED repeats a campaign. Each finding is written as a
file, and printed.
"""

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import strategies as st

from berth.stacks.files import stack_file
from berth.stacks.program.main import differences, parsed
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
    established = [
        "kubectl",
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        "crd",
        "--all",
    ]
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


@pytest.mark.long
def test_the_api_server_takes_every_shipped_stack(cluster: Cluster, project: Path) -> None:
    for stack, text in files.shipped().items():
        assert judge.check(project, stack, text, cluster.judge), stack


SPELLINGS = """
    2026-12-31 2026-12-31T10:00:00Z 2026-12-31T10:00:00+02:00 1e3 1.0 1.50 0x1f 1_000 -0 .5
    1.0e+2 1e-3 yes no on off true ~ null 10:30 1:30:00 123456789012345678 0.1 1E400x
    'yes' "2026-12-31" 1__0 +1 -1.5""".split()


def test_pulumi_reads_every_spelling_as_berth_does(lab: Lab, project: Path) -> None:
    text = "config:\n  berth:environment:\n    values:\n" + "".join(
        f"    - {value}\n" for value in SPELLINGS
    )
    assert reads_alike(lab, project, "spellings", text)


def reads_alike(lab: Lab, project: Path, stack: str, text: str | bytes) -> bool:
    """Whether berth takes a text; if it does, Pulumi reads the same values in it."""
    try:
        settings = stack_file.parse_stack_file(
            project, text if isinstance(text, str) else text.decode()
        ).settings
    except (stack_file.StackFileError, UnicodeDecodeError):
        return False
    # In a project of this name Pulumi would take a key without a namespace for one of berth's; the
    # program refuses it, as every difference.
    (project / "Pulumi.yaml").write_text("name: fleet\nruntime: python\nstackConfigDir: stacks\n")
    judge.file_of(project, stack).write_bytes(text.encode() if isinstance(text, str) else text)
    lab.run(["pulumi", "stack", "init", stack, "--no-select"], cwd=project, check=False)
    done = lab.run(
        ["pulumi", "config", "--json", "--show-secrets", "-s", stack], cwd=project, check=False
    )
    if done.returncode:
        raise judge.FindingError("only berth reads it", done.stderr)
    values = {name: parsed(entry["value"]) for name, entry in json.loads(done.stdout).items()}
    # What has no value is an empty text for Pulumi; neither takes it for settings.
    given = {
        name.removeprefix("berth:"): value or None
        for name, value in values.items()
        if name.startswith("berth:")
    }
    if found := list(differences(settings, given)):
        raise judge.FindingError("read differently", f"{found}: {settings} and {given}")
    return True


@pytest.mark.long
def test_pulumi_reads_what_berth_accepts(lab: Lab, project: Path, tmp_path: Path) -> None:
    chosen = chosen_seed()
    campaign = Campaign(tmp_path)
    judged = partial(reads_alike, lab, project)
    campaign.run(files.torn(), judged, most=size(150), chosen=chosen)
    report = f"{SEED}={chosen}: {campaign.report()}"
    sys.stdout.write(f"\n{report}\n")
    assert not campaign.findings, report


@pytest.mark.long
@pytest.mark.parametrize(
    "examples",
    [files.edited(good=True), files.edited(), files.torn()],
    ids=["good settings", "edited settings", "torn text"],
)
def test_the_api_server_takes_what_berth_accepts(
    cluster: Cluster, project: Path, tmp_path: Path, examples: st.SearchStrategy[tuple[str, str]]
) -> None:
    chosen = chosen_seed()
    campaign = Campaign(tmp_path)
    campaign.run(
        examples,
        lambda stack, text: judge.check(project, stack, text, cluster.judge),
        most=size(200),
        chosen=chosen,
    )
    report = f"{SEED}={chosen}: {campaign.report()}"
    sys.stdout.write(f"\n{report}\n")
    assert not campaign.findings, report
