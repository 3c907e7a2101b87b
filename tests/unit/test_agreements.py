"""Two places that must agree, and what ships must hold."""

from __future__ import annotations

import re

import pytest
import yaml

from berth.cli.repository.check import check
from berth.components.hardware import versions
from berth.lab.home import CLONE
from berth.stacks.files import stack_file
from berth.stacks.load.stack import load
from docs.pages import GENERATED


def test_the_default_kuberay_is_the_one_that_the_lab_runs() -> None:
    module = (CLONE / "lab/tools/kuberay/go.mod").read_text()
    assert re.findall(r"ray-project/kuberay/ray-operator v(\S+)", module) == [versions.KUBERAY]


@pytest.mark.parametrize("stack", stack_file.stack_names())
def test_every_shipped_stack_is_valid_and_names_the_schema(stack: str) -> None:
    assert check(stack).lines == []
    first = stack_file.stack_path(stack).read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=schema.json"


@pytest.mark.parametrize("stack", ["solo", "serve", "mixed", "nested"])
def test_what_the_gallery_ships_is_valid(stack: str) -> None:
    text = (CLONE / f"stacks/gallery/Pulumi.{stack}.yaml").read_text(encoding="utf-8")
    checked = check(stack, text)
    assert checked.lines == []
    # The stack is there to show what its pods give up, of which berth warns.
    known = "podman in its pods needs system calls" if stack == "nested" else ""
    assert [line for line in checked.warnings if not known or known not in line] == []
    assert text.startswith("# yaml-language-server: $schema=schema.json\n"), (
        "as it is to be once it is copied to stacks/"
    )


@pytest.mark.parametrize("path", GENERATED)
def test_a_generated_file_is_up_to_date(path: str) -> None:
    if (CLONE / path).read_text(encoding="utf-8") != GENERATED[path]():
        pytest.fail(f"{path} is out of date: run `make pages`", pytrace=False)


def test_the_settings_that_the_readme_shows_are_valid() -> None:
    blocks = re.findall(
        r"^```yaml\n(.*?)^```", (CLONE / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    assert len(blocks) == 2
    for block in blocks:
        config = yaml.safe_load(block)["config"]
        load("readme", {key.removeprefix("berth:"): value for key, value in config.items()}, None)
