"""Memory of the simulated cloud: one JSON file a resource, under `cloud/<project>/<collection>/`.

The files are meant to be read, and to be edited by whoever wants to see drift: a resource is what
its file says.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from berth.components.core import whole_file
from berth.lab.plugins.gcp.errors import ProviderError


@dataclass
class StoredRecord:
    """Resource."""

    id: str
    """Path of the resource, such as `projects/berth/global/networks/gpu`."""
    inputs: dict[str, Any]
    """Properties that were asked for, with defaults."""
    state: dict[str, Any] = field(default_factory=dict)
    """Properties that the cloud adds: numbers, addresses, the instances of a pool."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.id.rsplit("/", 1)[-1]

    @property
    def project(self) -> str:
        """The project that the resource belongs to."""
        return self.id.split("/")[1]


class Store:
    """Records on disk. Changes belong inside `locked`, with the checks that they depend on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all other threads and processes of this lab out; not reentrant."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def get(self, resource: str) -> StoredRecord | None:
        """The record at this path, or nothing."""
        return self._read(self._path(resource))

    def list(self, collection: str = "*", project: str = "*") -> list[StoredRecord]:
        """Return the records of a collection, such as `networks`, by name of their files."""
        records = [
            self._read(path) for path in sorted(self.folder.glob(f"{project}/{collection}/*.json"))
        ]
        return [record for record in records if record]

    def put(self, record: StoredRecord) -> None:
        """Write a record whole or not at all."""
        path = self._path(record.id)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(
            {"id": record.id, "inputs": record.inputs, "state": record.state},
            indent=2,
            sort_keys=True,
        )
        whole_file.replace_file(path, text + "\n")

    def remove(self, resource: str) -> None:
        """Forget a record; one that is not there is no error."""
        path = self._path(resource)
        path.unlink(missing_ok=True)
        for folder in (path.parent, path.parent.parent):
            try:
                folder.rmdir()
            except OSError:
                return  # not empty, or never made

    def _path(self, resource: str) -> Path:
        parts = resource.split("/")
        # projects/P/<kind>/<name>/…: the names between the project and the collection keep files
        # apart.
        collection = parts[-2]
        names = (
            [part for part in parts[3:-2:2] if part] + [parts[-1]]
            if "global" not in parts
            else [parts[-1]]
        )
        return self.folder / parts[1] / collection / f"{'.'.join(names)}.json"

    @staticmethod
    def _read(path: Path) -> StoredRecord | None:
        try:
            data = json.loads(path.read_text())
            return StoredRecord(data["id"], data["inputs"], data["state"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise ProviderError(
                f"{path} of the simulated cloud is not readable ({error}); fix the file, or delete"
                " it: the resource is then gone and the next `pulumi refresh` says so"
            ) from None
