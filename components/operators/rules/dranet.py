"""Rules of DraNet's settings."""

from berth.components.core.rules import Rules
from berth.components.operators.dranet import DraNetSettings

DRANET = Rules[DraNetSettings](DraNetSettings)
"""Rules of DraNet, where a pool needs it."""


@DRANET.problem("manifest")
def manifest_without_a_file(settings: DraNetSettings) -> str | None:
    """With `source: manifest` the objects are those of a file."""
    if settings.source != "manifest" or settings.manifest:
        return None
    return (
        "is required with `source: manifest`: the file with DraNet's objects, for example"
        " manifest: ./dranet/install.yaml"
    )
