"""Names and shapes of secrets, by which `berth diagnose` leaves values out of its report.

Patterns are regular expressions of Python.
"""

import re

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
    "|secretName|secretKeyRef|secretRef|imagePullSecrets|encryptionConfig|.*PublicKey|.*_PATH"
    "|.*_FILE"
    "|keys?|topologyKey|labelKey|matchLabelKeys|podTemplateHash"
)
"""Names with "token" or "key" in them that mean something else, whatever case they have."""

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
