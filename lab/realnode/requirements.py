"""Requirements of a machine for a real node, and an unused address range."""

import json
import os
import platform
import shutil
import subprocess
import tempfile
from ipaddress import IPv4Network
from pathlib import Path

from berth.lab.errors import USAGE, LabError
from berth.lab.home import LabHome
from berth.lab.realnode import debian

CGROUPS = Path("/sys/fs/cgroup")
_TRIAL_SECONDS = 30

PROGRAMS = ("ip", "mount", "umount", "nsenter", "unshare")

# In 10.0.0.0/8, which is for private use; people's networks and the lab's services are in the lower
# part.
_CANDIDATES = tuple(IPv4Network(f"10.{number}.0.0/16") for number in range(199, 127, -1))


_WITHOUT = "nothing was changed; `make lab` simulates all nodes and works without"


def obstacle() -> str | None:
    """Return why this machine cannot have a real node, in one line; None if it can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return (
            f"a real node needs Linux on x86-64; this is {platform.system()} on"
            f" {platform.machine()}"
        )
    if os.geteuid() != 0:
        return "a real node needs root, for containers, interfaces and mounts of its own"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return (
            f"a real node needs {', '.join(missing)} (Debian's packages iproute2, mount and"
            " util-linux)"
        )
    if not CGROUPS.is_dir():
        return "a real node needs control groups, and nothing is mounted at /sys/fs/cgroup"
    return _refusal() or debian.obstacle()


# In namespaces of its own, which are removed with it. A locked-up container refuses this to its
# root.
_TRIAL = """
mount -t tmpfs tmpfs "$1" && mkdir "$1/lower" "$1/upper" "$1/work" "$1/merged" &&
mount -t overlay overlay -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" "$1/merged" &&
ip link add trial-0 type veth peer name trial-1 && ip link add trial type bridge && ip netns list
"""


def _refusal() -> str | None:
    """Text about what this machine refuses even to root, tried once; None if it refuses nothing."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        trial = ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", _TRIAL, "sh", folder]
        done = subprocess.run(
            trial, capture_output=True, text=True, check=False, timeout=_TRIAL_SECONDS
        )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [""])[-1]
        return (
            "a real node needs mounts and interfaces, and this machine refuses them even to root"
            f" ({reason})"
        )
    # Version 1 has a hierarchy for each controller, version 2 one for all.
    hierarchy = next((path for path in (CGROUPS / "memory", CGROUPS) if path.is_dir()), CGROUPS)
    group = hierarchy / f"berth-trial-{os.getpid()}"
    try:
        group.mkdir()
        group.rmdir()
    except OSError as error:
        return (
            "a real node needs control groups, and this machine refuses to create one"
            f" ({error.strerror})"
        )
    return None


def require(home: LabHome) -> None:
    """Check that a real node can join a lab on this machine."""
    problem = obstacle()
    if problem is not None:
        raise LabError(problem, _WITHOUT, code=USAGE)
    if Path("/var/lib") in home.root.resolve().parents:
        # The node has an empty folder there.
        raise LabError(
            "a real node cannot join a lab in a folder below /var/lib, and this lab is in"
            f" {home.root}",
            "name another folder with --home or BERTH_LAB",
            code=USAGE,
        )


def in_use() -> list[IPv4Network]:
    """Return this machine's IPv4 ranges and routes, without its default route."""
    listing = subprocess.run(
        ["ip", "-json", "-4", "route", "show", "table", "all"], capture_output=True, check=True
    )
    targets = (route["dst"] for route in json.loads(listing.stdout or b"[]"))
    return [IPv4Network(target, strict=False) for target in targets if target != "default"]


def free_network(taken: list[IPv4Network]) -> IPv4Network:
    """Return a /16 that overlaps none of these."""
    for candidate in _CANDIDATES:
        if not any(candidate.overlaps(network) for network in taken):
            return candidate
    raise LabError(
        f"this machine has routes into all networks from {_CANDIDATES[-1]} to {_CANDIDATES[0]},"
        " but a real node needs a free one",
        _WITHOUT,
        code=USAGE,
    )
