"""`python -m berth.lab.realnode.enclosure LAYOUT`: creates, furnishes and holds namespaces.

The node's network and mount namespaces exist while this process or one that entered them lives.
Everything in them goes with them: interfaces, routes, firewall rules, mounts.

Answers to (real): namespaces of this machine's Linux kernel.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from berth.components.core import whole_file
from berth.lab.realnode.layout import UPLINK, Layout, read

_NEW_MOUNTS, _NEW_NETWORK = 0x00020000, 0x40000000

_PAIR = """set -e
ip link add {link} type veth peer name {uplink} netns {holder}
ip address add {host}/30 dev {link}
ip link set {link} up
ip route add {pods} via {node} dev {link}
"""
"""Script that joins the node to this machine, for the machine's network namespace."""

_FURNISH = """set -e
# What is mounted from here on does not reach the machine.
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/cgroups
# /sys shows the network namespace in which it was mounted; the control groups below it come along.
mount --rbind /sys/fs/cgroup /run/cgroups
mount -t sysfs sysfs /sys
mount --rbind /run/cgroups /sys/fs/cgroup
umount --recursive /run/cgroups
# Among the node's own programs and containers, mounts are shared, as a kubelet needs it.
mount --make-rshared /
# The kubelet has its device plugins' folder there, whatever its own folder is.
[ -d /var/lib/kubelet ] || mount -t tmpfs tmpfs /var/lib
mkdir -p /var/lib/kubelet
mount -t tmpfs tmpfs /var/lib/kubelet
mkdir /var/lib/kubelet/device-plugins
mount --bind {kubelet}/device-plugins /var/lib/kubelet/device-plugins
ip link set lo up
ip address add {dns}/32 dev lo
ip address add {node}/30 dev {uplink}
ip link set {uplink} up
ip route add default via {host}
"""
"""Script that furnishes the namespaces, for the inside."""

_KERNEL = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/ipv4/conf/default/rp_filter": "0",
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
}


def furnish(layout: Layout) -> None:
    """Enter new namespaces and set up what the node needs.

    Raises:
        OSError: the kernel refused.
        subprocess.CalledProcessError: a program failed; its output has the cause.
    """
    outside = os.open("/proc/self/ns/net", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS | _NEW_NETWORK) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "unshare")
    values = {
        "link": layout.tag,
        "uplink": UPLINK,
        "holder": os.getpid(),
        "host": layout.host_address,
        "node": layout.node_address,
        "dns": layout.dns_address,
        "pods": layout.pods,
        "kubelet": shlex.quote(str(layout.kubelet)),
    }
    pair = ["nsenter", f"--net=/proc/self/fd/{outside}", "sh", "-c", _PAIR.format(**values)]
    subprocess.run(pair, check=True, pass_fds=(outside,))
    os.close(outside)
    subprocess.run(["sh", "-c", _FURNISH.format(**values)], check=True)
    for name, value in _KERNEL.items():
        path = Path("/proc/sys") / name
        if path.exists():
            path.write_text(value)


def main() -> int:
    """Hold the namespaces until SIGTERM or SIGINT; return the exit status."""
    layout = read(sys.argv[1])
    layout.namespaces.unlink(missing_ok=True)
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        furnish(layout)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"the node's namespaces cannot be created: {error}\n")
        return 1
    whole_file.write(layout.namespaces, f"{os.getpid()}\n")
    signal.sigwait(ends)
    layout.namespaces.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
