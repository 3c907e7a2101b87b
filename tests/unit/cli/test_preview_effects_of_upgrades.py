"""Effects of an upgrade of an installed program on running workloads, as `berth preview` names
them.
"""

from __future__ import annotations

from typing import Any

import pytest

from berth.components.operators import GibSettings, gib
from tests.unit.cli.preview_plans import Inputs, effects, event

LEAVES = "the NCCL that the installer put there before stays"


def installer(script: str) -> Inputs:
    manifest: dict[str, Any] = gib.installer(GibSettings(), ["train"])
    manifest["spec"]["template"]["spec"]["initContainers"][0]["args"] = [script]
    return manifest


@pytest.mark.parametrize(
    ("before", "after", "leaves"), [("--install-nccl", "", True), ("", "cp", False), ("", "--install-nccl", False)]
)
def test_an_installer_of_gib_that_installs_no_nccl_any_more_leaves_the_old_one(
    before: str, after: str, *, leaves: bool
) -> None:
    step = event("update", "kubernetes:apps/v1:DaemonSet", "nccl-rdma-installer", installer(before), installer(after))
    (found,) = effects(step)
    assert (LEAVES in found.text) is leaves
