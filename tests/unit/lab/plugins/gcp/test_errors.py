"""Refusals of the simulated Google APIs: status, reason and words of the table."""

from berth.lab.plugins.gcp.errors import GoogleApiError


def test_a_refusal_has_the_status_that_the_api_answers_with() -> None:
    error = GoogleApiError("no-project", name="p1")
    assert (error.code, error.reason) == (403, "forbidden")
    assert str(error) == (
        "googleapi: Error 403: Permission denied on resource project p1 (or it may not exist)., forbidden"
    )
