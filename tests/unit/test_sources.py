"""Sources of the lab's modules: every module names what it answers to."""

import pytest

from docs.sources import modules


def test_every_module_says_what_it_answers_to_or_that_it_simulates_nothing() -> None:
    wrong = [f"{module.path}: {module.problem}" for module in modules() if module.problem]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
