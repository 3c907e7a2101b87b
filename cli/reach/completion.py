"""Words of completion in a shell, from the settings' files alone; typer takes those that fit.

This module imports nothing that takes time.
"""

from collections.abc import Iterator
from typing import Any

import typer

from berth.cli.reach.berth_names import keys_in, names_of_stack
from berth.components.core.project import project_or_none

Settings = dict[str, Any]


def stacks() -> list[str]:
    """Return stacks; none outside of a project."""
    from berth.stacks.files.stack_file import stack_names  # noqa: PLC0415 - reading YAML takes a while to import

    return stack_names() if project_or_none() else []


def other_stacks(ctx: typer.Context) -> list[str]:
    """Return stacks that the call does not name yet."""
    named = ctx.params.get("stacks") or []
    return [stack for stack in stacks() if stack not in named]


def environments() -> list[str]:
    """Return stacks of environments."""
    return [stack for stack, settings in _all() if "environment" in settings]


def names(ctx: typer.Context) -> list[str]:
    """Return berths and clusters: of the stack that the call names, or of all."""
    words: set[str] = set()
    for stack, settings in _chosen(ctx).items():
        words.update(names_of_stack(stack, settings))
    return sorted(words)


def engineers(ctx: typer.Context) -> list[str]:
    """Return the engineers in the files of environments."""
    return _keys(ctx, "engineers")


def clusters(ctx: typer.Context) -> list[str]:
    """Return named clusters and engineers' berths."""
    return _keys(ctx, "clusters", "engineers")


def pools(ctx: typer.Context) -> list[str]:
    """Return the node pools of the environment that the call names, or of all."""
    return _keys(ctx, "pools")


def _keys(ctx: typer.Context, *parts: str) -> list[str]:
    words: set[str] = set()
    for settings in _chosen(ctx).values():
        words.update(keys_in(settings, *parts))
    return sorted(words)


def _chosen(ctx: typer.Context) -> dict[str, Settings]:
    """Return the stack that a call names with its environment; all stacks if it names none."""
    by_name = dict(_all())
    stack = ctx.params.get("stack") or ctx.params.get("environment") or ""
    engineer = by_name.get(stack, {}).get("engineer")
    environment = engineer.get("environment") if isinstance(engineer, dict) else None
    return {name: by_name[name] for name in (stack, environment) if name in by_name} or by_name


def _all() -> Iterator[tuple[str, Settings]]:
    """Yield every stack with its settings, without files that cannot be read."""
    import yaml  # noqa: PLC0415

    from berth.components.core import fast_yaml  # noqa: PLC0415
    from berth.stacks.files.stack_file import stack_path  # noqa: PLC0415

    for stack in stacks():
        try:
            document = fast_yaml.load_file(stack_path(stack))
        except (OSError, ValueError, yaml.YAMLError, RecursionError):
            continue
        config = document.get("config") if isinstance(document, dict) else None
        if isinstance(config, dict):
            yield stack, {str(key).removeprefix("berth:"): value for key, value in config.items()}
