"""Supported versions in docs/own-repository.md, from those that the code names."""

import re
import tomllib
from collections.abc import Iterable, Iterator

from berth.cli.verbs.doctor.programs import PULUMI_AT_LEAST
from berth.cli.verbs.upgrade.combinations import combinations_of
from berth.cli.verbs.upgrade.parts import PARTS
from berth.components.gke import versions as gke
from berth.components.hardware import versions
from berth.components.hardware.machines import MACHINES
from berth.lab.home import CLONE
from berth.lab.toolchain.tools import KUBECTL, PULUMI
from docs.inserted import inserted

PAGE = CLONE / "docs/own-repository.md"

_HEAD = """\
## Supported versions

Fixes go into the latest minor version of berth. The settings of an environment can name other
versions than those that berth installs.
"""

_FEATURES = """\
berth names no version of GKE: an environment gets the one of its release channel, or of
`cluster.version`. `berth check` refuses a version without a feature that the settings use, and
`berth doctor` asks the release channel.
"""


def page() -> str:
    """Return the page's text, with its versions as they have to be."""
    parts = [
        _HEAD,
        *_table(("program", "supported", "tests run with"), _programs()),
        *_table(("installed on a cluster", "version", "setting", "goes with"), _installed()),
        _FEATURES,
        *_table(("feature", "GKE since"), _features()),
    ]
    return inserted(PAGE.read_text(encoding="utf-8"), "\n".join(parts).rstrip())


def _programs() -> Iterator[tuple[str, str, str]]:
    project = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = (CLONE / "requirements.txt").read_text(encoding="utf-8")
    yield "Python", project["requires-python"].replace(">=", "") + " and newer", _python()
    yield "Pulumi's engine", ".".join(map(str, PULUMI_AT_LEAST)) + " and newer", PULUMI.version
    for name in ("pulumi", "pulumi-gcp", "pulumi-kubernetes"):
        (wanted_range,) = (
            text[len(name) :] for text in project["dependencies"] if re.match(rf"{name}[<>=]", text)
        )
        pin = re.search(rf"^{name}==(\S+)", locked, flags=re.MULTILINE)
        yield f"Python package `{name}`", wanted_range.replace(",", ", "), pin[1] if pin else ""
    yield "Kubernetes", "the versions of GKE's release channels", KUBECTL.version


def _python() -> str:
    tests = (CLONE / ".github/workflows/test.yml").read_text(encoding="utf-8")
    (used,) = re.findall(r'python-version: "(\S+)"', tests)
    return str(used)


def _installed() -> Iterator[tuple[str, str, str, str]]:
    for key, part in PARTS.items():
        if not part.installs or not part.setting:
            continue
        version = part.installs
        goes_with = [
            combination.goes_with_in_words()
            for combination in combinations_of(key, version)
            if combination.goes_with
        ]
        if key == "gpu":
            refused = ", ".join(versions.GPU_OPERATOR_BAD)
            oldest = versions.GPU_OPERATOR_WITHOUT_ESCAPES
            version += f"; {refused} and those before {oldest} are refused"
        setting = part.setting.strip("`")
        yield part.title, version, f"`{setting}`", ", ".join(goes_with) or "unknown"


def _features() -> Iterator[tuple[str, str]]:
    found = {value.name: str(value.since) for value in gke.FEATURES.values()}
    for series in {machine.series.name: machine.series for machine in MACHINES.values()}.values():
        for key, text in (("gke_since", "{} machines"), ("gke_rdma_since", "GPUDirect RDMA on {}")):
            if since := getattr(series, key):
                found[text.format(series.name)] = since
    yield from sorted(found.items(), key=lambda item: item[0].lower())


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    marks = ("---",) * len(heads)
    return [*(f"| {' | '.join(cells)} |" for cells in (heads, marks, *rows)), ""]
