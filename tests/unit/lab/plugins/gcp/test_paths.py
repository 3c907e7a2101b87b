"""Paths and kinds of differences: the lab's plugin emits those that Google's own provider emitted
for the edits recorded in tests/provider/verdicts.json.
"""

from collections.abc import Mapping

from berth.components.gke.cluster_arguments import IGNORED_CHANGES as IGNORED_OF_CLUSTER
from berth.components.gke.node_pool_arguments import IGNORED_CHANGES as IGNORED_OF_POOL
from berth.components.gke.provider_fields import CLUSTER, NODE_POOL
from berth.lab.plugins.gcp.differences import MAPS_OF_BRIDGE
from berth.lab.plugins.gcp.provider import TYPES
from tests.provider.edits import with_changes
from tests.provider.verdicts import Base, Recorded, read
from tests.unit.cases import table

IGNORED = {CLUSTER: IGNORED_OF_CLUSTER, NODE_POOL: IGNORED_OF_POOL}
OF_STATE = (*MAPS_OF_BRIDGE, "nodeConfig.resourceManagerTags")
"""Paths of what only a recorded state has; test_provider.py has them."""

EXCEPTIONS = table(__file__, "paths.yaml")


def emitted(base: Base, edit: Recorded) -> Mapping[str, str]:
    """Kinds by path that the lab's plugin emits, in the engine's words."""
    kind = TYPES[base.type]
    new = with_changes(base.inputs, edit.new)
    found = kind.differences(kind.kept(base.inputs), new, IGNORED.get(base.type, ()))
    return {path: change.name.lower().replace("_", "-") for path, change in found.items()}


def test_the_lab_emits_the_providers_paths_and_kinds() -> None:
    bases, edits = read()
    differing = set()
    for edit in edits:
        real = {path: kind for path, kind in edit.real.items() if not path.startswith(OF_STATE)}
        if edit.outcome != "refused" and emitted(bases[edit.of], edit) != real:
            differing.add(edit.name)
    assert differing == EXCEPTIONS.keys()
