"""`python -m berth.lab.realnode.enclosure LAYOUT`: makes the node's network and mount namespaces, furnishes and holds them.

They exist while this process or one that it admitted lives, and take everything in them along when they go: interfaces,
routes, firewall rules, mounts.

Answers to (real): namespaces of this machine's Linux kernel.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

from berth.lab.realnode.layout import UPLINK, Layout, read

_NEW_MOUNTS, _NEW_NETWORK = 0x00020000, 0x40000000
_DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")


def commands(layout: Layout) -> list[list[str]]:
    """What furnishes the namespaces, in this order; all but the first (which makes the pair) run inside."""
    ip = "ip"
    return [
        # What is mounted from here on does not reach the machine.
        ["mount", "--make-rprivate", "/"],
        ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"],
        ["mkdir", "-p", "/run/cgroups"],
        # /sys shows the network namespace in which it was mounted; the control groups below it come along.
        ["mount", "--rbind", "/sys/fs/cgroup", "/run/cgroups"],
        ["mount", "-t", "sysfs", "sysfs", "/sys"],
        ["mount", "--rbind", "/run/cgroups", "/sys/fs/cgroup"],
        ["umount", "--recursive", "/run/cgroups"],
        # Among the node's own programs and containers, mounts are shared, as a kubelet wants it.
        ["mount", "--make-rshared", "/"],
        # The kubelet has its device plugins' folder there, whatever its own folder is.
        *(
            []
            if _DEVICE_PLUGINS.parent.is_dir()
            else [["mount", "-t", "tmpfs", "tmpfs", str(_DEVICE_PLUGINS.parents[1])]]
        ),
        ["mkdir", "-p", str(_DEVICE_PLUGINS.parent)],
        ["mount", "-t", "tmpfs", "tmpfs", str(_DEVICE_PLUGINS.parent)],
        ["mkdir", str(_DEVICE_PLUGINS)],
        ["mount", "--bind", str(layout.kubelet / "device-plugins"), str(_DEVICE_PLUGINS)],
        [ip, "link", "set", "lo", "up"],
        [ip, "address", "add", f"{layout.dns_address}/32", "dev", "lo"],
        [ip, "address", "add", f"{layout.node_address}/30", "dev", UPLINK],
        [ip, "link", "set", UPLINK, "up"],
        [ip, "route", "add", "default", "via", str(layout.host_address)],
    ]


def pair(layout: Layout, holder: int) -> list[list[str]]:
    """What joins the node to this machine, to be run in the machine's network namespace."""
    pods = ["ip", "route", "add", str(layout.pods), "via", str(layout.node_address), "dev", layout.link]
    return [
        ["ip", "link", "add", layout.link, "type", "veth", "peer", "name", UPLINK, "netns", str(holder)],
        ["ip", "address", "add", f"{layout.host_address}/30", "dev", layout.link],
        ["ip", "link", "set", layout.link, "up"],
        pods,
    ]


_KERNEL = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
}


def furnish(layout: Layout) -> None:
    """Enter new namespaces and make them what the node needs.

    Raises:
        OSError: the kernel refused.
        subprocess.CalledProcessError: a program failed; it has said why.
    """
    outside = os.open("/proc/self/ns/net", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS | _NEW_NETWORK) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "unshare")
    for command in pair(layout, os.getpid()):
        subprocess.run(["nsenter", f"--net=/proc/self/fd/{outside}", *command], check=True, pass_fds=(outside,))
    os.close(outside)
    for command in commands(layout):
        subprocess.run(command, check=True)
    for name, value in _KERNEL.items():
        path = Path("/proc/sys") / name
        if path.exists():
            path.write_text(value)


def main() -> int:
    """Hold the namespaces until told to end; the exit status."""
    layout = read(sys.argv[1])
    layout.namespaces.unlink(missing_ok=True)
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        furnish(layout)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"the node's namespaces can't be made: {error}\n")
        return 1
    partial = layout.namespaces.with_suffix(".partial")
    partial.write_text(f"{os.getpid()}\n")
    partial.replace(layout.namespaces)
    signal.sigwait(ends)
    layout.namespaces.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
