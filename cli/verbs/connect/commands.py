"""Commands that connect to a berth without berth: `berth connect --print`."""

import shlex
from pathlib import Path

from berth.cli.reach.berths import live_berth
from berth.cli.reach.environment import LiveEnvironment
from berth.cli.reach.port_forwarding import CLIENT, DASHBOARD, LOOPBACK
from berth.cli.reach.ray_token import TOKEN_KEY, token_secret
from berth.cli.shell.console import err, print_result
from berth.components.ray.live import condition_of


def submit_command(dashboard: int, token: Path | None) -> str:
    """Return a command that submits a job, with Ray's token from a file.

    See https://docs.ray.io/en/latest/ray-security/token-auth.html.

    Args:
        dashboard: port of this machine for the dashboard.
        token: file with Ray's token; None for a berth without one.
    """
    submit = (
        f"ray job submit --address http://{LOOPBACK}:{dashboard} --working-dir . -- python"
        " your_script.py"
    )
    if token is None:
        return submit
    return f"RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH={shlex.quote(str(token))} {submit}"


def print_commands(
    name: str | None, stack: str | None, dashboard: int | None, client: int | None, *, as_json: bool
) -> int:
    """Print the commands that do the same without berth; return the exit code."""
    berth = live_berth(name, stack)
    secret = token_secret(berth.cluster)
    dashboard = dashboard or DASHBOARD
    lines = [
        "umask 077",
        f"{_kubeconfig_command(berth.environment)} > kubeconfig",
        "export KUBECONFIG=kubeconfig",
    ]
    if secret:
        template = shlex.quote("{{.data." + TOKEN_KEY + " | base64decode}}")
        lines.append(
            f"kubectl get secret {secret} --namespace {berth.namespace} --output"
            f" go-template={template} > token"
        )
    lines.append(
        f"kubectl port-forward --namespace {berth.namespace} service/{berth.key[1]}-head-svc"
        f" {dashboard}:{DASHBOARD} {client or CLIENT}:{CLIENT} &"
    )
    lines.append(submit_command(dashboard, Path("token") if secret else None))
    document = {"name": berth.name, "namespace": berth.namespace, "commands": lines}
    print_result(document, "\n".join(lines), as_json=as_json)
    if condition_of(berth.cluster).state == "suspended":
        err.print(f"note: {berth.name} is suspended; first: berth wake {berth.name}")
    return 0


def _kubeconfig_command(environment: LiveEnvironment) -> str:
    """Return the command that prints a kubeconfig of the environment's cluster with a login."""
    if environment.login is None:
        return (
            "pulumi stack output kubeconfig --show-secrets --stack"
            f" {shlex.quote(environment.stack)}"
        )
    command = ["kubectl", "config", "view", "--raw", "--minify", "--flatten"]
    if environment.login.kubeconfig:
        command += ["--kubeconfig", str(Path(environment.login.kubeconfig).expanduser())]
    if environment.login.context:
        command += ["--context", environment.login.context]
    return shlex.join(command)
