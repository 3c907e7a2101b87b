"""`berth images pin`: digests of a stack's images, written into its file."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from berth.cli.change import Change
from berth.cli.console import err, out, print_json
from berth.cli.images.reference import parse
from berth.cli.images.registry import Registries
from berth.cli.names import KINDS
from berth.cli.stack_edit import with_value
from berth.components.core.errors import FAILED, BadInputError, BerthError
from berth.components.core.words import counted
from berth.components.hardware import versions
from berth.stacks.files import stack_file

_KEY = "image"
# Settings whose content is not berth's: values of charts, documents of Ray, variables.
_OTHERS = {"values", "runtimeEnv", "env", "serveConfig"}


@dataclass(frozen=True)
class Pin:
    """Image of a setting.

    Attributes:
        setting: keys of the setting below `config`.
        image: the image as it is written, or berth's default.
        pinned: the image with its digest.
        problem: why there is no digest; "" if there is one.
    """

    setting: tuple[str, ...]
    image: str
    pinned: str = ""
    problem: str = ""

    @property
    def name(self) -> str:
        """Name of the setting, as messages write it."""
        return ".".join(self.setting)

    @property
    def changed(self) -> bool:
        """Whether the file gets another text."""
        return bool(self.pinned) and self.pinned != self.image

    def as_json(self) -> dict[str, Any]:
        """Return the pin for programs."""
        return {"setting": self.name, "image": self.image, "pinned": self.pinned or None, "problem": self.problem}


def images_of(settings: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """Return the images that a stack's settings name, and berth's defaults that they use."""
    found = dict(_named(settings))
    environment = settings.get("environment")
    if isinstance(environment, Mapping):
        berths = [entry or {} for kind in KINDS for entry in _mapping(environment, kind).values()]
        if not _mapping(environment, "defaults").get(_KEY) and any(_KEY not in entry for entry in berths):
            found["environment", "defaults", _KEY] = versions.RAY_IMAGE
        gib = _mapping(_mapping(environment, "operators"), "gib")
        pools = [pool for pool in _mapping(environment, "pools").values() if isinstance(pool, Mapping)]
        if any(pool.get("rdma", "none") != "none" for pool in pools) and gib.get("source") != "present":
            found.setdefault(("environment", "operators", "gib", _KEY), versions.GIB_IMAGE)
    return found


def _mapping(settings: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = settings.get(key)
    return found if isinstance(found, Mapping) else {}


def _named(settings: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in settings.items():
        if key == _KEY and isinstance(value, str):
            yield (*above, key), value
        elif isinstance(value, Mapping) and key not in _OTHERS:
            yield from _named(value, (*above, str(key)))


def pins_of(settings: Mapping[str, Any], registries: Registries, *, update: bool) -> list[Pin]:
    """Return the images of settings with their digests.

    Args:
        settings: a stack's settings by key.
        registries: registries that are asked, once for each image.
        update: ask again for images that have a digest.
    """
    answers: dict[str, Pin] = {}
    pins = []
    for setting, image in images_of(settings).items():
        if image not in answers:
            answers[image] = _asked(setting, image, registries, update=update)
        answer = answers[image]
        pins.append(Pin(setting, image, answer.pinned, answer.problem))
    return pins


def _asked(setting: tuple[str, ...], image: str, registries: Registries, *, update: bool) -> Pin:
    try:
        reference = parse(image)
        if reference.digest and not update:
            return Pin(setting, image, image)
        return Pin(setting, image, reference.pinned(registries.digest_of(reference)))
    except BerthError as error:
        return Pin(setting, image, problem=error.problem)


def pin(stack: str, *, update: bool, dry_run: bool, as_json: bool, registries: Registries | None = None) -> int:
    """Write the digests of a stack's images into its file; return the exit code.

    Raises:
        BadInputError: there is no such stack, or its file cannot be edited.
    """
    file = stack_file.find(stack)
    pins = pins_of(file.settings, registries or Registries(), update=update)
    change = edited(file.path.read_text(encoding="utf-8"), file, [found for found in pins if found.changed])
    missing = [found for found in pins if found.problem]
    writes = change.before != change.after and not dry_run and not missing
    if writes:
        change.write()
    if as_json:
        images = [found.as_json() for found in pins]
        print_json({"stack": stack, "changed": writes, "images": images, "diff": change.diff})
    else:
        _print(stack, pins, change, writes=writes)
    for found in missing:
        err.print(f"{found.name}: {found.problem}", markup=False, style="red")
    if missing:
        err.print("nothing is written", markup=False)
    return FAILED if missing else 0


def edited(text: str, file: stack_file.StackFile, pins: list[Pin]) -> Change:
    """Return the change of a file that writes digests, and nothing else.

    Raises:
        BadInputError: the file is written in a way that this can't edit.
    """
    after, expected = text, copy.deepcopy(file.settings)
    for found in pins:
        head, *rest = found.setting
        after = with_value(after, ("config", f"{stack_file.NAMESPACE}:{head}", *rest), found.pinned)
        place = expected
        for key in found.setting[:-1]:
            place[key] = place.get(key) or {}
            place = place[key]
        place[found.setting[-1]] = found.pinned
    if stack_file.parse(file.path, after).settings != expected:
        raise BadInputError(f"{file.shown_path} is written in a way that this can't edit (anchors?); edit it by hand")
    return Change(file.path, text, after)


def _print(stack: str, pins: list[Pin], change: Change, *, writes: bool) -> None:
    if not writes and change.before != change.after:
        out.print(change.diff, markup=False, end="")
    for found in pins:
        if found.pinned and not found.changed:
            out.print(f"{found.name} has a digest: {found.image}", markup=False)
    if writes:
        count = counted(sum(found.changed for found in pins), "image")
        out.print(f"{stack_file.shown(change.path)} has the digests of {count} more", markup=False)
        out.print(f"pods with another text in `image` restart at the next berth up -s {stack}", markup=False)
    elif not pins:
        out.print(f"stack {stack} names no image", markup=False)
    elif change.before != change.after and not any(found.problem for found in pins):
        err.print("nothing is written", markup=False)
