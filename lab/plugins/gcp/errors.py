"""Errors of the simulated cloud; refusals are in the words of Google's API.

Answers to (read): googleapi/googleapi.go of https://github.com/googleapis/google-api-go-client
    (shape of an error's text).
"""

from __future__ import annotations

from berth.components.core.errors import BerthError


class ProviderError(BerthError):
    """Error of the simulated cloud in words for the user, shown without a stack."""


class GoogleApiError(ProviderError):
    """An answer of the API other than 2xx.

    Attributes:
        reason: the API's short word for it, such as `notFound`.
    """

    def __init__(self, code: int, message: str, reason: str) -> None:
        super().__init__(f"googleapi: Error {code}: {message}, {reason}")
        self.code = code
        self.message = message
        self.reason = reason


def bad_request(message: str) -> GoogleApiError:
    """400: the request cannot be granted as it is."""
    return GoogleApiError(400, message, "badRequest")


def not_found(resource: str) -> GoogleApiError:
    """404."""
    return GoogleApiError(404, f"The resource '{resource}' was not found", "notFound")
