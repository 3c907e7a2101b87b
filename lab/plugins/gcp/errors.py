"""Errors of the simulated cloud; refusals are in the words of Google's API."""

from pathlib import Path
from typing import Any

import yaml

from berth.components.core.errors import BerthError

_REFUSALS: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("refusals.yaml").read_text()
)


class ProviderError(BerthError):
    """Error of the simulated cloud in words for the user, shown without a stack."""


class GoogleApiError(ProviderError):
    """An answer of the API other than 2xx, by its name in refusals.yaml, with values for its text.

    Attributes:
        code: the HTTP status.
        reason: the API's short word for it, such as `notFound`.
    """

    def __init__(self, name: str, /, **values: object) -> None:
        row = _REFUSALS[name]
        self.reason: str = row["reason"]
        self.message: str = row["message"].format_map(values)
        super().__init__(
            f"googleapi: Error {row['code']}: {self.message}, {self.reason}", code=row["code"]
        )
