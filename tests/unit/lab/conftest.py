import io

import pytest
from rich.console import Console

from berth.lab.progress import Progress


@pytest.fixture
def progress() -> Progress:
    return Progress(Console(file=io.StringIO(), soft_wrap=True))
