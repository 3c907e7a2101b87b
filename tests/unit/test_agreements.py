"""Two places that must agree."""

import re

import pytest

from berth.components.hardware import versions
from berth.lab.home import CLONE
from berth.lab.toolchain import tools
from docs.pages import GENERATED


def test_the_default_kuberay_is_the_one_that_the_lab_runs() -> None:
    module = (CLONE / "lab/tools/kuberay/go.mod").read_text()
    assert re.findall(r"ray-project/kuberay/ray-operator v(\S+)", module) == [versions.KUBERAY]


def test_sdks_are_generated_by_the_engine_s_version_of_pulumi() -> None:
    assert tools.PULUMI_CODEGEN.version == tools.PULUMI.version


@pytest.mark.parametrize("path", GENERATED)
def test_a_generated_file_is_up_to_date(path: str) -> None:
    if (CLONE / path).read_text(encoding="utf-8") != GENERATED[path]():
        pytest.fail(f"{path} is out of date: run `make pages`", pytrace=False)
