"""Secrets that this process knows: of its environment variables, and of a kubeconfig."""

from collections.abc import Mapping
from typing import Any

from berth.components.core.plain_secrets import is_secret_name

_CREDENTIALS = ("token", "password", "client-key-data", "client-certificate-data")


def secrets_of_kubeconfig(document: Any) -> list[str]:
    """Return the credentials of a kubeconfig's users."""
    secrets: list[str] = []
    for user in (document or {}).get("users") or []:
        secrets += _secrets_of_user(user.get("user") or {})
    return secrets


def _secrets_of_user(user: Mapping[str, Any]) -> list[str]:
    secrets = [str(user[key]) for key in _CREDENTIALS if user.get(key)]
    provider = (user.get("auth-provider") or {}).get("config") or {}
    secrets += [str(value) for key, value in provider.items() if is_secret_name(key)]
    for variable in (user.get("exec") or {}).get("env") or []:
        if is_secret_name(str(variable.get("name"))):
            secrets.append(str(variable.get("value")))
    return secrets


def secrets_of_environment(variables: Mapping[str, str]) -> list[str]:
    """Return values of environment variables that are likely secrets."""
    return [value for name, value in variables.items() if is_secret_name(name) and value]
