"""Code of an application in the pods of its RayService: pure functions.

Annotations of the pods hold the code, and the kubelet mounts them as files. So an edit of the code
is an edit of the RayCluster, and while there are two clusters each has its own version.
"""

import copy
from collections.abc import Mapping
from typing import Any

from berth.components.core.manifest import Manifest, digest
from berth.components.ray.storage import mounted

FOLDER = "/opt/berth/code"
"""Parent of the code's folder in the pods, which is named after its content."""


def folder(files: Mapping[str, str]) -> str:
    """Return the folder of files in the pods; each edit has its own, so that Ray sees it."""
    return f"{FOLDER}/{digest(files)}"


def with_code(template: Manifest, files: Mapping[str, str]) -> Manifest:
    """Return a pod template with the code in its first container, Ray's."""
    if not files:
        return template
    keys = {f"berth/code-{number}": name for number, name in enumerate(sorted(files))}
    notes = template["metadata"].get("annotations", {}) | {key: files[name] for key, name in keys.items()}
    items = [{"path": name, "fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}} for key, name in keys.items()]
    mount = {"name": "code", "mountPath": folder(files), "readOnly": True}
    with_notes = {**template, "metadata": {**template["metadata"], "annotations": notes}}
    return mounted(with_notes, [{"name": "code", "downwardAPI": {"items": items}}], [mount], new_storage=False)


def on_python_path(serve_config: Mapping[str, Any], files: Mapping[str, str]) -> Manifest:
    """Return a configuration of Ray Serve whose applications find the code first."""
    config: Manifest = copy.deepcopy(dict(serve_config))
    for application in config["applications"] if files else ():
        runtime_env = application["runtime_env"] = dict(application.get("runtime_env") or {})
        variables = runtime_env["env_vars"] = dict(runtime_env.get("env_vars") or {})
        variables["PYTHONPATH"] = ":".join(filter(None, (folder(files), variables.get("PYTHONPATH"))))
    return config
