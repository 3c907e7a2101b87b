"""Containers inside a Ray pod's container, on a real kubelet and containerd: they see the GPUs of their pod, and nothing else.

The lab's Ray image has no podman; it is put into the running pods, where PATH has a folder that Ray's user may write to.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.containers import container
from tests.real.conftest import RealNode, berth

pytestmark = [pytest.mark.real, pytest.mark.long]

OWNER = "carol"
NAMESPACE = f"berth-{OWNER}"
IMAGE = "localhost/nested:1"
PODMAN = "/home/ray/podman"
PROGRAMS = "/home/ray/anaconda3/bin"
# An image has these in /usr/bin and needs none of this. Podman clears the environment in which the runtime is run.
LIBRARIES = f"#!/bin/sh\nexport LD_LIBRARY_PATH={PODMAN}/usr/lib/x86_64-linux-gnu\n"
RUNTIME = f'{LIBRARIES}exec {PODMAN}/usr/bin/crun "$@"\n'
LAUNCHER = f'{LIBRARIES}exec {PODMAN}/usr/bin/podman --conmon {PODMAN}/usr/bin/conmon --runtime {PODMAN}/crun "$@"\n'
POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'

# Ray and its Python are in the image by the time that a worker starts: `container` may pass podman more options, Ray's first look
# at the image may not, and finds this.
LOOK = """#!/bin/busybox sh
echo /home/ray/anaconda3/lib/python3.11/site-packages/ray/_private/workers/default_worker.py >/shared/worker_path.txt
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
    return {{"gpus": gpus, "inside": inside, "user": os.getuid(), "cuda": os.environ.get("CUDA_VISIBLE_DEVICES")}}

ray.init()
print("told", json.dumps(ray.get(look.remote())))
"""


def archive(packages: Path) -> bytes:
    """What goes into a pod: podman, its launcher, and an image of a shell and what stands for Python."""
    image = io.BytesIO()
    with tarfile.open(fileobj=image, mode="w") as tar:
        add(tar, "bin/python", LOOK)
        tar.add(packages / "usr/bin/busybox", "bin/busybox")
        link = tarfile.TarInfo("bin/sh")
        link.type, link.linkname = tarfile.SYMTYPE, "busybox"
        tar.addfile(link)
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for folder in ("usr/bin", "usr/lib"):
            tar.add(packages / folder, f"{PODMAN}/{folder}".lstrip("/"))
        add(tar, f"{PROGRAMS}/podman", LAUNCHER)
        add(tar, f"{PODMAN}/crun", RUNTIME)
        add(tar, "home/ray/.config/containers/policy.json", POLICY)
        add(tar, f"{PODMAN}/image.tar", image.getvalue().decode("latin-1"))
    return whole.getvalue()


def add(tar: tarfile.TarFile, name: str, text: str) -> None:
    member = tarfile.TarInfo(name.lstrip("/"))
    data = text.encode("latin-1")
    member.size, member.mode = len(data), 0o755
    tar.addfile(member, io.BytesIO(data))


def inside(real: RealNode, pod: str, script: str, stdin: bytes = b"") -> str:
    """Run a script in a pod's Ray container as what `ray start` starts would; its output."""
    shell = ["bash", "-c", f"export PATH=/opt/berth/nested/bin:$PATH; {script}"]
    command = ["kubectl", "exec", "-i", "-n", NAMESPACE, pod, "--", *shell]
    done = subprocess.run(command, input=stdin, env=real.lab.env, capture_output=True, check=False, timeout=240)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


def test_a_container_that_ray_starts_in_a_pod_sees_the_gpus_of_that_pod(
    real: RealNode, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = archive(container.packages(tmp_path_factory.mktemp("podman") / "packages"))
    real.project.write(OWNER, engineer=berth(workers=1, nestedContainers="cdi-per-pod"))
    said = real.project.up(OWNER)
    assert "without either, though not privileged" in said.stdout + said.stderr
    (worker,) = real.project.workers(OWNER)
    name = worker["metadata"]["name"]
    prepare = f"tar -C / -xf - --no-same-owner && podman import --quiet {PODMAN}/image.tar {IMAGE}"
    for pod in (real.head(OWNER), name):
        inside(real, pod, prepare, whole)
    of_pod = inside(real, name, "cd /dev && ls -d nvidia*").split()
    assert len(of_pod) == 1
    look = f"podman run --rm --entrypoint /bin/busybox {IMAGE} sh -c 'cd /dev && ls -d nvidia*; id -u'"
    assert inside(real, name, look).split() == [*of_pod, "1000"]
    told = real.on_head(OWNER, "python", "-c", TASK).stdout
    assert f'told {{"gpus": ["{of_pod[0]}"], "inside": true, "user": 1000, "cuda": "0"}}' in told
    # The head has none, and neither has a container in it.
    assert inside(real, real.head(OWNER), look.replace("ls -d nvidia*;", "")).split() == ["1000"]
    real.project.destroy(OWNER)
