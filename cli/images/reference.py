"""Reference to an image as settings write it: `name:tag`, `host/name:tag@sha256:…`. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from berth.components.core.errors import BadInputError
from berth.components.core.image import PATH, TAG

_HUB = "docker.io"
# Docker's default registry has another name in its API and in docker's configuration.
_HUB_SERVER = "registry-1.docker.io"
_HUB_LOGIN = "https://index.docker.io/v1/"
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HOST = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[::1\])(?::\d+)?")


@dataclass(frozen=True)
class Reference:
    """Image in a registry.

    Attributes:
        name: name and tag as they are written, without a digest.
        host: host of the registry, with its port.
        repository: path of the image in the registry.
        tag: the tag; `latest` where none is written.
        digest: the digest; "" without one.
    """

    name: str
    host: str
    repository: str
    tag: str
    digest: str

    @property
    def server(self) -> str:
        """Address of the registry's API; plain HTTP on this machine only, as docker does."""
        host = _HUB_SERVER if self.host == _HUB else self.host
        return f"{'http' if is_loopback(host) else 'https'}://{host}"

    @property
    def login(self) -> str:
        """Name of the registry in docker's configuration."""
        return _HUB_LOGIN if self.host == _HUB else self.host

    def pinned(self, digest: str) -> str:
        """Return the reference with a digest."""
        return f"{self.name}@{digest}"


def is_loopback(host: str) -> bool:
    """Return whether a host with a port is this machine."""
    return re.sub(r":\d+$", "", host) in _LOOPBACK


def parse(text: str) -> Reference:
    """Return the reference that a text writes.

    Raises:
        BadInputError: the text is not a reference.
    """
    name, _, digest = text.partition("@")
    head, slash, rest = name.partition("/")
    # A first part without dot and colon is a user of docker's registry.
    is_host = bool(slash) and ("." in head or ":" in head or head == "localhost")
    host, path = (head, rest) if is_host else (_HUB, name)
    repository, _, tag = path.partition(":")
    if host == _HUB and "/" not in repository:
        repository = f"library/{repository}"
    right = _HOST.fullmatch(host) and re.fullmatch(PATH, repository) and (":" not in path or re.fullmatch(TAG, tag))
    if not right or ("@" in text and not _DIGEST.fullmatch(digest)):
        raise BadInputError(f"{text!r} is not an image; write for example rayproject/ray:2.60.0-py311-cu128")
    return Reference(name, host, repository, tag or "latest", digest)
