"""Container of a Ray pod without Kubernetes: namespaces and mounts after its manifest, in this
machine's root with podman's Debian packages laid over it.

What a kubelet and containerd would do is done by a script, as far as it matters to podman: the
device files are the pod's own, /proc and /sys are read-only where theirs are, and the process has
the user, the capabilities and the flag against new privileges that the manifest says.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from berth.lab.realnode import debian

PACKAGES = (
    "busybox-static",
    "conmon",
    "crun",
    "golang-github-containers-common",
    "golang-github-containers-image",
    "libassuan0",
    "libdevmapper1.02.1",
    "libglib2.0-0",
    "libgpgme11",
    "libseccomp2",
    "libsubid4",
    "libyajl2",
    "podman",
)
"""Podman as Debian 12 has it (4.3.1), with what it needs."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HOME = "/home/ray"
GROUP = 100
_SECONDS = 120

# As of containerd's containers that are not privileged (containerd v2.2.3, pkg/oci/spec.go).
_READ_ONLY = ("bus", "fs", "irq", "sys", "sysrq-trigger")
_MASKED = ("kcore", "keys", "timer_list")
_DEVICES = {
    "null": (1, 3),
    "zero": (1, 5),
    "full": (1, 7),
    "random": (1, 8),
    "urandom": (1, 9),
    "tty": (5, 0),
}


