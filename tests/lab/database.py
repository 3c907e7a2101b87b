"""Database of a lab that is up, emptied while its servers run.

The API server and all controllers watch etcd, so objects that are deleted there are deleted for
them, too, at once and whatever their finalizers. A new start with an empty database takes seconds
of two cores, and as long again for the definitions of the operators' kinds, which stay here.

Each deletion is a request of its own. Those of one transaction have one version, and a watch that
breaks among them goes on after that version: its controller keeps the rest for ever.
"""

import base64
import re
import time
from typing import Any

import urllib3

from berth.lab import controlplane
from berth.lab.home import LabHome

_SECONDS = 60.0
_QUIET_SECONDS = 0.2
"""Time without a new object after which none comes: a controller acts on what it saw before."""

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

    def __init__(self, home: LabHome) -> None:
        plane = controlplane.load(home)
        assert plane is not None
        pki = plane.folder / "pki"
        self._url = f"https://127.0.0.1:{plane.ports['etcdPort']}/v3/kv"
        self._etcd = urllib3.PoolManager(
            ca_certs=str(pki / "ca.crt"),
            cert_file=str(pki / "admin.crt"),
            key_file=str(pki / "admin.key"),
            timeout=_SECONDS,
        )
        self._before = self._keys()

    def empty(self) -> None:
        """Delete the objects that have come since, but the definitions of kinds.

        Raises:
            AssertionError: objects keep coming.
        """
        deadline = time.monotonic() + _SECONDS
        quiet = False
        deleted = set[str]()
        while not quiet:
            found = self._keys()
            # A controller of the cluster itself makes it again: it came after the first look.
            self._before |= {key for key in found & deleted if _OWN_NAMESPACE.search(key)}
            new = found - self._before
            assert time.monotonic() < deadline, f"not deleted: {sorted(new)}"
            deleted |= new
            quiet = not new
            for key in sorted(new, key=lambda key: not key.removeprefix(_ALL).startswith(_OWNERS)):
                self._ask("deleterange", {"key": _encoded(key)})
            time.sleep(_QUIET_SECONDS)

    def _keys(self) -> set[str]:
        asked = {
            "key": _encoded(_ALL),
            "range_end": _encoded(_ALL[:-1] + chr(ord("/") + 1)),
            "keys_only": True,
        }
        found = (
            base64.b64decode(item["key"]).decode()
            for item in self._ask("range", asked).get("kvs", ())
        )
        return {key for key in found if not key.removeprefix(_ALL).startswith(_EXCEPTIONS)}

    def _ask(self, what: str, asked: dict[str, Any]) -> dict[str, Any]:
        """Send a request to etcd's JSON gateway (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway)."""
        answer = self._etcd.request("POST", f"{self._url}/{what}", json=asked)
        assert answer.status == 200, f"etcd {what}: {answer.status} {answer.data.decode()}"
        return dict(answer.json())


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()
