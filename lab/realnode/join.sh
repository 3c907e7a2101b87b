#!/bin/sh
# Joins the real node to this machine, in the machine's network namespace.
set -e
ip link add "$link" type veth peer name "$uplink" netns "$holder"
ip address add "$host/30" dev "$link"
ip link set "$link" up
ip route add "$pods" via "$node" dev "$link"