def packages(folder: Path) -> Path:
    """Podman's packages as a root file system to lay over a merged one (/bin, /lib and /sbin are
    links).
    """
    folder.mkdir()
    debian.unpack(PACKAGES, folder)
    for name in ("bin", "lib", "sbin"):
        if (folder / name).is_dir():
            shutil.copytree(folder / name, folder / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(folder / name)
    return folder


@dataclass(frozen=True)
class Container:
    """A container.

    Attributes:
        spec: the pod's spec; its first container is the one.
        config_maps: data of ConfigMaps by name.
        files: what is in the container beside its image: /dev, /proc/driver.
        packages: what is laid over this machine's root.
        scratch: a folder for all that is made.
        carried: other files: where they go, and where they are.
        image: an image's root file system, in place of this machine's root with packages.
    """

    spec: Mapping[str, Any]
    config_maps: Mapping[str, Mapping[str, str]]
    files: Path
    packages: Path
    scratch: Path
    carried: Mapping[str, Path] = field(default_factory=dict)
    image: Path | None = None

    def run(self, script: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a script in place of `ray start`, after the manifest's preceding commands."""
        ray = self.spec["containers"][0]
        context = ray["securityContext"]
        own = (
            {"PATH": PATH, "HOME": HOME}
            | {item["name"]: item["value"] for item in ray["env"]}
            | dict(env)
        )
        # KubeRay's shell (kuberay v1.6.2, ray-operator/controllers/ray/utils/util.go,
        # GetContainerCommand).
        shell = ["/bin/bash", "-c", "--", " ".join([*ray["command"], "&&", script])]
        user = context["runAsUser"]
        limits = [f"--reuid={user}", f"--regid={GROUP}", "--clear-groups", "--inh-caps=-all"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        limits.append("--bounding-set=-all")
        assert context["allowPrivilegeEscalation"] is False
        limits.append("--no-new-privs")
        process = [
            "env",
            "-i",
            *(f"{name}={value}" for name, value in own.items()),
            "setpriv",
            *limits,
            *shell,
        ]
        root = self.scratch / "root"
        steps = [
            *self._root(root, user),
            *self._devices(root),
            *self._proc(root),
            *self._volumes(root),
        ]
        # A changed root, not a chroot: from within one the kernel makes no user namespaces.
        enter = [
            f"cd {root} && mkdir .old && pivot_root . .old && umount -l /.old",
            f"exec {shlex.join(process)}",
        ]
        text = "\n".join(["set -e", *steps, *enter])
        command = [
            "unshare",
            "--mount",
            "--pid",
            "--cgroup",
            "--fork",
            "--propagation=private",
            "bash",
            "-c",
            text,
        ]
        # `su` without a dash leaves root without the folder of pivot_root.
        env = os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
            env=env,
        )

    def _root(self, root: Path, user: int) -> list[str]:
        root.mkdir()
        carried = [f"cp {source} {root}{target}" for target, source in self.carried.items()]
        if self.image:
            layer = self.scratch / "layer"
            layers = (
                f"lowerdir={self.files}:{self.image},upperdir={layer}/upper,workdir={layer}/work"
            )
            return [
                (
                    f"mkdir {layer} && mount -t tmpfs -o mode=755 tmpfs {layer} && mkdir"
                    f" {layer}/upper {layer}/work"
                ),
                f"mount -t overlay -o {layers} overlay {root}",
                *carried,
            ]
        laid_over = [
            folder for folder in (self.files / "usr", self.packages / "usr") if folder.is_dir()
        ]
        links = [
            path for path in map(Path, ("/bin", "/lib", "/lib64", "/sbin")) if path.is_symlink()
        ]
        etc = root / "etc"
        writable = f"upperdir={root}/.upper,workdir={root}/.work"
        return [
            f"mount -t tmpfs -o mode=755 tmpfs {root}",
            (
                f"cd {root} && mkdir -p dev etc home/ray opt proc run sys tmp usr var/lib var/tmp"
                " .upper .work"
            ),
            f"cd {root} && chmod 1777 tmp var/tmp",
            *(f"ln -s {path.readlink()} {root}{path}" for path in links),
            (
                f"mount -t overlay -o lowerdir={':'.join(map(str, [*laid_over, '/usr']))} overlay"
                f" {root}/usr"
            ),
            f"mount -t overlay -o lowerdir={self.packages}/etc:/etc,{writable} overlay {etc}",
            (
                f"echo ray:x:{user}:{GROUP}::{HOME}:/bin/bash >{etc}/passwd && echo"
                f" users:x:{GROUP}: >{etc}/group"
            ),
            f"echo ray:100000:65536 | tee {etc}/subuid >{etc}/subgid",
            f"chown {user}:{GROUP} {root}{HOME}",
            *carried,
        ]

    def _devices(self, root: Path) -> list[str]:
        dev = root / "dev"
        return [
            f"mount -t tmpfs -o mode=755,nosuid tmpfs {dev}",
            *(
                f"mknod -m 666 {dev}/{name} c {major} {minor}"
                for name, (major, minor) in _DEVICES.items()
            ),
            f"mkdir {dev}/pts {dev}/shm {dev}/mqueue",
            f"mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts {dev}/pts",
            f"mount -t tmpfs -o mode=1777,nosuid,nodev,noexec shm {dev}/shm",
            f"mount -t mqueue mqueue {dev}/mqueue",
            f"ln -s pts/ptmx {dev}/ptmx; ln -s /proc/self/fd {dev}/fd",
            f"cp -a {self.files}/dev/. {dev}/",
        ]

    def _proc(self, root: Path) -> list[str]:
        proc = root / "proc"
        driver = self.files / "proc/driver"
        return [
            f"mount -t proc -o nosuid,noexec,nodev proc {proc}",
            *([f"mount --bind {driver} {proc}/driver"] if driver.is_dir() else []),
            *(
                # A kernel need not have all of them.
                f"[ ! -e {path} ] || (mount --bind {path} {path} && mount -o remount,bind,ro"
                f" {path})"
                for path in (proc / name for name in _READ_ONLY)
            ),
            *(
                f"[ ! -e {proc}/{name} ] || mount --bind /dev/null {proc}/{name}"
                for name in _MASKED
            ),
            f"mount -t sysfs -o ro,nosuid,noexec,nodev sysfs {root}/sys",
            # Version 2, as GKE's nodes have it; of what this machine's version controls nothing is
            # needed.
            f"mount -t cgroup2 -o ro,nosuid,noexec,nodev cgroup2 {root}/sys/fs/cgroup",
        ]

    def _volumes(self, root: Path) -> list[str]:
        folders: dict[str, Path] = {}
        for volume in self.spec["volumes"]:
            folders[volume["name"]] = folder = self.scratch / "volumes" / volume["name"]
            folder.mkdir(parents=True)
            if "emptyDir" in volume:
                folder.chmod(0o777)
                continue
            source = volume["configMap"]
            for item in source["items"]:
                path = folder / item["path"]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self.config_maps[source["name"]][item["key"]])
                path.chmod(source["defaultMode"])
        steps = []
        for mount in self.spec["containers"][0]["volumeMounts"]:
            source = folders[mount["name"]] / mount.get("subPath", "")
            target = f"{root}{mount['mountPath']}"
            make = f"touch {target}" if source.is_file() else f"mkdir -p {target}"
            steps.append(f"{make} && mount --bind {source} {target}")
            if mount.get("readOnly"):
                steps.append(f"mount -o remount,bind,ro {target}")
        return steps


def obstacle() -> str | None:
    """Reason why there can be no such container here, in one line; None if there can."""
    trial: Sequence[str] = (
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "mount",
        "-t",
        "tmpfs",
        "tmpfs",
        "/mnt",
    )
    if (
        shutil.which("setpriv") is None
        or subprocess.run(trial, capture_output=True, check=False).returncode
    ):
        return "podman's tests need root with namespaces and mounts of its own, and setpriv"
    return debian.obstacle()
