"""Lock across processes that ends with the process that holds it."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def exclusive(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file while the block runs.

    Args:
        path: the lock file; created where it is missing, never removed.
        waiting: called once if another process holds the lock.
    """
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(file, fcntl.LOCK_EX)
            if not _still_there(path, file.fileno()):
                continue  # The holder has removed the folder: the next one locks a new file.
            yield  # Closing the file releases the lock, and so does the end of this process.
            return


def _still_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
