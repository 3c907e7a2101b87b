"""Debian packages without installation: single programs, and whole root file systems.

apt's settings of this machine (mirrors, proxies, keys) are used; its lists, caches and installed
packages stay unchanged.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from berth.lab.errors import USAGE, LabError, quoted

RELEASE = "bookworm"
"""Debian 12, the release whose Python is the 3.11 of rayproject's py311 images."""

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def run(
    command: Sequence[str],
    what: str,
    *,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run a program to its end and return its output; an error names it as `what`."""
    result = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        output = quoted(result.stderr + result.stdout)
        raise LabError(
            f"{what} failed ({command[0]}):\n{output}", "fix the cause, then run it again"
        )
    return result.stdout


def obstacle() -> str | None:
    """Return why Debian packages cannot be used here, in one line; None if they can."""
    for name in ("apt-get", "dpkg-deb"):
        if shutil.which(name) is None:
            return f"a real node needs Debian packages, and this machine has no {name}"
    if not KEYRING.is_file():
        return (
            f"a real node needs Debian packages, and {KEYRING} is missing (package"
            " debian-archive-keyring)"
        )
    try:
        _mirror()
    except LabError as error:
        return f"{error.problem}; {error.remedy}"
    return None


def _apt(state: Path) -> list[str]:
    for part in ("lists/partial", "archives/partial"):
        (state / part).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    options = {
        "Dir::State": state,
        "Dir::State::Lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state,
        "Dir::Cache::Archives": state / "archives",
        "APT::Sandbox::User": "root",
    }
    return ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in options.items())]


def _mirror() -> str:
    """Return the address from which apt on this machine gets the release."""
    listing = [
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI) $(CODENAME) $(COMPONENT)",
        "Created-By: Packages",
    ]
    for line in run(listing, "asking apt for its sources").splitlines():
        address, release, component = line.split()
        if release == RELEASE and component == "main":
            return address
    raise LabError(
        f"apt's sources on this machine do not have Debian's release {RELEASE}, the base of the"
        " images",
        f"add it to /etc/apt/sources.list.d (deb … {RELEASE} main), then run it again",
        code=USAGE,
    )


def unpack(packages: Sequence[str], folder: Path) -> None:
    """Fill a folder with the files of packages; nothing is configured or run."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        apt = _apt(Path(scratch))
        run([*apt, "update"], "reading Debian's package lists")
        run([*apt, "download", *packages], "fetching Debian packages", folder=Path(scratch))
        for package in sorted(Path(scratch).glob("*.deb")):
            run(["dpkg-deb", "--extract", str(package), str(folder)], f"unpacking {package.name}")


def root_file_system(packages: Sequence[str], folder: Path) -> None:
    """Create a minimal Debian with packages; its mounts stay invisible to other processes."""
    mirror = _mirror()
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        tools = Path(scratch)
        unpack(["debootstrap"], tools)
        command = [str(tools / "usr/sbin/debootstrap"), "--variant=minbase", f"--keyring={KEYRING}"]
        private = ["unshare", "--mount", "--propagation", "private"]
        run(
            [*private, *command, RELEASE, str(folder), mirror],
            "creating a minimal Debian",
            env=environment() | {"DEBOOTSTRAP_DIR": str(tools / "usr/share/debootstrap")},
        )
    for settings in (Path("/etc/resolv.conf"), *sorted(Path("/etc/apt/apt.conf.d").glob("*prox*"))):
        if settings.is_file():
            shutil.copyfile(settings, folder / settings.relative_to("/"))
    # It is never started as a system: packages' services stay down.
    policy = folder / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    inside(
        folder,
        ["apt-get", "-qq", "install", "--no-install-recommends", "-y", *packages],
        "installing packages",
    )
    inside(folder, ["apt-get", "clean"], "tidying up")
    shutil.rmtree(folder / "var/lib/apt/lists")
    policy.unlink()


def environment() -> dict[str, str]:
    """Return the environment of a root's login shell."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "DEBIAN_FRONTEND": "noninteractive",
    }


def inside(folder: Path, command: Sequence[str], what: str) -> str:
    """Run a program with a root file system as its root."""
    script = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
    private = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    return run([*private, str(folder), *command], what, env=environment())
