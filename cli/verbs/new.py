"""`berth new`."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from berth.cli.reach.arguments import Json
from berth.cli.repository.shipped import StartName
from berth.cli.shell.console import err, out, print_json
from berth.components.core.errors import BadInputError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""Name of a Pulumi project (pulumi, sdk/go/common/tokens/project.go)."""


_START = """\
Environment on Google Cloud to start with. `dev`: a team shares L4 on spot nodes. `prod`: reserved\
 A4 with RDMA for training, and L4 for berths. `mixed`: shared L4, L4 on spot nodes and reserved A4\
 with RDMA. `solo`: one person, with L4 on spot nodes while there is work."""


def run(
    folder: Annotated[
        Path, typer.Argument(help="Folder to create; its name is the project's.", metavar="FOLDER")
    ],
    start: Annotated[
        StartName, typer.Option("--from", help=_START, metavar="dev|prod|mixed|solo")
    ] = "dev",
    project: Annotated[
        str | None,
        typer.Option(
            help="Google Cloud project of this environment.",
            metavar="PROJECT",
            show_default="a placeholder",
        ),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(
            help="Zone of its nodes, in whose region everything else is.",
            metavar="ZONE",
            show_default="us-central1-b",
        ),
    ] = None,
    *,
    as_json: Json = False,
) -> int:
    """Create a repository for environments of your own: Pulumi project, stacks, CI, Makefile.

    It has stack `lab`, which `make lab` brings up on this machine, beside an environment on Google
    Cloud. `berth docs gallery` describes these environments, and more of them.

    The repository runs on the installed package. Exit code 0 if it is written, 2 for a folder that
    has content or lies in none, and for a malformed name or value.

    Example: `berth new my-fleet --from prod --project your-project --zone us-central1-b`
    """
    from berth.cli.repository import wheels

    written = _write_repository(folder, start, project, zone)
    if as_json:
        print_json({"folder": str(folder), "files": written})
    else:
        for file in written:
            out.print(f"  {folder / file}")
        out.print(f"\nnext: cd {folder} && make check && make lab")
    if wheels.is_clone():
        err.print(
            "note: berth runs from a clone, so that requirements.txt names a version that `make"
            " lab` there looks up on a package index; run `make dist` in the clone, install the"
            " wheel, and the repository carries it"
        )
    return 0


def _write_repository(
    folder: Path, start: StartName, project: str | None, zone: str | None
) -> list[str]:
    """Write a repository, and return the paths of its files in it.

    Raises:
        BadInputError: a name or value is malformed, or the folder cannot be written.
    """
    from berth.cli.repository import template, wheels
    from berth.cli.repository.record import FILE, RepositoryRecord, fingerprint
    from berth.cli.repository.starts import start_named
    from berth.components.core.distribution import installed_version
    from berth.components.core.types import ProjectId, Zone

    name = folder.absolute().name
    _check_folder(folder, name)
    shipped = start_named(start)
    values = {
        "name": name,
        "start": start,
        "project": shipped.project if project is None else project,
        "zone": shipped.zone if zone is None else zone,
    }
    _check_option("--project", ProjectId, values["project"])
    _check_option("--zone", Zone, values["zone"])
    try:
        folder.mkdir(exist_ok=True)
        requirement = wheels.berth_requirement(folder)
        texts = template.template_files(values, requirement)
        texts[shipped.path] = shipped.text_for(values["project"], values["zone"])
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInputError(
            f"{error.filename or folder} cannot be written: {error.strerror}",
            "name a folder that you may write to",
        ) from None
    fingerprints = {
        path: fingerprint(text) for path, text in texts.items() if not template.is_settings(path)
    }
    RepositoryRecord(installed_version(), values, fingerprints).write(folder)
    carried = [
        path.relative_to(folder).as_posix() for path in folder.glob(f"{wheels.FOLDER}/*.whl")
    ]
    return sorted([FILE, *texts, *carried])


def _check_option(option: str, kind: Any, value: str) -> None:
    """Refuse a malformed value of an option; `kind` is the type of the setting that it sets."""
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise BadInputError(
            f"{option}: {error.errors()[0]['ctx']['error']}; nothing was written"
        ) from None


def _check_folder(folder: Path, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadInputError(
            f"{name!r} cannot be the name of a Pulumi project; nothing was written",
            "use letters, digits, '-', '_' and '.', and begin with a letter or digit, for example"
            " my-fleet",
        )
    if not folder.absolute().parent.is_dir():
        raise BadInputError(
            f"{folder.parent} is not a folder, so {name} cannot be created in it; nothing was"
            " written",
            f"create it first: mkdir -p {folder.parent}",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInputError(
            f"{folder} exists and is not an empty folder; nothing was written",
            "name a folder that does not exist yet",
        )
