"""Connection of the official client to an API server, with the credentials of a kubeconfig."""

from __future__ import annotations

import threading
from typing import Any

from kubernetes import client, config
from kubernetes.config import kube_config
from urllib3.util.ssl_ import create_urllib3_context

_lock = threading.Lock()


def client_of(kubeconfig: Any, settings: client.Configuration) -> client.ApiClient:
    """Return a client that holds its certificates and its key in memory.

    The package writes those of a kubeconfig into files, for as long as the process lives: one that
    is killed would leave a key in a folder that all users share.

    Raises:
        ConfigException: the kubeconfig lacks a part, or its credential plugin fails.
        OSError: a certificate or key cannot be read.
    """
    with _lock:
        try:
            connected = config.new_client_from_config_dict(kubeconfig, client_configuration=settings)
            pool = connected.rest_client.pool_manager.connection_pool_kw
            context = create_urllib3_context(cert_reqs=pool["cert_reqs"])
            if authorities := pool.pop("ca_certs"):
                context.load_verify_locations(authorities)
            elif settings.verify_ssl:
                context.load_default_certs()
            if certificate := pool.pop("cert_file"):
                context.load_cert_chain(certificate, pool.pop("key_file"))
            pool["ssl_context"] = context
        finally:
            kube_config._cleanup_temp_files()  # noqa: SLF001 (nothing else deletes them before the end)
    return connected
