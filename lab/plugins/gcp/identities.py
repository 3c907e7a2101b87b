"""Service accounts, and members of a project's IAM policy, in the simulated cloud.

Answers to (read): google/services/resourcemanager/resource_google_service_account.go and
    google/tpgiamresource/resource_iam_member.go of
    https://github.com/hashicorp/terraform-provider-google (fields, which of them replace).
"""

# ruff: noqa: D102 (the contract of each method is that of ResourceType)

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from berth.components.gke.provider_fields import Field, ResourceFields
from berth.lab.plugins.gcp.resource import ResourceType, number_of

if TYPE_CHECKING:
    from berth.lab.plugins.gcp.store import Record

_TIMEOUTS = {"create": 300, "update": 1200, "delete": 1200}


class ServiceAccount(ResourceType):
    """`gcp:serviceaccount/account:Account`."""

    token = "gcp:serviceaccount/account:Account"  # noqa: S105 (a type token)
    title = "service account"
    path = "projects/{project}/serviceAccounts/{accountId}"
    computed = ("email", "member", "name", "uniqueId")
    named = False

    @cached_property
    def facts(self) -> ResourceFields:
        """Facts about the type's fields."""
        fields = {
            "accountId": Field(replaces=True, required=True),
            "createIgnoreAlreadyExists": Field(),
            "description": Field(),
            "disabled": Field(default=False),
            "displayName": Field(),
            "project": Field(replaces=True, keeps=True),
        }
        return ResourceFields(fields, _TIMEOUTS)

    def outputs(self, record: Record) -> dict[str, Any]:
        email = f"{record.inputs['accountId']}@{record.project}.iam.gserviceaccount.com"
        return {
            "disabled": False,
            **record.inputs,
            "email": email,
            "member": f"serviceAccount:{email}",
            "name": f"projects/{record.project}/serviceAccounts/{email}",
            "uniqueId": number_of(record.id),
        }


class IamMember(ResourceType):
    """`gcp:projects/iAMMember:IAMMember`."""

    token = "gcp:projects/iAMMember:IAMMember"  # noqa: S105 (a type token)
    title = "IAM member"
    path = "projects/{project}/iamMembers/{role}.{member}"
    computed = ("etag",)
    named = False

    @cached_property
    def facts(self) -> ResourceFields:
        """Facts about the type's fields."""
        names = ("condition.description", "condition.expression", "condition.title", "condition")
        given = {name: Field(replaces=True) for name in names}
        fields = {name: Field(replaces=True, required=True) for name in ("project", "role", "member")}
        return ResourceFields({**fields, **given}, _TIMEOUTS)

    def outputs(self, record: Record) -> dict[str, Any]:
        return {**record.inputs, "etag": number_of(record.id)}
