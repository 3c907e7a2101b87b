"""The image of production clusters. It cannot be built here: what it is made of is held to the rest of berth."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from lab.home import CLONE
from stacks.load import load
from stacks.settings import versions
from stacks.settings.environment import EnvironmentSettings
from stacks.settings.resolve import resolve_environment
from tests.unit.components.fabric import BY_NETWORKS, CPU

README = (CLONE / "images" / "README.md").read_text(encoding="utf-8")
LINK = "/opt/nccl/lib"
PACKAGES = {"libnl-3-200", "libnl-route-3-200"}


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments, comments out and continued lines joined."""
    text = (CLONE / "images" / "ray-a4" / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    joined = re.sub(r"\s*\\\n\s*", " ", lines)
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def runs() -> list[str]:
    return [rest for name, rest in instructions() if name == "RUN"]


def test_it_has_no_instruction_but_these() -> None:
    assert {name for name, _ in instructions()} == {"FROM", "USER", "RUN"}


def test_it_stands_on_the_image_that_berths_have_by_default() -> None:
    assert [rest for name, rest in instructions() if name == "FROM"] == [versions.RAY_IMAGE]


def test_nothing_of_it_runs_as_root() -> None:
    users = [rest for name, rest in instructions() if name == "USER"]
    assert users[-1] == "1000"


def test_torch_is_pinned_and_for_the_bases_cuda() -> None:
    (install,) = [run for run in runs() if "pip install" in run]
    found = re.search(
        r"--index-url https://download\.pytorch\.org/whl/(cu\d+) torch==(\d+)\.(\d+)\.\d+\+(cu\d+)$", install
    )
    assert found
    assert found[1] == found[4] == versions.RAY_IMAGE.rpartition("-")[2] == "cu128"
    # The first release with code for the B200 (https://pytorch.org/blog/pytorch-2-7/).
    assert (int(found[2]), int(found[3])) >= (2, 7)


def test_packages_come_from_a_fresh_list_that_is_not_kept() -> None:
    (install,) = [run for run in runs() if "apt-get" in run]
    assert install.startswith("apt-get update && ")
    assert install.endswith("rm -rf /var/lib/apt/lists/*")
    assert set(re.findall(r"\blib[-\w]+", install.partition("apt-get install")[2].partition("&&")[0])) == PACKAGES


@pytest.mark.parametrize("gone", ["conda", "--pre", "nightly", "--force-reinstall", "numpy", "cupy"])
def test_what_the_documents_image_needed_in_2025_is_gone(gone: str) -> None:
    assert not [run for run in runs() if gone in run]


def test_nccl_is_checked_where_settings_are_told_it_is() -> None:
    link, check = runs()[-2:]
    assert link.endswith(f'ln -s "${{nccl}}/lib" {LINK}')
    assert f"test -e {LINK}/libnccl.so.2" in check
    assert '"sm_100" in' in check


def readme_cluster() -> dict[str, Any]:
    (block,) = re.findall(r"^```yaml\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    shown = yaml.safe_load(block)["clusters"]
    assert isinstance(shown, dict)
    return shown


def test_what_the_readme_shows_is_valid_and_puts_the_images_nccl_first() -> None:
    shown = readme_cluster()
    values = {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "pools": {"cpu": CPU, "train": BY_NETWORKS},
        "clusters": shown,
    }
    settings = load("test", {"environment": values}, None)
    assert isinstance(settings, EnvironmentSettings)
    (cluster,) = resolve_environment(settings).clusters
    assert cluster.nccl.library_path == LINK
    assert cluster.image.rpartition(":")[2] == versions.RAY_IMAGE.rpartition(":")[2]


def test_the_readme_builds_pushes_and_checks_the_image_that_it_shows() -> None:
    image = readme_cluster()["train"]["image"]
    for command in ("docker build", "docker push", "docker run"):
        assert re.search(rf"^{command} .*{re.escape(image)}", README, flags=re.MULTILINE), command
