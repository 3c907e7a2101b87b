"""Podman in a berth's container, called as Ray calls it: it sees exactly the devices of its pod.

The device files are harmless: each is the null device under a GPU's name.
"""

import io
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from berth.components import nested
from tests.containers import container
from tests.containers.container import HOME, Container
from tests.containers.pods import LOADER, PODS, UNPRIVILEGED, Pod
from tests.unit.components.nested.test_nested import cluster as ray_cluster
from tests.unit.components.nested.test_nested import pods

IMAGE = "localhost/ray:1"

# As ray 2.60.0 calls it (https://github.com/ray-project/ray,
# python/ray/_private/runtime_env/image_uri.py): first a look for the worker's program, then the
# worker, whose command line a shell reads (context.py beside it).
LOOK = f"podman run --rm -v /tmp/look:/shared:Z {IMAGE} python -c look"
WORKER = (
    "podman run -v /tmp/ray:/tmp/ray --cgroup-manager=cgroupfs --network=host --pid=host"
    " --ipc=host --userns=keep-id --env RAY_RAYLET_PID='17' --env RAY_JOB_ID=$RAY_JOB_ID"
    f" %s--entrypoint python {IMAGE} /default_worker.py --device=x"
)

# Stand-in for Python in the image: it prints what it sees.
PYTHON = f"""#!/bin/busybox sh
cd /dev
for file in nvidia* nvidia-caps/*; do
    [ -c $file ] && [ $file != nvidia-caps ] && echo device $file
done
echo user $(id -u):$(id -g) job $RAY_JOB_ID visible $NVIDIA_VISIBLE_DEVICES
[ -e {LOADER}/libcuda.so.1 ] && echo library $(cat {LOADER}/libcuda.so.1)
for file in /dev/nvidia[0-9]*; do [ -c $file ] && echo >$file; done
[ -d /tmp/ray ] && touch /tmp/ray/made
[ -d /shared ] && echo /default_worker.py >/shared/worker_path.txt
exit 0
"""


USUAL = {"no GPU", "one GPU of eight, by GKE's device plugin"}
"""Pods of tests that are not long."""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    obstacle = container.obstacle()
    if obstacle is not None:
        pytest.skip(obstacle)
    return container.packages(tmp_path_factory.mktemp("podman") / "packages")


@pytest.fixture(scope="module")
def image(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nested_image(packages, tmp_path_factory.mktemp("image") / "image.tar")


def nested_image(packages: Path, archive: Path) -> Path:
    """File system of an image: a shell and a stand-in for Python, owned by root."""
    with tarfile.open(archive, "w") as tar:
        for folder in ("bin", "etc", "tmp", "home", "home/ray"):
            member = tarfile.TarInfo(folder)
            member.type = tarfile.DIRTYPE
            member.mode = 0o755
            tar.addfile(member)
        tar.add(packages / "usr/bin/busybox", "bin/busybox")
        for name in ("sh", "id", "touch", "cat"):
            member = tarfile.TarInfo(f"bin/{name}")
            member.type = tarfile.SYMTYPE
            member.linkname = "busybox"
            tar.addfile(member)
        for name, text in {
            "bin/python": PYTHON,
            "etc/passwd": "ray:x:1000:100::/home/ray:/bin/sh\n",
        }.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            member.mode = 0o755
            member.uid = 0
            member.gid = 42
            tar.addfile(member, io.BytesIO(text.encode()))
    return archive


@pytest.fixture
def inside(packages: Path, image: Path, tmp_path: Path) -> Callable[[Pod, str], list[str]]:
    """Run a script in the container of a worker with a pod's devices; return the lines of its
    output.
    """

    return lambda pod, script: worker_output(pod, script, image, tmp_path, packages=packages)


def worker_output(
    pod: Pod,
    script: str,
    archive: Path,
    folder: Path,
    *,
    packages: Path | None = None,
    image: Path | None = None,
) -> list[str]:
    """Run a script in a worker's container, after an import of a nested image; return the lines of
    its output.

    Args:
        pod: the devices of the worker's pod.
        script: what runs.
        archive: file system of the nested image.
        folder: a folder for all that is made.
        packages: podman's packages over this machine's root; or
        image: root file system of the worker's image.
    """
    files = folder / "files"
    scratch = folder / "scratch"
    pod.write(files, status=UNPRIVILEGED)
    pod.make_device_files(files)
    scratch.mkdir()
    config_map = nested.programs_config_map("cdi-per-pod", "berth-x", {})
    assert config_map is not None
    data = {config_map["metadata"]["name"]: config_map["data"]}
    carried = {"/image.tar": archive}
    worker = pods(ray_cluster("cdi-per-pod"))[1]
    container_of_worker = Container(
        worker, data, files, packages or Path("/"), scratch, carried, image
    )
    # Ray's images say USER ray.
    before = (
        f"podman import --quiet --change USER=1000 /image.tar {IMAGE} >/dev/null && mkdir /tmp/ray"
        " /tmp/look"
    )
    done = container_of_worker.run(f"{before} && {script}", {**pod.env, "RAY_JOB_ID": "07000000"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def seen(lines: list[str]) -> set[str]:
    return {line.removeprefix("device ") for line in lines if line.startswith("device ")}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in USUAL else [pytest.mark.long]) for name in PODS]
)
def test_a_container_of_ray_sees_exactly_the_devices_of_its_pod(
    inside: Callable[[Pod, str], list[str]], name: str
) -> None:
    pod = PODS[name]
    look, worker, *created = "\n".join(
        inside(
            pod,
            f"{LOOK} && cat /tmp/look/worker_path.txt && echo === && {WORKER % ''} && "
            "echo === && stat -c %u /tmp/ray/made",
        )
    ).split("\n===\n")
    assert look.splitlines()[-1] == "/default_worker.py"
    for output in (look.splitlines(), worker.splitlines()):
        assert seen(output) == set(pod.devices)
        assert ("library libcuda of the node" in output) == bool(pod.files)
    assert "user 1000:100 job 07000000 visible void" in worker.splitlines()
    assert created == ["1000"]


