"""Login of a registry, as docker's own configuration has it.

Docker keeps a login in its file, or asks a program for it: `docker-credential-gcloud` for Google's
Artifact Registry, which `gcloud auth configure-docker` sets up
(https://docs.docker.com/reference/cli/docker/login/).
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from berth.components.core.errors import BerthError

_SECONDS = 30
# A helper's answer for a login that it does not have.
_NOT_FOUND = "credentials not found"
_IDENTITY_TOKEN = "<token>"  # noqa: S105 - the user name that helpers write for an identity token


@dataclass(frozen=True)
class Login:
    """Login of a registry.

    Attributes:
        user: user name.
        password: password.
        identity_token: token to ask for access with, in place of both; "" without one.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)

    @property
    def basic(self) -> str:
        """Value of the header `Authorization`."""
        return f"Basic {base64.b64encode(f'{self.user}:{self.password}'.encode()).decode()}"


def login_of(server: str, environment: Mapping[str, str] = os.environ) -> Login | None:
    """Return the user's login of a registry; None without one.

    Raises:
        BerthError: docker's configuration, or the program that it names, has no answer.
    """
    folder = environment.get("DOCKER_CONFIG")
    path = (Path(folder) if folder else Path.home() / ".docker") / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        helpers, logins = config.get("credHelpers") or {}, config.get("auths") or {}
        helper = helpers.get(server) or config.get("credsStore")
        return _of_helper(str(helper), server) if helper else _of_file(logins.get(server) or {})
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError) as error:
        raise BerthError(f"{path} cannot be read, so berth does not know the login of {server}: {error}") from None


def _of_file(entry: Mapping[str, Any]) -> Login | None:
    if entry.get("identitytoken"):
        return Login(identity_token=str(entry["identitytoken"]))
    user, colon, password = base64.b64decode(str(entry.get("auth") or ""), validate=True).decode().partition(":")
    return Login(user, password.rstrip("\0")) if colon else None


def _of_helper(name: str, server: str) -> Login | None:
    """Return the login that `docker-credential-NAME` has."""
    program = f"docker-credential-{name}"
    try:
        done = subprocess.run(
            [program, "get"], input=server, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except FileNotFoundError:
        raise BerthError(f"docker's configuration names {program} for {server}, which is not on PATH") from None
    except subprocess.TimeoutExpired:
        raise BerthError(f"{program} does not answer within {_SECONDS} s") from None
    if done.returncode != 0:
        text = (done.stderr or done.stdout).strip()
        if _NOT_FOUND in text:
            return None
        raise BerthError(f"{program} has no login for {server}: {text.splitlines()[0] if text else 'no reason given'}")
    answer = json.loads(done.stdout)
    user, secret = str(answer.get("Username") or ""), str(answer.get("Secret") or "")
    return Login(identity_token=secret) if user == _IDENTITY_TOKEN else Login(user, secret)
