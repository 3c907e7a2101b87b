"""Toy in place of a model: it paints clouds of color on a core, without a GPU or a download."""

import hashlib
import struct
import zlib
from collections.abc import Callable

import numpy as np

_CELLS = 8


def load() -> Callable[[str, int], bytes]:
    """Return the painter: the same prompt gives the same picture."""
    return paint


def paint(prompt: str, size: int) -> bytes:
    """Return a square picture, as PNG."""
    seed = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:8], "big")
    corners = np.random.default_rng(seed).uniform(0, 255, (_CELLS + 1, _CELLS + 1, 3))
    places = np.linspace(0, _CELLS, size, endpoint=False)
    cell = places.astype(int)
    part = places - cell
    rows = _between(corners[cell], corners[cell + 1], part[:, None, None])
    columns = rows.transpose(1, 0, 2)
    pixels = _between(columns[cell], columns[cell + 1], part[:, None, None]).transpose(1, 0, 2)
    return _png(pixels.astype(np.uint8))


def _between(first: np.ndarray, second: np.ndarray, part: np.ndarray) -> np.ndarray:
    smooth = part * part * (3 - 2 * part)
    return first * (1 - smooth) + second * smooth


def _png(pixels: np.ndarray) -> bytes:
    """Return a picture of 8-bit RGB as PNG (https://www.w3.org/TR/png/)."""
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )
