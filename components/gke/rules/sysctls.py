"""Kernel settings that GKE sets on nodes."""

from __future__ import annotations

_NAMES = {
    "net.core": (
        "busy_poll busy_read netdev_max_backlog optmem_max rmem_default rmem_max somaxconn wmem_default wmem_max"
    ),
    "net.ipv4": (
        "neigh.default.gc_thresh1 neigh.default.gc_thresh2 neigh.default.gc_thresh3 tcp_congestion_control tcp_ecn"
        " tcp_max_orphans tcp_max_tw_buckets tcp_mtu_probing tcp_rmem tcp_syn_retries tcp_tw_reuse tcp_wmem"
    ),
    "net.netfilter": (
        "nf_conntrack_acct nf_conntrack_buckets nf_conntrack_max nf_conntrack_tcp_timeout_close_wait "
        "nf_conntrack_tcp_timeout_established nf_conntrack_tcp_timeout_time_wait"
    ),
    "kernel": (
        "dmesg_restrict keys.maxbytes keys.maxkeys kptr_restrict perf_event_paranoid sched_rt_runtime_us "
        "shmall shmmax shmmni softlockup_panic sysrq yama.ptrace_scope"
    ),
    "fs": "aio-max-nr file-max inotify.max_user_instances inotify.max_user_watches nr_open",
    "vm": (
        "dirty_background_bytes dirty_background_ratio dirty_bytes dirty_expire_centisecs dirty_ratio "
        "dirty_writeback_centisecs max_map_count min_free_kbytes overcommit_memory overcommit_ratio "
        "swappiness vfs_cache_pressure watermark_scale_factor"
    ),
}

SYSCTLS = frozenset(f"{group}.{name}" for group, names in _NAMES.items() for name in names.split())
"""Names that GKE's API takes: LinuxNodeConfig.sysctls of google/container/v1/cluster_service.proto
in googleapis/googleapis. The values of each are on
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/node-system-config."""
