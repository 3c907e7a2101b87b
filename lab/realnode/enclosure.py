"""`python -m berth.lab.realnode.enclosure LAYOUT`: creates, furnishes and holds namespaces.

The node's network and mount namespaces exist while this process or one that entered them lives.
Everything in them goes with them: interfaces, routes, firewall rules, mounts.
"""

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

from berth.components.core import whole_file
from berth.lab.realnode.layout import UPLINK, Layout, read

_NEW_MOUNTS = 0x00020000
_NEW_NETWORK = 0x40000000

_SCRIPTS = Path(__file__).parent

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
        "holder": str(os.getpid()),
        "host": str(layout.host_address),
        "node": str(layout.node_address),
        "dns": str(layout.dns_address),
        "pods": str(layout.pods),
        "kubelet": str(layout.kubelet),
    }
    environment = os.environ | values
    join = ["nsenter", f"--net=/proc/self/fd/{outside}", "sh", str(_SCRIPTS / "join.sh")]
    subprocess.run(join, check=True, pass_fds=(outside,), env=environment)
    os.close(outside)
    subprocess.run(["sh", str(_SCRIPTS / "furnish.sh")], check=True, env=environment)
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
    whole_file.replace_file(layout.namespaces, f"{os.getpid()}\n")
    signal.sigwait(ends)
    layout.namespaces.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
