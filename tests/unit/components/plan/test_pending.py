"""Pending creations, by the engine's warning of them."""

from berth.components.plan.pending import pending_creates, remedy_of_pending

POOL = "urn:pulumi:lab::berth::berth:gke:NodePool$gcp:container/nodePool:NodePool::extra"
# The text is the engine's (pulumi 3.250.0).
WARNING = f"""Attempting to deploy or update resources with 2 pending operations \
from previous deployment.
  * {POOL}, interrupted while creating
  * urn:pulumi:lab::berth::gcp:compute/network:Network::lab, interrupted while updating
These resources are in an unknown state because the Pulumi CLI was interrupted while \
waiting for changes
"""


def test_pending_creations_are_named_with_what_clears_them() -> None:
    assert pending_creates(WARNING) == [POOL]
    text = remedy_of_pending(WARNING, "lab")
    assert "while it created extra," in text
    assert text.endswith("pulumi refresh -s lab --clear-pending-creates --yes")


def test_other_warnings_name_none() -> None:
    assert remedy_of_pending("the cluster is old", "lab") == ""
