"""Container images of a real node, built on the spot under the names that pods ask for.

An image is one layer: a root file system as a tar archive, in the layout that `docker save` writes
and containerd reads.
"""

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from berth.components.core.image import full_name
from berth.components.hardware.versions import RAY_IMAGE
from berth.lab.errors import LabError, quoted
from berth.lab.home import CLONE
from berth.lab.progress import LabProgress
from berth.lab.realnode import debian
from berth.lab.toolchain.cache import Cache, default_folder
from berth.lab.toolchain.failures import GIB, require_space

PAUSE_IMAGE = "berth.invalid/lab/pause:1"
RAY_PACKAGES = CLONE / "lab" / "images" / "ray" / "debian.txt"
RAY_REQUIREMENTS = CLONE / "images" / "ray-podman" / "requirements.txt"
ARCHIVE = "image.tar"

RECIPE = "2"
"""Version of the code that builds images; another one builds all of them again."""

RAY_SECONDS = 180
"""Rough time to build the Ray image on two cores: most of it Debian's torch and its packages."""

_RAY_SPACE = 4 * GIB
_PYTHON = "3.11"
# Wheels that pip may take for a machine with Debian 12's C library, 2.36.
_PLATFORMS = ("manylinux2014_x86_64", *(f"manylinux_2_{minor}_x86_64" for minor in range(17, 37)))
_USER = 1000
_GROUP = 100
# rayproject's images keep Python here, and people's scripts name it.
_PYTHON_HOME = "/home/ray/anaconda3"


@dataclass(frozen=True)
class RayImageSettings:
    """Start settings of containers: command, user as `uid:gid`, working directory, environment."""

    command: tuple[str, ...]
    user: str = ""
    folder: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)


def write_archive(root: Path, name: str, settings: RayImageSettings, archive: Path) -> None:
    """Write a root file system, without its special files, as an image with a full name."""
    layer = archive.with_suffix(".layer")
    with tarfile.open(layer, "w") as tar:
        tar.add(root, arcname=".", filter=lambda member: None if member.isdev() else member)
    with layer.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    configuration = {
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Cmd": list(settings.command),
            "User": settings.user,
            "WorkingDir": settings.folder,
            "Env": [f"{key}={value}" for key, value in settings.env.items()],
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created_by": "berth's lab"}],
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as tar:
        tar.add(layer, arcname="layer.tar")
        for file_name, content in (("config.json", configuration), ("manifest.json", manifest)):
            data = json.dumps(content).encode()
            member = tarfile.TarInfo(file_name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    layer.unlink()


def fetch_wheels(requirements: Path, folder: Path) -> None:
    """Fetch the wheels of pinned requirements by their hashes, for the images' Python."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    command += [
        "--require-hashes",
        "--only-binary=:all:",
        f"--python-version={_PYTHON}",
        "--implementation=cp",
    ]
    command += [f"--platform={platform}" for platform in _PLATFORMS]
    command += [f"--dest={folder}", "-r", str(requirements)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        what = f"the wheels of {requirements.parent.name}/{requirements.name} cannot be fetched"
        raise LabError(
            f"{what}:\n{quoted(result.stderr)}", "check the network connection, then run it again"
        )


def _make_ray_root(root: Path) -> None:
    debian.root_file_system(RAY_PACKAGES.read_text().split(), root)
    debian.inside(
        root,
        [
            "useradd",
            f"--uid={_USER}",
            f"--gid={_GROUP}",
            "--create-home",
            "--shell=/bin/bash",
            "ray",
        ],
        "adding ray",
    )
    wheels = root / "wheels"
    wheels.mkdir()
    fetch_wheels(RAY_REQUIREMENTS, wheels)
    debian.inside(
        root,
        ["python3", "-m", "venv", "--system-site-packages", _PYTHON_HOME],
        "making Ray's Python",
    )
    install = [f"{_PYTHON_HOME}/bin/pip", "install", "--quiet", "--no-index", "--no-deps"]
    shutil.copyfile(RAY_REQUIREMENTS, wheels / "requirements.txt")
    install += ["--find-links=/wheels", "--require-hashes", "-r", "/wheels/requirements.txt"]
    debian.inside(root, install, "installing Ray")
    debian.inside(root, ["chown", "-R", f"{_USER}:{_GROUP}", "/home/ray"], "giving Ray its home")
    shutil.rmtree(wheels)
    for waste in ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/debconf"):
        shutil.rmtree(root / waste, ignore_errors=True)


def _make_ray(folder: Path) -> None:
    require_space(folder, _RAY_SPACE, "the Ray image")
    root = Path(tempfile.mkdtemp(prefix=".root-", dir=folder))
    try:
        root.chmod(0o755)
        _make_ray_root(root)
        path = f"{_PYTHON_HOME}/bin:{debian.environment()['PATH']}"
        env = {"PATH": path, "HOME": "/home/ray", "LANG": "C.UTF-8"}
        settings = RayImageSettings(("/bin/bash",), f"{_USER}:{_GROUP}", "/home/ray", env)
        write_archive(root, full_name(RAY_IMAGE), settings, folder / ARCHIVE)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _key(*parts: bytes) -> str:
    """Hash of a recipe."""
    return hashlib.sha256(b"".join(part + b"\0" for part in (RECIPE.encode(), *parts))).hexdigest()


def ensure(pause: Path, progress: LabProgress) -> dict[str, Path]:
    """Return the archives of a real node's images by full name; missing ones are built."""

    def make_pause(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent) as root:
            shutil.copy(pause, Path(root) / "pause")
            write_archive(
                Path(root),
                PAUSE_IMAGE,
                RayImageSettings(("/pause",), user="65535:65535"),
                folder / ARCHIVE,
            )

    cache = Cache(default_folder().parent / "images", progress)
    key = _key(RAY_IMAGE.encode(), RAY_PACKAGES.read_bytes(), RAY_REQUIREMENTS.read_bytes())
    title = f"{RAY_IMAGE}: Ray, from Debian packages and wheels"
    doing = f"{title}; about {RAY_SECONDS // 60} minutes, once for this machine"
    ray = cache.obtain("ray", key, _make_ray, doing, title)
    sandbox = cache.obtain("pause", _key(pause.read_bytes()), make_pause)
    return {full_name(RAY_IMAGE): ray / ARCHIVE, PAUSE_IMAGE: sandbox / ARCHIVE}
