"""Containers inside a Ray pod's container, on a real kubelet and containerd: they see the GPUs of
their pod, and nothing else.

The pods' image is images/ray-podman, built from its Dockerfile under the name that the gallery's
stack has for it.
"""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from berth.components.core.image import full_name
from berth.lab.home import CLONE
from berth.lab.progress import LabProgress
from berth.lab.realnode import debian, lifecycle
from berth.lab.realnode.images import RayImageSettings, write_archive
from tests.containers.test_images import build
from tests.real.conftest import RealNode, berth

pytestmark = [pytest.mark.real, pytest.mark.long]

OWNER = "carol"
NAMESPACE = f"berth-{OWNER}"
IMAGE = "localhost/nested:1"

# Ray and its Python are in the image by the time that a worker starts: `container` may pass podman
# more options, Ray's first look at the image may not, and finds this.
LOOK = """#!/bin/busybox sh
packages=/home/ray/anaconda3/lib/python3.11/site-packages
echo $packages/ray/_private/workers/default_worker.py >/shared/worker_path.txt
"""
TASK = f"""
import json, os, ray

shared = ["/usr", "/lib", "/lib64", "/home/ray/anaconda3"]
options = [f"--volume={{path}}:{{path}}:ro" for path in shared if os.path.exists(path)]
options.append("--env=PATH=/home/ray/anaconda3/bin:/usr/bin:/bin")

@ray.remote(num_gpus=1, runtime_env={{"container": {{"image": "{IMAGE}", "run_options": options}}}})
def look():
    gpus = sorted(name for name in os.listdir("/dev") if name.startswith("nvidia"))
    inside = os.path.exists("/run/.containerenv")
    cuda = os.environ.get("CUDA_VISIBLE_DEVICES")
    return {{"gpus": gpus, "inside": inside, "user": os.getuid(), "cuda": cuda}}

ray.init()
print("told", json.dumps(ray.get(look.remote())))
"""


def nested_image(folder: Path) -> bytes:
    """Image of a task: a shell, and a stand-in for Python."""
    debian.unpack(["busybox-static"], folder)
    image = io.BytesIO()
    with tarfile.open(fileobj=image, mode="w") as tar:
        add(tar, "bin/python", LOOK)
        tar.add(folder / "bin/busybox", "bin/busybox")
        link = tarfile.TarInfo("bin/sh")
        link.type = tarfile.SYMTYPE
        link.linkname = "busybox"
        tar.addfile(link)
    return image.getvalue()


@pytest.fixture
def ray_podman(real: RealNode, tmp_path: Path) -> str:
    """The name of images/ray-podman in the gallery's stack, under which the node has it."""
    text = (CLONE / "stacks/gallery/Pulumi.nested.yaml").read_text(encoding="utf-8")
    name: str = yaml.safe_load(text)["config"]["berth:environment"]["defaults"]["image"]
    root = tmp_path / "root"
    archive = tmp_path / "image.tar"
    debian.root_file_system([], root)
    built = build("ray-podman", root).built
    settings = RayImageSettings(("/bin/bash",), "1000:100", built.folder, built.env)
    write_archive(root, full_name(name), settings, archive)
    ctr = lifecycle.programs(LabProgress()).built["ctr"]
    socket = ("--address", "/run/containerd/containerd.sock", "--namespace", "k8s.io")
    real.inside(str(ctr), *socket, "images", "import", str(archive))
    return name


def add(tar: tarfile.TarFile, name: str, text: str) -> None:
    member = tarfile.TarInfo(name.lstrip("/"))
    data = text.encode("latin-1")
    member.size = len(data)
    member.mode = 0o755
    tar.addfile(member, io.BytesIO(data))


def inside(real: RealNode, pod: str, script: str, stdin: bytes = b"") -> str:
    """Run a script in a pod's Ray container as a child of `ray start` would; return its output."""
    shell = ["bash", "-c", f"export PATH=/opt/berth/nested/bin:$PATH; {script}"]
    command = ["kubectl", "exec", "-i", "-n", NAMESPACE, pod, "--", *shell]
    done = subprocess.run(
        command, input=stdin, env=real.lab.env, capture_output=True, check=False, timeout=240
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


def test_a_container_that_ray_starts_in_a_pod_sees_the_gpus_of_that_pod(
    real: RealNode, ray_podman: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    nested = nested_image(tmp_path_factory.mktemp("nested"))
    real.project.write(
        OWNER, engineer=berth(workers=1, image=ray_podman, nestedContainers="cdi-per-pod")
    )
    result = real.project.up(OWNER)
    assert "without either, though not privileged" in result.stdout + result.stderr
    assert "is not known to have podman" not in result.stdout + result.stderr
    (worker,) = real.project.workers(OWNER)
    name = worker["metadata"]["name"]
    for pod in (real.head(OWNER), name):
        inside(
            real,
            pod,
            f"cat >/tmp/nested.tar && podman import --quiet /tmp/nested.tar {IMAGE}",
            nested,
        )
    of_pod = inside(real, name, "cd /dev && ls -d nvidia*").split()
    assert len(of_pod) == 1
    look = (
        f"podman run --rm --entrypoint /bin/busybox {IMAGE} sh -c 'cd /dev && ls -d nvidia*; id -u'"
    )
    assert inside(real, name, look).split() == [*of_pod, "1000"]
    output = real.on_head(OWNER, "python", "-c", TASK).stdout
    assert f'told {{"gpus": ["{of_pod[0]}"], "inside": true, "user": 1000, "cuda": "0"}}' in output
    # The head has none, and neither has a container in it.
    assert inside(real, real.head(OWNER), look.replace("ls -d nvidia*;", "")).split() == ["1000"]
    real.project.destroy(OWNER)
