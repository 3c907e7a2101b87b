"""Real node of the lab: containerd and a kubelet on this machine, in a simulated node's place.

All of it but a pair of interfaces lives in network and mount namespaces of its own, which the
kernel removes with the last process: interfaces, mounts and firewall rules of this machine are
neither used nor changed.

Belongs here: programs of the node, its images and its network. Does not belong here: what a pool is
(`lab/plugins/gcp`).
"""
