"""Problem of settings: its place, and a message with its fix."""

from collections.abc import Iterable
from dataclasses import dataclass

from berth.components.core.printable import one_line

SettingPath = tuple[str | int, ...]
"""Keys and list positions from the top of a stack's settings down to a value."""


@dataclass(frozen=True)
class Problem:
    """Thing that is wrong.

    Attributes:
        path: the setting that is wrong.
        message: what is wrong, and after a semicolon what fixes it.
        rests_on: other settings that the problem comes from: nothing can be said while one of them,
            or what is in it, is wrong by itself.
    """

    path: SettingPath
    message: str
    rests_on: tuple[SettingPath, ...] = ()

    def rests_on_any(self, paths: Iterable[SettingPath]) -> bool:
        """Return whether a setting that the problem comes from is at one of the paths or above."""
        return any(self._rests_on(path) for path in paths)

    def _rests_on(self, path: SettingPath) -> bool:
        return any(path[: len(root)] == root for root in self.rests_on)

    @property
    def where(self) -> str:
        """The path as text on one line: `environment.pools.dev.nodes`."""
        text = ""
        for part in self.path:
            if isinstance(part, int):
                text += f"[{part}]"
                continue
            key = part if part.isprintable() else repr(part)
            text += f".{key}" if text else key
        return text

    def __str__(self) -> str:
        """The setting and what is wrong, on one line: a value may have line breaks of its own."""
        return one_line(f"{self.where}: {self.message}" if self.where else self.message)
