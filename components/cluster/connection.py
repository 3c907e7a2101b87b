"""Connection of the official client to an API server, with the credentials of a kubeconfig."""

import threading
from http import HTTPStatus
from tempfile import TemporaryDirectory

import yaml
from kubernetes import client, config
from urllib3.exceptions import HTTPError
from urllib3.util import Retry, Timeout
from urllib3.util.ssl_ import create_urllib3_context

from berth.components.core.fast_yaml import LOADER

NO_ANSWER = (HTTPError, OSError, client.OpenApiException, config.ConfigException)
"""Errors of the client without an answer: on connecting, in a body, on new credentials."""

UNUSABLE = (config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, AttributeError)
"""Errors of a kubeconfig that nothing can connect with."""

_CONNECTIONS = 64

_lock = threading.Lock()


def client_of(kubeconfig: str) -> tuple[client.ApiClient, list[str]]:
    """Return a client that holds its certificates and its key in memory, and credential plugins.

    The package writes those of a kubeconfig into files. By default these live as long as the
    process, and one that is killed would leave a key in a folder that all users share.

    Raises:
        ConfigException: the kubeconfig lacks a part, or its credential plugin fails.
        YAMLError: it is not YAML.
        OSError: a certificate or key cannot be read.
    """
    document = yaml.load(kubeconfig, Loader=LOADER)  # noqa: S506 (it is safe)
    settings = client.Configuration()
    settings.retries = _Retries(
        total=8,
        connect=2,
        read=2,
        redirect=0,
        status=4,
        other=2,
        backoff_factor=0.2,
        raise_on_status=False,
        # A patch that the server has done already changes nothing the second time.
        allowed_methods=Retry.DEFAULT_ALLOWED_METHODS | {"PATCH"},
    )
    settings.connection_pool_maxsize = _CONNECTIONS
    with _lock, TemporaryDirectory(prefix="berth-") as folder:
        connected = config.new_client_from_config_dict(
            document, client_configuration=settings, temp_file_path=folder
        )
        pool = connected.rest_client.pool_manager.connection_pool_kw
        context = create_urllib3_context(cert_reqs=pool["cert_reqs"])
        if authorities := pool.pop("ca_certs"):
            context.load_verify_locations(authorities)
        elif settings.verify_ssl:
            context.load_default_certs()
        if certificate := pool.pop("cert_file"):
            context.load_cert_chain(certificate, pool.pop("key_file"))
        pool["ssl_context"] = context
    users = [entry.get("user") or {} for entry in document["users"]]
    return connected, [str(user["exec"].get("command")) for user in users if user.get("exec")]


def timeout(connect: float, read: float) -> Timeout:
    """Return the longest times in seconds to connect, and between two parts of an answer."""
    return Timeout(connect=connect, read=read)


class _Retries(Retry):
    """Retries of refused connections, broken reads, and any request to a busy server."""

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:  # noqa: ARG002, FBT001, FBT002 (urllib3's signature)
        return status_code in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
