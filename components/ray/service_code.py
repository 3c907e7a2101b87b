"""Code of a RayService's applications in its pods: annotations that the kubelet mounts as files."""

import copy
from collections.abc import Mapping
from typing import Any

from berth.components.core.manifest import Manifest, short_hash
from berth.components.ray.storage.mounts import with_mounts

CODE = "/opt/berth/code"
"""Parent of the folder of a service's code in the pods, which is named after its content."""


def code_folder(files: Mapping[str, str]) -> str:
    """Return the folder of files in the pods; each edit has its own, so that Ray sees it."""
    return f"{CODE}/{short_hash(files)}"


def with_code(template: Manifest, files: Mapping[str, str]) -> Manifest:
    """Return a pod template with the code of an application in its first container, Ray's.

    Annotations of the pods hold the code, and the kubelet mounts them as files. So an edit of the
    code is an edit of the RayCluster, and while there are two clusters each has its own version.

    Args:
        template: the pod template.
        files: text of each file by its path.
    """
    if not files:
        return template
    annotations = dict(template["metadata"].get("annotations", {}))
    items = []
    for number, name in enumerate(sorted(files)):
        key = f"berth/code-{number}"
        annotations[key] = files[name]
        field = {"fieldPath": f"metadata.annotations['{key}']"}
        items.append({"path": name, "fieldRef": field})
    annotated = {**template, "metadata": {**template["metadata"], "annotations": annotations}}
    volume = {"name": "code", "downwardAPI": {"items": items}}
    mount = {"name": "code", "mountPath": code_folder(files), "readOnly": True}
    return with_mounts(annotated, [volume], [mount], new_storage=False)


def with_python_path(serve_config: Mapping[str, Any], files: Mapping[str, str]) -> Manifest:
    """Return a configuration of Ray Serve whose applications find the code first."""
    config: Manifest = copy.deepcopy(dict(serve_config))
    if not files:
        return config
    for application in config["applications"]:
        runtime_env = dict(application.get("runtime_env") or {})
        variables = dict(runtime_env.get("env_vars") or {})
        folders = [code_folder(files)]
        if variables.get("PYTHONPATH"):
            folders.append(variables["PYTHONPATH"])
        variables["PYTHONPATH"] = ":".join(folders)
        application["runtime_env"] = {**runtime_env, "env_vars": variables}
    return config
