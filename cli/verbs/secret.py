"""`berth secret`: secret values of a berth's environment variables."""

from typing import Annotated

import typer

from berth.cli.reach.arguments import Json, OnStack, RequiredName
from berth.cli.shell.verb_group import verb_group

app = verb_group(
    "Secret values of a berth's environment variables: in Secrets of its namespace, and nowhere"
    " else."
)

Variable = Annotated[
    str,
    typer.Argument(
        metavar="VARIABLE", help="Variable of `secrets`, or name in `imagePullSecrets`."
    ),
]


@app.command("set")
def set_(
    name: RequiredName, variable: Variable, stack: OnStack = None, *, as_json: Json = False
) -> int:
    """Write the value of a secret variable, from a prompt without echo or from stdin.

    The settings name the variable: `secrets: {HF_TOKEN: {}}`. The value goes to the API server and
    to nowhere else: neither settings nor state, plans, logs and arguments of programs have it. For
    a name of `imagePullSecrets`, the value is a Docker configuration: `< ~/.docker/config.json`.
    Pods read the value when they start.

    Exit code 0 if the value is written, 1 if the cluster cannot be asked, 2 for a wrong name or an
    empty value.

    Example: `berth secret set alice HF_TOKEN`
    """
    from berth.cli.reach import secret_values

    return secret_values.set_secret(name, variable, stack, as_json=as_json)


@app.command("list")
def list_(name: RequiredName, stack: OnStack = None, *, as_json: Json = False) -> int:
    """List the secret variables of a berth, and whether they have values.

    Exit code 0, 1 if the cluster cannot be asked, 2 for a wrong name, 3 if a value is missing.

    Example: `berth secret list alice`
    """
    from berth.cli.reach import secret_values

    return secret_values.print_secrets(name, stack, as_json=as_json)


@app.command()
def remove(
    name: RequiredName, variable: Variable, stack: OnStack = None, *, as_json: Json = False
) -> int:
    """Remove the value of a secret variable; running pods keep it until they restart.

    Exit code 0 if there is no value now, 1 if the cluster cannot be asked, 2 for a wrong name.

    Example: `berth secret remove alice HF_TOKEN`
    """
    from berth.cli.reach import secret_values

    return secret_values.remove_secret(name, variable, stack, as_json=as_json)
