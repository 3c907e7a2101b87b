"""Requirement of berth in a repository's requirements."""

import pytest

from berth.cli.repository.wheels import is_pinned, with_requirement

LINE = "./wheels/berth_gpu-0.2.0-py3-none-any.whl[lab]"


@pytest.mark.parametrize(
    "before",
    [
        "berth[lab]==0.1.0",
        "./wheels/berth-0.1.0-py3-none-any.whl[lab]",
        "berth-gpu[lab]==0.1.0",
        LINE,
    ],
)
def test_a_requirement_of_any_name_becomes_the_new_one(before: str) -> None:
    text = f"{before}\nberths==1\n"
    assert with_requirement(text, LINE) == f"{LINE}\nberths==1\n"
    assert is_pinned(text, LINE) == (before == LINE)
