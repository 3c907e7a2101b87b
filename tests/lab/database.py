"""Database of a lab that is up, emptied while its servers run.

The API server and all controllers watch etcd, so objects that are deleted there are deleted for
them, too, at once and whatever their finalizers. A new start with an empty database takes seconds
of two cores, and as long again for the definitions of the operators' kinds, which stay here.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
import urllib.request
from typing import Any

from berth.lab import controlplane
from berth.lab.home import Home

_SECONDS = 60.0
_QUIET_SECONDS = 0.2
"""Time without a new object after which none comes: a controller acts on what it saw before."""
_OPERATIONS = 100
"""Deletions in a transaction: etcd's default limit is 128 (--max-txn-ops)."""

_ALL = "/registry/"
_EXCEPTIONS = (
    "apiextensions.k8s.io/customresourcedefinitions/",
    "apiregistration.k8s.io/apiservices/",
    "leases/kube-system/",
)
"""Definitions of kinds, and leases of the controllers, which go on."""
_OWNERS = (
    "namespaces/",
    "deployments/",
    "daemonsets/",
    "statefulsets/",
    "cronjobs/",
    "jobs/",
    "replicasets/",
    "ray.io/",
)
"""Objects for which controllers make others, and namespaces, without which they cannot."""

_OWN_NAMESPACE = re.compile(r"/(default|kube-[a-z-]+)/[^/]+$")
"""Keys of objects in namespaces that every cluster has."""


class Database:
    """Database of a lab, with the keys of one time: the first."""

    def __init__(self, home: Home) -> None:
        plane = controlplane.load(home)
        assert plane is not None
        pki = plane.folder / "pki"
        self._context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self._port = plane.ports["etcdPort"]
        self._before = self._keys()

    def empty(self) -> None:
        """Delete the objects that have come since, but the definitions of kinds.

        Raises:
            AssertionError: objects keep coming.
        """
        deadline, quiet, deleted = time.monotonic() + _SECONDS, False, set[str]()
        while not quiet:
            found = self._keys()
            # A controller of the cluster itself makes it again: it came after the first look.
            self._before |= {key for key in found & deleted if _OWN_NAMESPACE.search(key)}
            new = found - self._before
            assert time.monotonic() < deadline, f"not deleted: {sorted(new)}"
            deleted |= new
            quiet = not new
            keys = sorted(new, key=lambda key: not key.removeprefix(_ALL).startswith(_OWNERS))
            for start in range(0, len(keys), _OPERATIONS):
                some = keys[start : start + _OPERATIONS]
                self._ask("txn", {"success": [{"request_delete_range": {"key": _encoded(key)}} for key in some]})
            time.sleep(_QUIET_SECONDS)

    def _keys(self) -> set[str]:
        asked = {"key": _encoded(_ALL), "range_end": _encoded(_ALL[:-1] + chr(ord("/") + 1)), "keys_only": True}
        found = (base64.b64decode(item["key"]).decode() for item in self._ask("range", asked).get("kvs", ()))
        return {key for key in found if not key.removeprefix(_ALL).startswith(_EXCEPTIONS)}

    def _ask(self, what: str, asked: dict[str, Any]) -> dict[str, Any]:
        """Send a request to etcd's JSON gateway (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway)."""
        url, body = f"https://127.0.0.1:{self._port}/v3/kv/{what}", json.dumps(asked).encode()
        with urllib.request.urlopen(url, body, context=self._context, timeout=_SECONDS) as answer:
            return dict(json.load(answer))


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()
