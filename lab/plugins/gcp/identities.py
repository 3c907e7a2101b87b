"""Service accounts, and members of a project's IAM policy, in the simulated cloud.

Answers to (read): google/services/resourcemanager/resource_google_service_account.go and
    google/tpgiamresource/resource_iam_member.go of
    https://github.com/hashicorp/terraform-provider-google (fields, which of them replace, checks).
Answers to (believed): the texts of refusals, and that a role for an account that does not exist is
    refused. Such calls would settle them.
"""

# ruff: noqa: D102 (the contract of each method is that of ResourceType)

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from berth.components.gke.provider_fields import Field, ResourceFields
from berth.lab.plugins.gcp.errors import GoogleApiError, bad_request
from berth.lab.plugins.gcp.resource import Cloud, ResourceType, number_of

if TYPE_CHECKING:
    from berth.lab.plugins.gcp.store import Record

_ACCOUNT_ID = re.compile(r"[a-z][-a-z0-9]{4,28}[a-z0-9]")
_MEMBER = re.compile(r"serviceAccount:(?P<id>[^@]+)@(?P<project>[^.]+)\.iam\.gserviceaccount\.com")
_TIMEOUTS = {"create": 300, "update": 1200, "delete": 1200}


class ServiceAccount(ResourceType):
    """`gcp:serviceaccount/account:Account`."""

    token = "gcp:serviceaccount/account:Account"  # noqa: S105 (a type token)
    title = "service account"
    permission = "iam.serviceAccounts"
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

    def create(self, cloud: Cloud, record: Record) -> None:
        del cloud
        if not _ACCOUNT_ID.fullmatch(str(record.inputs["accountId"])):
            raise bad_request(f"Invalid account id {record.inputs['accountId']!r}: 6 to 30 characters.")

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
    permission = "resourcemanager.projects"
    verbs = {"create": "setIamPolicy", "update": "setIamPolicy", "delete": "setIamPolicy", "get": "getIamPolicy"}
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

    def create(self, cloud: Cloud, record: Record) -> None:
        member = str(record.inputs["member"])
        match = _MEMBER.fullmatch(member)
        if match and match["project"] == record.project:
            account = f"projects/{record.project}/serviceAccounts/{match['id']}"
            if cloud.store.get(account) is None:
                raise GoogleApiError(400, f"Service account {member.partition(':')[2]} does not exist.", "badRequest")

    def outputs(self, record: Record) -> dict[str, Any]:
        return {**record.inputs, "etag": number_of(record.id)}
