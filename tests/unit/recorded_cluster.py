"""Cluster with recorded objects, in the place of the client of an API server."""

from collections.abc import Iterator
from typing import Any

from berth.components.cluster.api import ClusterApi, in_namespace


class RecordedCluster(ClusterApi):
    """A cluster with these objects by the path of their collection, in which nothing happens."""

    def __init__(self, objects: dict[str, list[dict[str, Any]]] | None = None) -> None:
        self.objects = objects or {}

    def get(self, path: str) -> dict[str, Any] | None:
        collection, _, name = path.rpartition("/")
        return next(
            (item for item in self.list(collection)[0] if item["metadata"]["name"] == name), None
        )

    def events(
        self, path: str, version: str, seconds: int, **query: str
    ) -> Iterator[dict[str, Any]]:
        del path, version, seconds, query
        return iter(())

    def list(self, path: str, **query: str) -> tuple[list[dict[str, Any]], str]:
        found = [
            item
            for collection, items in self.objects.items()
            for item in items
            if path in (collection, in_namespace(item["metadata"].get("namespace", ""), collection))
        ]
        return [item for item in found if _selected(item["metadata"], **query)], "1"


def _selected(
    metadata: dict[str, Any],
    labelSelector: str = "",  # noqa: N803 - a parameter of the API
    fieldSelector: str = "",  # noqa: N803
    **_: str,
) -> bool:
    labels = metadata.get("labels") or {}
    pairs = [word.partition("=") for word in labelSelector.split(",") if word]
    name = fieldSelector.removeprefix("metadata.name=")
    return name in ("", metadata["name"]) and all(
        labels.get(key) == value if equals else key in labels for key, equals, value in pairs
    )
