"""Retries of Google's provider, which takes HTTP 429 for too many requests, whatever it is about.

It asks again until the operation's timeout, says nothing meanwhile, and does not hear the engine's
cancellation; then it reports the last answer (hashicorp/terraform-provider-google-beta,
transport/retry_transport.go, and services/container/resource_container_node_pool.go, "We get quota
errors if there the number of running concurrent operations reaches the quota"). A full reservation
is such an answer; a quota, with HTTP 403, is not.
"""

import time
from collections.abc import Callable
from itertools import cycle
from typing import TypeVar

from berth.lab.plugins.gcp.errors import GoogleApiError

Result = TypeVar("Result")

TOO_MANY_REQUESTS = 429

PAUSES = (0.5, 1.0, 1.5, 2.5, 4.0, 6.5, 10.5, 17.0, 27.5, 44.5, 4.5)
"""Seconds between requests, over and over, as measured with the provider itself: one request is
repeated for up to 90 s, and then made again."""


class Clock:
    """Time that passes."""

    def now(self) -> float:
        """Return seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)


def until_accepted(request: Callable[[], Result], seconds: float, clock: Clock) -> Result:
    """Return the result of a request that is repeated while it is one of too many.

    Args:
        request: changes nothing if it is refused.
        seconds: timeout of the operation.
        clock: time that passes between the requests.

    Raises:
        GoogleApiError: the request was refused for another reason, or until the timeout.
    """
    end = clock.now() + seconds
    pauses = cycle(PAUSES)
    while True:
        pause = next(pauses)
        try:
            return request()
        except GoogleApiError as error:
            if error.code != TOO_MANY_REQUESTS or clock.now() + pause >= end:
                raise
        clock.sleep(pause)
