"""Images of folder images/, built from their Dockerfiles without a container engine, and their
contents.

Every command of the Dockerfiles runs as it is written. Two things differ from a real build. The
base of ray-a4, Ray's own image, cannot be had here: ray-podman, which is Debian with Ray's wheels,
stands for it. And pip takes the wheels from a folder, into which they were fetched by the same
pinned hashes.

Not checked: CUDA, which needs a GPU, and gIB's own libraries, which come from Google's image.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from berth.components.hardware import versions
from berth.components.ray.images import BERTH_IMAGES, tag_of_image
from berth.lab.home import CLONE
from berth.lab.realnode import debian
from berth.lab.realnode.images import fetch_wheels
from berth.lab.toolchain.failures import GIB
from tests.containers import container, dockerfile
from tests.containers.pods import PODS
from tests.containers.test_podman import LOOK, WORKER, nested_image, seen, worker_output

pytestmark = pytest.mark.long

SPACE = 20 * GIB
LIBNL = ("libnl-3.so.200", "libnl-route-3.so.200")
# What gIB brings of its own is of the same making: RDMA's user space, which loads the library of
# the NIC's maker.
RDMA = ("libibverbs1", "ibverbs-providers", "librdmacm1")


@dataclass(frozen=True)
class Image:
    """An image that was built.

    Attributes:
        root: its root file system.
        built: its settings.
    """

    root: Path
    built: dockerfile.Built

    def run(self, script: str) -> str:
        return dockerfile.run(self.root, self.built, script, script[:40])


def build(name: str, root: Path, base: dockerfile.Built | None = None) -> Image:
    context = CLONE / "images" / name
    wheels = root / "wheels"
    wheels.mkdir()
    fetch_wheels(context / "requirements.txt", wheels)
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"}
    built = dockerfile.build(context, root, base=base, environment=offline)
    shutil.rmtree(wheels)
    return Image(root, built)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Folder that is removed after the tests: the images take 10 GB, and the wheels as much
    again.
    """
    obstacle = container.obstacle()
    if obstacle is not None:
        pytest.skip(obstacle)
    with tempfile.TemporaryDirectory(prefix="berth-images-") as name:
        if shutil.disk_usage(name).free < SPACE:
            pytest.skip(f"the images take {SPACE // GIB} GiB, and {name} has less")
        yield Path(name)


@pytest.fixture(scope="module")
def ray_podman(folder: Path) -> Image:
    debian.root_file_system([], folder / "ray-podman")
    image = build("ray-podman", folder / "ray-podman")
    assert image.built.base.startswith(f"debian:{debian.RELEASE}"), "which is what it was built on"
    return image


@pytest.fixture(scope="module")
def ray_a4(folder: Path, ray_podman: Image) -> Image:
    subprocess.run(["cp", "-a", ray_podman.root, folder / "ray-a4"], check=True)
    image = build("ray-a4", folder / "ray-a4", ray_podman.built)
    assert image.built.base == versions.RAY_IMAGE
    return image


@pytest.mark.parametrize("name", BERTH_IMAGES)
def test_an_image_has_the_ray_and_the_python_of_its_tag(
    name: str, request: pytest.FixtureRequest
) -> None:
    image: Image = request.getfixturevalue(name.replace("-", "_"))
    assert image.run("ray --version").strip() == f"ray, version {versions.RAY}"
    major, minor = image.run("python --version").split()[1].split(".")[:2]
    assert tag_of_image(name).split("-")[:2] == [versions.RAY, f"py{major}{minor}"]
    assert image.run("id -u").strip() == "1000"
    assert "No broken requirements" in image.run("pip check")


def test_podman_in_its_image_gives_containers_the_gpus_of_the_pod(
    ray_podman: Image, folder: Path, tmp_path: Path
) -> None:
    assert "podman" in BERTH_IMAGES["ray-podman"].contents
    pod = PODS["two GPUs of eight, by NVIDIA's device plugin"]
    archive = nested_image(container.packages(folder / "packages"), folder / "nested.tar")
    script = f"{LOOK} && echo === && {WORKER % ''}"
    look, worker = "\n".join(
        worker_output(pod, script, archive, tmp_path, image=ray_podman.root)
    ).split("\n===\n")
    for output in (look.splitlines(), worker.splitlines()):
        assert seen(output) == set(pod.devices)
        assert "library libcuda of the node" in output


def missing(image: Path, libraries: Path) -> set[str]:
    """Libraries that RDMA's user space lacks in an image into which it is mounted as gIB's folder
    is.
    """
    carried = image / "opt" / "rdma"
    shutil.copytree(libraries / "usr/lib/x86_64-linux-gnu", carried, symlinks=True)
    try:
        files = [
            str(Path("/opt/rdma") / path.relative_to(carried))
            for path in carried.rglob("lib*.so*")
            if path.is_file()
        ]
        assert len(files) >= len(RDMA)
        ldd = debian.inside(image, ["env", "LD_LIBRARY_PATH=/opt/rdma", "ldd", *files], "ldd")
    finally:
        shutil.rmtree(carried)
    return {line.split()[0] for line in ldd.splitlines() if "not found" in line}


def test_gib_finds_its_libraries_because_of_the_dockerfile(
    ray_podman: Image, ray_a4: Image, folder: Path
) -> None:
    assert "libnl" in BERTH_IMAGES["ray-a4"].contents
    libraries = folder / "rdma"
    libraries.mkdir()
    debian.unpack(RDMA, libraries)
    assert missing(ray_podman.root, libraries) == set(LIBNL)
    assert missing(ray_a4.root, libraries) == set()


def test_torch_has_the_tags_cuda_code_for_the_b200_and_nccl_where_settings_name_it(
    ray_a4: Image,
) -> None:
    assert "torch" in BERTH_IMAGES["ray-a4"].contents
    ask = (
        "import torch; print(torch.__version__.split('+')[0], torch.version.cuda,"
        " *torch.cuda.nccl.version())"
    )
    version, cuda, *nccl = ray_a4.run(f'python -c "{ask}"').split()
    pinned = (CLONE / "images/ray-a4/requirements.txt").read_text().splitlines()
    assert f"torch=={version} \\" in pinned
    assert f"nvidia-nccl-cu12=={'.'.join(nccl)} \\" in pinned
    assert tag_of_image("ray-a4").endswith(f"-cu{cuda.replace('.', '')}")
    assert (
        "sm_100"
        in ray_a4.run("python -c 'import torch; print(torch._C._cuda_getArchFlags())'").split()
    )
    # By the name that the setting has, and by the one by which CuPy looks for it.
    for name in ("/opt/nccl/lib/libnccl.so.2", "libnccl.so.2"):
        load = f"import ctypes; n = ctypes.c_int(); library = ctypes.CDLL('{name}')"
        read = f"{load}; library.ncclGetVersion(ctypes.byref(n)); print(n.value)"
        number = int(ray_a4.run(f'python -c "{read}"'))
        version_of_it = [number // 10000, number % 10000 // 100, number % 100]
        assert version_of_it == [int(part) for part in nccl]
