"""Words of completion in a shell, from the settings' files alone.

This module imports nothing that takes time.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import typer

from berth.cli.reach.berth_names import keys_in, names_of_stack

Settings = dict[str, Any]


def stacks(incomplete: str) -> list[str]:
    """Return stacks."""
    from berth.stacks.files.stack_file import stack_names  # noqa: PLC0415 - reading YAML takes a while to import

    return _beginning(stack_names(), incomplete)


def other_stacks(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return stacks that the call does not name yet."""
    named = ctx.params.get("stacks") or []
    return [stack for stack in stacks(incomplete) if stack not in named]


def environments(incomplete: str) -> list[str]:
    """Return stacks of environments."""
    return _beginning((stack for stack, settings in _all() if "environment" in settings), incomplete)


def names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return berths and clusters: of the stack that the call names, or of all."""
    found = (name for stack, settings in _chosen(ctx) for name in names_of_stack(stack, settings))
    return _beginning(found, incomplete)


def engineers(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the engineers in the files of environments."""
    return _keys(ctx, incomplete, "engineers")


def clusters(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return named clusters and engineers' berths."""
    return _keys(ctx, incomplete, "clusters", "engineers")


def pools(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the node pools of the environment that the call names, or of all."""
    return _keys(ctx, incomplete, "pools")


def _keys(ctx: typer.Context, incomplete: str, *parts: str) -> list[str]:
    return _beginning((key for _, settings in _chosen(ctx) for key in keys_in(settings, *parts)), incomplete)


def _beginning(words: Iterable[str], incomplete: str) -> list[str]:
    return sorted({word for word in words if word.startswith(incomplete)})


def _chosen(ctx: typer.Context) -> Iterator[tuple[str, Settings]]:
    """Yield the stack that a call names with its environment; all stacks if it names none."""
    stack = ctx.params.get("stack") or ctx.params.get("environment")
    found = dict(_all())
    if stack not in found:
        yield from found.items()
        return
    yield stack, found[stack]
    engineer = found[stack].get("engineer")
    environment = engineer.get("environment") if isinstance(engineer, dict) else None
    if environment in found:
        yield environment, found[environment]


def _all() -> Iterator[tuple[str, Settings]]:
    """Yield every stack with its settings, without files that cannot be read."""
    import yaml  # noqa: PLC0415

    from berth.components.core.fast_yaml import LOADER  # noqa: PLC0415
    from berth.stacks.files.stack_file import stack_names, stack_path  # noqa: PLC0415

    for stack in stack_names():
        try:
            document = yaml.load(stack_path(stack).read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 - both are safe
        except (OSError, ValueError, yaml.YAMLError, RecursionError):
            continue
        config = document.get("config") if isinstance(document, dict) else None
        if isinstance(config, dict):
            yield stack, {str(key).removeprefix("berth:"): value for key, value in config.items()}