@pytest.mark.parametrize(
    "name", ["two GPUs of eight, by NVIDIA's device plugin", "two parts of a GPU, by MIG"]
)
def test_a_device_that_is_requested_by_name_is_the_only_one(
    inside: Callable[[Pod, str], list[str]], name: str
) -> None:
    pod = PODS[name]
    control = set(pod.devices) - pod.expected["all"]
    names = list(pod.expected)
    # As Ray's deprecated `container` passes it on: {"run_options": ["--device=nvidia.com/gpu=1"]}.
    script = " && echo === && ".join(WORKER % f"--device=nvidia.com/gpu={item} " for item in names)
    report = [seen(part.splitlines()) for part in "\n".join(inside(pod, script)).split("\n===\n")]
    assert dict(zip(names, report, strict=True)) == {
        item: pod.expected[item] | control for item in names
    }


def test_without_the_program_before_it_podman_gives_no_gpu(
    inside: Callable[[Pod, str], list[str]],
) -> None:
    pod = PODS["one GPU of eight, by GKE's device plugin"]
    plain = f"/usr/bin/podman run --rm --user 0 {IMAGE} python"
    wrapped = f"podman run --rm --user 0 {IMAGE} python"
    first, second = "\n".join(inside(pod, f"{plain} && echo === && {wrapped}")).split("\n===\n")
    assert seen(first.splitlines()) == set()
    assert seen(second.splitlines()) == set(pod.devices)


def test_podman_refuses_a_broken_specification(inside: Callable[[Pod, str], list[str]]) -> None:
    """Podman judges an existing specification itself, and refuses a broken one."""
    pod = PODS["no GPU"]
    broken = '{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[]}'
    run = f"/usr/bin/podman run --device nvidia.com/gpu=all {IMAGE}"
    script = f"echo '{broken}' >/etc/cdi/nvidia.com-gpu.json; {run} || echo refused"
    assert inside(pod, script) == ["refused"]


def test_rays_token_is_a_file_that_podman_mounts_and_no_argument(
    inside: Callable[[Pod, str], list[str]],
) -> None:
    pod = replace(PODS["no GPU"], env={"RAY_AUTH_TOKEN": "canary", "HOME": HOME})
    script = "env | grep -c canary; stat -c %a $RAY_AUTH_TOKEN_PATH; cat $RAY_AUTH_TOKEN_PATH"
    assert inside(pod, script) == ["0", "600", "canary"]
