"""Merge of a patch into arguments, and the names of arguments in Python and in Pulumi."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from berth.components.core.merge import merged
from berth.components.gke.provider_fields import resource_fields, snake_case

Arguments = TypeVar("Arguments", bound=Mapping[str, object])


def with_patch(arguments: Arguments, patch: Mapping[str, Any], token: str) -> Arguments:
    """Return arguments of a resource in snake case, with a patch merged into them.

    Args:
        arguments: the arguments of `pulumi_gcp`'s class that berth sets.
        patch: a JSON merge patch (RFC 7386) in the names of Pulumi's inputs, without nulls.
        token: Pulumi's type of the resource.
    """
    return cast("Arguments", merged(arguments, _renamed(patch, snake_case, token)))


def pulumi_inputs(arguments: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Return arguments in snake case under the names that Pulumi's inputs have."""
    return _renamed(arguments, str, token)


def _renamed(
    block: Mapping[str, Any], rename: Callable[[str], str], token: str, path: str = ""
) -> dict[str, Any]:
    """Return a block, with the new name of each field; the keys of a map are the user's, and stay.

    Args:
        block: fields by their names in Python or in Pulumi.
        rename: the new name of a field, from its name in Pulumi.
        token: Pulumi's type of the resource.
        path: path of the block in Pulumi's inputs; empty for the resource itself.
    """
    names = {snake_case(name): name for name in resource_fields()[token].blocks.get(path, ())}
    result = {}
    for given, value in block.items():
        name = names.get(given, given)
        inside = f"{path}.{name}" if path else name
        result[rename(name)] = _renamed_value(value, rename, token, inside)
    return result


def _renamed_value(value: Any, rename: Callable[[str], str], token: str, path: str) -> Any:
    if isinstance(value, list):
        return [_renamed_value(entry, rename, token, path) for entry in value]
    if isinstance(value, Mapping) and path in resource_fields()[token].blocks:
        return _renamed(value, rename, token, path)
    return value
