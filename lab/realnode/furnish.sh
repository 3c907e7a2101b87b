#!/bin/sh
# Furnishes the real node's namespaces, from the inside.
set -e
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
mount --bind "$kubelet/device-plugins" /var/lib/kubelet/device-plugins
ip link set lo up
ip address add "$dns/32" dev lo
ip address add "$node/30" dev "$uplink"
ip link set "$uplink" up
ip route add default via "$host"
