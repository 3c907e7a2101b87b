"""Reference of a container image, as registries and container runtimes read it.

The grammar is that of https://github.com/distribution/reference (regexp.go). Kubernetes itself
accepts any text, and the pod then waits forever with InvalidImageName.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from berth.components.core.types import NonEmpty

_WORD = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
PATH = rf"{_WORD}(?:/{_WORD})*"
"""Pattern of a repository's path."""
TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
"""Pattern of a tag."""
_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_PART}(?:\.{_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_HOST}/)?{PATH})(?::{TAG})?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?"
)
_DIGITS = {"sha256": 64, "sha384": 96, "sha512": 128}
_LONGEST_NAME = 255
_EXAMPLE = "write for example us-docker.pkg.dev/your-project/ray/ray:2.60.0"


def checked_image(text: str) -> str:
    """Return a reference as it is.

    Raises:
        ValueError: no container runtime would read it.
    """
    found = _REFERENCE.fullmatch(text)
    if not found or re.fullmatch(r"[0-9a-f]{64}", text):
        raise ValueError(f"{text!r} is not the reference of an image: REGISTRY/PATH:TAG; {_EXAMPLE}")
    if len(found["name"]) > _LONGEST_NAME:
        raise ValueError(f"an image's name has {_LONGEST_NAME} characters at most, and not {len(found['name'])}")
    algorithm, _, digits = (found["digest"] or "").partition(":")
    if algorithm in _DIGITS and not re.fullmatch(rf"[0-9a-f]{{{_DIGITS[algorithm]}}}", digits):
        raise ValueError(f"{text!r} has a digest of {algorithm} that is not {_DIGITS[algorithm]} digits of 0-9 and a-f")
    return text


Image = Annotated[NonEmpty, AfterValidator(checked_image)]
"""Reference of a container image."""
