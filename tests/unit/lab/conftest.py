import io

import pytest
from rich.console import Console

from berth.lab.progress import LabProgress


@pytest.fixture
def progress() -> LabProgress:
    return LabProgress(Console(file=io.StringIO(), soft_wrap=True))
