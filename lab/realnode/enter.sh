#!/bin/sh
# Runs a program in the real node's namespaces. Its children outlive it by design, until the node ends.
unset {mark}
export {node_mark}={tag}
export LD_LIBRARY_PATH={libraries}
export PATH={programs}:/usr/sbin:/usr/bin:/sbin:/bin
exec nsenter --target="$(cat {pid})" --net --mount -- "$@"
