"""Provider of the tests: Google's own, on a stand-in for Google's APIs."""

from collections.abc import Iterator

import pytest

from tests.provider.plugin import Provider, running


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with running() as provider:
        yield provider
