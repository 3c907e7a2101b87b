"""Recognition of secrets that stand as plain text, by their names and shapes. Pure.

`berth check` warns of them, previews and saved plans mask them, `berth diagnose` leaves them out.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.core.problems import SettingPath

SECRET = "[secret]"  # noqa: S105 - shown in a secret's place
"""Text in place of a secret."""

_SECRET_NAME = re.compile(
    "(?i)"
    "passw|passphrase|secret|token|credential|cookie|salt|signature|webhook"
    r"|(private|api|access).?key|(auth|encryption|client).?key|\bkey$|_key$|_pat$"
    r"|connection.?string|dsn$"
)
"""Names whose values are secrets, whatever case they have."""

_HARMLESS_NAME = re.compile(
    "(?i)"
    "automountServiceAccountToken|.*tokenExpirationSeconds|enableK8sTokenAuth|hasToken|tokenFile"
    "|RAY_AUTH_MODE"
    "|secrets?|secretName|secretKeyRef|secretRef|secretManager|secretsEncryptionKey"
    "|imagePullSecrets|encryptionConfig|.*PublicKey|.*_PATH|.*_FILE|.*tokeniz.*"
    "|keys?|topologyKey|labelKey|matchLabelKeys|podTemplateHash"
)
"""Names with "token", "secret" or "key" in them that mean something else, in any case."""

_HARMLESS_VALUE = re.compile(r"(?i)|true|false|none|null|[\d.,]+|\.{0,2}/.*|~/.*|\$.*")
"""Values that are no secrets under whatever name: empty, a switch, a number, a path, a reference to
a variable."""


CREDENTIAL_SHAPES = (
    # Whole blocks first, so that what is left of them has no lines.
    re.compile(
        r"(?s)-----BEGIN [A-Z ]*(?:PRIVATE KEY|CERTIFICATE)-----"
        r".*?-----END [A-Z ]*-----"
    ),
    # JSON Web Tokens, service accounts' among them.
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?"),
    # Google's access tokens.
    re.compile(r"\bya29\.[\w.-]+"),
    # Google's API keys.
    re.compile(r"\bAIza[\w-]{30,}"),
    # Tokens of GitHub, GitLab, Hugging Face, OpenAI, Slack, Pulumi, Docker and NVIDIA.
    re.compile(
        r"\b(?:ghp|gho|ghs|ghu|github_pat|glpat|hf|sk|xox[abprs]|pul|dckr_pat|nvapi)[_-][\w-]{16,}"
    ),
    # Access keys of AWS.
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}"),
    # Encrypted by Pulumi, and its salt.
    re.compile(r"\bv1:[A-Za-z0-9+/]{6,}={0,2}:[A-Za-z0-9+/=]+(?::[A-Za-z0-9+/=]+)*"),
    re.compile(r"(?i)(?<=bearer )[\w.~+/-]{8,}=*"),
    # User and password of a URL.
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
)
"""Shapes of credentials, wherever they stand."""

ASSIGNMENT = re.compile(
    r"""(?ix)
    (?P<name>[\w.-]*(?:passw(?:or)?d|passphrase|secret|token|credential
        |api[_-]?key|access[_-]?key|private[_-]?key)[\w.-]*)
    (?P<between>["']?\s*[=:]\s*["']?)
    (?P<value>[^\s"',;&}\]]{4,})
    """
)
"""`--api-key=x`, `password: x`, `"authToken": "x"`, in logs and arguments."""

NO_VALUES = frozenset({"null", "true", "false", "none", "[removed]", "{}", "token", "disabled"})
"""Values of assignments that are no secrets, in lower case."""

VARIABLE = re.compile(
    r"""(?x)
    (?<![\w./-])(?P<name>[A-Z][A-Z0-9_]{2,})
    =(?P<value>"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"',;&|()]+)
    """
)
"""`NAME=value`, of commands and of what they print."""

OPTION = re.compile(
    r"""(?ix)
    (?P<name>--[\w-]*(?:passw(?:or)?d|passphrase|secret|token|credential
        |api-?key|access-?key)[\w-]*\s+)
    (?!-)[^\s"']{4,}
    """
)
"""`--password x`."""

DOCUMENT_KEYS = frozenset({"runtimeEnvYAML", "serveConfigV2"})
"""Keys of RayJobs and RayServices whose values are YAML."""

ENVIRONMENT_KEYS = frozenset(
    {"env", "env_vars", "envVars", "extraEnv", "extraEnvVars", "environment_variables"}
)
"""Keys of environment variables: of containers, settings, Ray's runtime environments, charts."""

SHOWN_VARIABLES = frozenset(
    {
        "CUDA_CACHE_DISABLE",
        "CUDA_DEVICE_ORDER",
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_VISIBLE_DEVICES",
        "NCCL_ALGO",
        "NCCL_BUFFSIZE",
        "NCCL_CROSS_NIC",
        "NCCL_DEBUG",
        "NCCL_DEBUG_SUBSYS",
        "NCCL_IB_ADAPTIVE_ROUTING",
        "NCCL_IB_DISABLE",
        "NCCL_IB_FIFO_TC",
        "NCCL_IB_GID_INDEX",
        "NCCL_IB_HCA",
        "NCCL_IB_QPS_PER_CONNECTION",
        "NCCL_IB_TC",
        "NCCL_IB_TIMEOUT",
        "NCCL_MIN_NCHANNELS",
        "NCCL_NET",
        "NCCL_NET_GDR_LEVEL",
        "NCCL_NET_PLUGIN",
        "NCCL_NVLS_CHUNKSIZE",
        "NCCL_NVLS_ENABLE",
        "NCCL_P2P_DISABLE",
        "NCCL_P2P_NET_CHUNKSIZE",
        "NCCL_PROTO",
        "NCCL_SHM_DISABLE",
        "NCCL_SOCKET_IFNAME",
        "NCCL_TUNER_CONFIG_PATH",
        "NCCL_TUNER_PLUGIN",
        "FQ_RAY_IP",
        "GLOO_SOCKET_IFNAME",
        "KUBERAY_GEN_RAY_START_CMD",
        "LD_LIBRARY_PATH",
        "NVIDIA_DRIVER_CAPABILITIES",
        "NVIDIA_VISIBLE_DEVICES",
        "OMP_NUM_THREADS",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUNBUFFERED",
        "RAY_ADDRESS",
        "RAY_AUTH_MODE",
        "RAY_AUTH_TOKEN_PATH",
        "RAY_CLOUD_INSTANCE_ID",
        "RAY_CLUSTER_NAME",
        "RAY_DASHBOARD_ADDRESS",
        "RAY_IP",
        "RAY_JOB_SUBMISSION_ID",
        "RAY_NODE_TYPE_NAME",
        "RAY_PORT",
        "RAY_RUNTIME_ENV_HOOK",
        "RAY_USAGE_STATS_ENABLED",
        "RAY_USAGE_STATS_EXTRA_TAGS",
        "RAY_USAGE_STATS_KUBERAY_IN_USE",
        "RAY_gcs_rpc_server_reconnect_timeout_s",
        "TORCH_DISTRIBUTED_DEBUG",
    }
)
"""Environment variables whose literal values a diagnosis shows.

They are settings of NCCL and CUDA, and the variables of Ray, KubeRay and PyTorch that explain
failures. Any other variable may hold a credential, whatever its name is.
"""


def is_secret_name(name: str) -> bool:
    """Return whether a value of this name is likely a secret."""
    return bool(_SECRET_NAME.search(name)) and not _HARMLESS_NAME.fullmatch(name)


@dataclass(frozen=True)
class PlainSecret:
    """Secret that stands as plain text: the path of the text, and the secret's name."""

    path: SettingPath
    name: str
    """Name of its variable or key: what a command assigns it to, or what holds the text."""


def masked_text(text: str) -> str:
    """Return a text with `[secret]` in place of credentials, and of values with secret names.

    A command such as `API_KEY=… python train.py` is an example, or a document in YAML.
    """
    for shape in CREDENTIAL_SHAPES:
        text = shape.sub(SECRET, text)
    text = OPTION.sub(rf"\g<name>{SECRET}", text)
    return ASSIGNMENT.sub(_masked_assignment, text)


def _masked_assignment(match: re.Match[str]) -> str:
    if not _name_of_assignment(match):
        return match[0]
    return f"{match['name']}{match['between']}{SECRET}"


def _name_of_assignment(match: re.Match[str]) -> str:
    """Return the name to which a text assigns a secret; "" where the value is none."""
    name = match["name"].rsplit(".", 1)[-1]
    value = match["value"]
    harmless = value.lower() in NO_VALUES or _is_harmless(value)
    return name if is_secret_name(name) and not harmless else ""


def _is_harmless(value: str) -> bool:
    # An assignment's value ends before a bracket.
    return bool(_HARMLESS_VALUE.fullmatch(value)) or value == SECRET.rstrip("]")


def plain_secrets(value: Any, path: SettingPath = ()) -> Iterator[PlainSecret]:
    """Yield the secrets that stand as plain text in settings or in a manifest.

    Args:
        value: plain data. A variable is a key of a mapping, or an entry with `name` and `value`.
        path: the value's own path.
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _plain_secrets_at((*path, key), inner, _name_of(value, key))
    elif isinstance(value, list | tuple):
        for position, inner in enumerate(value):
            yield from _plain_secrets_at((*path, position), inner, "")


def _plain_secrets_at(path: SettingPath, value: Any, name: str) -> Iterator[PlainSecret]:
    if not isinstance(value, str):
        yield from plain_secrets(value, path)
    elif is_secret_name(name) and not _is_harmless(value):
        yield PlainSecret(path, name)
    elif masked_text(value) != value:
        assigned = filter(None, map(_name_of_assignment, ASSIGNMENT.finditer(value)))
        yield PlainSecret(path, next(assigned, name))


def _name_of(mapping: Mapping[str, Any], key: str) -> str:
    """Return the name of a mapping's value: its key, or that of a variable with `name`, `value`."""
    return str(mapping["name"]) if key == "value" and "name" in mapping else str(key)


def masked(value: Any, name: str = "") -> Any:
    """Return plain data with secrets masked; a text of a secret name is masked as a whole.

    Args:
        value: text, or plain data as in `plain_secrets`.
        name: name of the variable or key whose value this is.
    """
    if isinstance(value, str):
        whole = is_secret_name(name) and not _is_harmless(value)
        return SECRET if whole else masked_text(value)
    if isinstance(value, list | tuple):
        return [masked(inner) for inner in value]
    if not isinstance(value, Mapping):
        return value
    return {key: masked(inner, _name_of(value, key)) for key, inner in value.items()}
