"""Resources, variables and code of a simulated head's Ray, from the objects of the cluster."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from berth.components.cluster.api import Object
from berth.components.cluster.demand import gpus_of_pod
from berth.components.core.types import parse_quantity

_OBJECT_STORE = 256 << 20
"""Bytes of Ray's object store: the default is a third of this machine's memory."""

_RAYS_OWN = ("RAY_", "KUBERAY_", "FQ_RAY_", "REDIS_")
"""Starts of variables that tell Ray of its pod."""


def resources(cluster: Object, pods: Iterable[Object]) -> dict[str, float]:
    """Return the resources of all pods of a RayCluster, by Ray's names."""
    spec = cluster["spec"]
    params = {
        group["groupName"]: group.get("rayStartParams") or {}
        for group in spec.get("workerGroupSpecs") or []
    }
    total: Counter[str] = Counter()
    for pod in pods:
        labels = pod["metadata"]["labels"]
        is_head = labels.get("ray.io/node-type") == "head"
        own = (
            spec["headGroupSpec"]["rayStartParams"]
            if is_head
            else params.get(labels.get("ray.io/group"), {})
        )
        limits = (pod["spec"]["containers"][0].get("resources") or {}).get("limits") or {}
        found = {
            "CPU": own.get("num-cpus", math.ceil(parse_quantity(str(limits.get("cpu", 0))))),
            "GPU": own.get("num-gpus", gpus_of_pod(pod)),
            "memory": own.get("memory", int(parse_quantity(str(limits.get("memory", 0))))),
            **json.loads(own.get("resources", "'{}'")[1:-1]),
        }
        total.update({name: float(count) for name, count in found.items()})
    return dict(total)


def arguments(found: Mapping[str, float], ports: Mapping[str, int], folder: str) -> list[str]:
    """Return the arguments of `ray` that start a head.

    Args:
        found: its resources, by Ray's names.
        ports: its ports, by the options that set them.
        folder: its temporary folder.
    """
    custom = {name: count for name, count in found.items() if name not in ("CPU", "GPU", "memory")}
    return [
        *("start", "--head", "--block", "--disable-usage-stats"),
        *("--node-ip-address=127.0.0.1", "--dashboard-host=127.0.0.1", f"--temp-dir={folder}"),
        *(f"--num-{kind.lower()}s={int(found[kind])}" for kind in ("CPU", "GPU")),
        *(f"--memory={int(found['memory'])}", f"--resources={json.dumps(custom)}"),
        f"--object-store-memory={_OBJECT_STORE}",
        *(f"--{option}={port}" for option, port in ports.items()),
    ]


def variables(
    container: Object, secret: Callable[[str, str], str | None]
) -> Iterator[tuple[str, str]]:
    """Yield the variables of a head's container that mean the same on this machine.

    Args:
        container: the container.
        secret: returns the value of a Secret of the pod's namespace, by its name and key.
    """
    for variable in container.get("env") or []:
        name = str(variable["name"])
        source = variable.get("valueFrom") or {}
        if name.startswith(_RAYS_OWN) and not name.startswith("RAY_AUTH_"):
            continue
        value: Any = variable.get("value", "") if not source else None
        if at := source.get("secretKeyRef"):
            value = secret(at["name"], at["key"])
        mounts = [str(mount["mountPath"]) for mount in container.get("volumeMounts") or []]
        if value is not None and not str(value).startswith(tuple(mounts)):
            yield name, str(value)


def write_code(pod: Object, folder: Path) -> Path:
    """Write the files of a RayService's code, which annotations hold, and return the folder.

    In the pod they are at a path of their own (components/ray/service_code.py); on this machine
    Python finds them by its own search path.
    """
    for volume in pod["spec"].get("volumes") or []:
        for item in (volume.get("downwardAPI") or {}).get("items") or []:
            key = re.fullmatch(r"metadata\.annotations\['(.+)'\]", item["fieldRef"]["fieldPath"])
            if key is not None:
                path = folder / item["path"]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(pod["metadata"]["annotations"][key[1]], encoding="utf-8")
    return folder
