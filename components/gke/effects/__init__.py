"""Effects of planned changes of GKE clusters and node pools."""

from typing import Any

from berth.components.core import fast_yaml

WORDS_OF_FIELDS: dict[str, dict[str, Any]] = fast_yaml.load_beside(__file__, "words.yaml")
"""Words of the preview for fields of Google's provider, by Pulumi's type."""
