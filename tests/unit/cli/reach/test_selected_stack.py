"""Stack that is meant where none is named."""

import pytest

from berth.cli.pulumi import stack as pulumi_stack
from berth.cli.reach.selected_stack import one_of


@pytest.mark.parametrize(
    ("resources", "selected", "meant"),
    [
        ({"lab": 9, "dev": 0}, "dev", "lab"),
        ({"lab": 9, "dev": 4}, "dev", "dev"),
        ({"lab": 9, "dev": 4, "other": 1}, "other", None),
        ({"lab": 0, "dev": 0}, "dev", None),
    ],
)
def test_a_stack_that_is_up_is_meant(
    resources: dict[str, int], selected: str, meant: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulumi_stack, "stacks_in_backend", lambda: resources)
    monkeypatch.setattr(pulumi_stack, "selected_stack", lambda: selected)
    assert one_of(["lab", "dev"]) == meant
