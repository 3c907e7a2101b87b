"""Reference of a container image, as registries and container runtimes read it.

The grammar is that of https://github.com/distribution/reference (regexp.go). Kubernetes itself
accepts any text, and the pod then waits forever with InvalidImageName.
"""

import re
from typing import Annotated

from pydantic import AfterValidator

from berth.components.core.types import NonEmpty, foreign_letter

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
    reference = _REFERENCE.fullmatch(text)
    if not reference or re.fullmatch(r"[0-9a-f]{64}", text):
        raise ValueError(
            f"{text!r} is not the reference of an image: REGISTRY/PATH:TAG;"
            f" {_EXAMPLE}{foreign_letter(text)}"
        )
    length = len(reference["name"])
    if length > _LONGEST_NAME:
        raise ValueError(
            f"an image's name has {_LONGEST_NAME} characters at most, and not {length}"
        )
    algorithm, _, digits = (reference["digest"] or "").partition(":")
    if algorithm in _DIGITS and not re.fullmatch(rf"[0-9a-f]{{{_DIGITS[algorithm]}}}", digits):
        raise ValueError(
            f"{text!r} has a digest of {algorithm} that is not {_DIGITS[algorithm]} digits of 0-9"
            " and a-f"
        )
    return text


def checked_mirror(text: str) -> str:
    """Return the host and prefix of a mirror as they are.

    Raises:
        ValueError: no reference of an image can begin with them.
    """
    if not re.fullmatch(rf"{_HOST}(?:/{PATH})?", text) or not _has_host(f"{text}/"):
        raise ValueError(
            f"{text!r} is not a registry, with a path or not: without https://, a slash at the end"
            " and a tag, and the host has a dot or a port; write for example"
            " registry.example.com/mirror"
        )
    return text


Image = Annotated[NonEmpty, AfterValidator(checked_image)]
"""Reference of a container image."""
ImageMirror = Annotated[NonEmpty, AfterValidator(checked_mirror)]
"""Registry that has copies of images, with a path or not."""


def full_name(image: str) -> str:
    """Return an image's name with its registry, as container runtimes read it."""
    if _has_host(image):
        return image
    return f"docker.io/{image}" if "/" in image else f"docker.io/library/{image}"


def mirrored(image: str, mirror: str) -> str:
    """Return the name of an image's copy: the mirror, and behind it the full name.

    The registry's host stays in the path, so that images of two registries never have one name, and
    a copy tells where it comes from. `rayproject/ray` is `MIRROR/docker.io/rayproject/ray`, and
    itself without a mirror ("").
    """
    return f"{mirror}/{full_name(image)}" if mirror else image


def _has_host(image: str) -> bool:
    host, slash, _ = image.partition("/")
    return bool(slash) and ("." in host or ":" in host or host == "localhost")
