"""An application's code in the pods of its RayService: pure functions.

The code is in annotations of the pods, which the kubelet shows as files. So it comes and goes with its RayCluster: an edit is an edit of the
cluster, and while there are two clusters each has its own.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from typing import Any

FOLDER = "/opt/berth/code"
"""Where the code is in the pods; the folder in it is named after the content."""

_VOLUME = "code"
_ANNOTATION = "berth/code-{}"
_PATH = "PYTHONPATH"
_DIGITS = 8

Object = dict[str, Any]


def folder(files: Mapping[str, str]) -> str:
    """The folder of these files in the pods: another one for every edit, so that Ray too takes it for another version."""
    text = json.dumps(files, sort_keys=True)
    return f"{FOLDER}/{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"


def over(template: Object, files: Mapping[str, str]) -> Object:
    """A pod template with the code in its first container, Ray's.

    Args:
        template: the pod template.
        files: text of each file by its path.
    """
    made = copy.deepcopy(template)
    if not files:
        return made
    keys = {_ANNOTATION.format(number): name for number, name in enumerate(sorted(files))}
    annotations = made["metadata"].setdefault("annotations", {})
    annotations |= {key: files[name] for key, name in keys.items()}
    items = [{"path": name, "fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}} for key, name in keys.items()]
    made["spec"].setdefault("volumes", []).append({"name": _VOLUME, "downwardAPI": {"items": items}})
    mount = {"name": _VOLUME, "mountPath": folder(files), "readOnly": True}
    made["spec"]["containers"][0].setdefault("volumeMounts", []).append(mount)
    return made


def found_by(serve_config: Mapping[str, Any], files: Mapping[str, str]) -> Object:
    """A configuration of Ray Serve whose applications find the code, before whatever else they find.

    Args:
        serve_config: the configuration.
        files: text of each file by its path.
    """
    made: Object = copy.deepcopy(dict(serve_config))
    for application in made["applications"] if files else ():
        runtime_env = application["runtime_env"] = dict(application.get("runtime_env") or {})
        variables = runtime_env["env_vars"] = dict(runtime_env.get("env_vars") or {})
        variables[_PATH] = ":".join(filter(None, (folder(files), variables.get(_PATH))))
    return made
