"""`berth images`: the images in the settings' files."""

from __future__ import annotations

from typing import Annotated

import typer

from berth.cli.arguments import Json, Stack
from berth.cli.help import Section, VerbGroup

SECTION = Section.SETTINGS

app = VerbGroup("Pin the images that a stack's settings name.")


@app.callback()
def _images() -> None:
    """Stand for `berth images` without a command."""


@app.command()
def digest(
    image: Annotated[str, typer.Argument(metavar="IMAGE", help="Image with its tag: python:3.11.")],
) -> int:
    """Ask a registry for the digest of an image, and print the image with it.

    Exit code 0, 1 if the registry has no answer, 2 if the text is not an image.

    Example: `berth images digest python:3.11`
    """
    from berth.cli.console import out
    from berth.cli.images.reference import parse
    from berth.cli.images.registry import Registries

    reference = parse(image)
    out.print(reference.pinned(Registries().digest_of(reference)), markup=False)
    return 0


@app.command()
def pin(
    stack: Stack,
    *,
    update: Annotated[
        bool, typer.Option("--update", help="Ask again for images that have a digest, and write a new one.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference and write nothing.")] = False,
    as_json: Json = False,
) -> int:
    """Ask registries for the digests of a stack's images, and write them into its file.

    A digest names one content, which nobody can exchange; a tag may name another tomorrow. berth
    asks with your own login of docker (`docker login`, `gcloud auth configure-docker`), compares
    the digest with the manifest, and adds the defaults that the stack uses. Exit code 0 if each
    image has a digest, 1 if a registry has no answer (then nothing is written), 2 if there is no
    such stack.

    Example: `berth images pin -s prod --dry-run`
    """
    from berth.cli.images import pin as implementation

    return implementation.pin(stack, update=update, dry_run=dry_run, as_json=as_json)
