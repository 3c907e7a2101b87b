"""Words for an amount of GPUs: whole ones, shares of them, MIG instances."""

from dataclasses import dataclass
from typing import Literal

from berth.components.core.words import plural

_SPOKEN_WITH_A_VOWEL = "AEFHILMNORSX"
"""Letters whose names begin with a vowel: an H100, an L4."""


@dataclass(frozen=True)
class GpuUnit:
    """Unit of a pool's GPUs: a pod that requests one GPU gets one of it.

    Attributes:
        product: name of the GPU: `B200`; empty where it is not known.
        kind: a whole GPU, a share of one, or a MIG instance.
        profile: MIG profile of an instance: `1g.23gb`; empty for GPUs and shares.
        per_gpu: number of them that one GPU becomes; 0 where it is not known.
        memory_gib: GPU memory in GiB that a pod can use; 0 where it is not known.
        memory_is_shared: whether pods on the same GPU use the same memory, which nothing divides.
    """

    product: str = ""
    kind: Literal["gpu", "share", "mig"] = "gpu"
    profile: str = ""
    per_gpu: int = 1
    memory_gib: float = 0
    memory_is_shared: bool = False

    def amount(self, count: int) -> str:
        """Return a number of them in words: `2 × B200`, `1 share (1/4 of a B200, 45 GiB)`."""
        part = self._part
        if not part or not count:
            return self.brief(count)
        memory = ""
        if self.memory_gib:
            shared = " shared" if self.memory_is_shared else ""
            memory = f", {self.memory_gib:.0f} GiB{shared}"
        each = "" if count == 1 else "each "
        return f"{self._counted(count)} ({each}{part}{memory})"

    def brief(self, count: int, of: int | None = None) -> str:
        """Return a number of them in few words: `2 × B200`, `3 shares of 1/4 B200`.

        With `of`, the number is a part of another one: `3/8 × B200`.
        """
        if not count and of is None:
            return "no GPU"
        text = self._counted(count, of)
        if self.kind != "share":
            return text
        part = f"1/{self.per_gpu} {self.product or 'GPU'}" if self.per_gpu else self._whole
        return f"{text} of {part}"

    def _counted(self, count: int, of: int | None = None) -> str:
        number = str(count) if of is None else f"{count}/{of}"
        if self.kind == "mig":
            return f"{number} × MIG {self.profile}"
        if self.kind == "gpu" and self.product:
            return f"{number} × {self.product}"
        noun = "share" if self.kind == "share" else "GPU"
        return f"{number} {noun if (of or count) == 1 else plural(noun)}"

    @property
    def _part(self) -> str:
        """Part of a GPU; empty for a whole one, and where it is not known."""
        if self.kind == "mig":
            return f"part of {self._whole}"
        if self.kind == "share" and self.per_gpu:
            return f"1/{self.per_gpu} of {self._whole}"
        return ""

    @property
    def _whole(self) -> str:
        """A whole GPU with its article: `a B200`, `an L4`."""
        product = self.product or "GPU"
        return f"{'an' if product[0].upper() in _SPOKEN_WITH_A_VOWEL else 'a'} {product}"
