"""Runs a Pulumi program without an engine and records every registration as plain data."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pulumi


@dataclass(frozen=True)
class Registration:
    """One resource as the program registered it, or read it by its id."""

    type: str
    name: str
    inputs: dict[str, Any]
    id: str = ""


@dataclass
class Recorder(pulumi.runtime.Mocks):
    """Answers as an engine would that makes everything at once."""

    registrations: list[Registration] = field(default_factory=list)
    references: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Outputs of other stacks by full name."""
    outputs: dict[str, Any] = field(default_factory=dict)
    """Outputs that every resource has beside its inputs."""

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        inputs = dict(args.inputs)
        self.registrations.append(Registration(args.typ, args.name, inputs, args.resource_id or ""))
        if args.typ == "pulumi:pulumi:StackReference":
            return args.name, {
                "name": args.name,
                "outputs": self.references.get(args.name, {}),
                "secretOutputNames": [],
            }
        outputs = (
            inputs
            | self.outputs
            | {
                "selfLink": f"self/{args.name}",
                "endpoint": (
                    "127.0.0.1:1"
                ),  # nobody listens there: what asks the cluster is told so at once
                "masterAuth": {"clusterCaCertificate": "Y2E="},
            }
        )
        return f"{args.name}-id", outputs

    def call(
        self, args: pulumi.runtime.MockCallArgs
    ) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        return dict(args.args), []

    def of_type(self, resource_type: str) -> list[Registration]:
        return [
            registration
            for registration in self.registrations
            if registration.type == resource_type
        ]


def run(
    program: Callable[[], Coroutine[Any, Any, object]],
    stack: str,
    references: dict[str, dict[str, Any]] | None = None,
    outputs: dict[str, Any] | None = None,
    recorder: Recorder | None = None,
) -> Recorder:
    """Run a program as a preview of `stack` and return what it registered; what it raises is
    raised.
    """
    recorder = recorder or Recorder(references=references or {}, outputs=outputs or {})
    try:
        asyncio.get_event_loop()
    except RuntimeError:
        # Another test's `asyncio.run` left the thread without the loop that Pulumi looks for.
        asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(
        recorder, project="berth", stack=stack, preview=True, organization="organization"
    )

    @pulumi.runtime.test  # type: ignore[untyped-decorator]  # Pulumi's own has no types
    def body() -> Any:
        return program()

    body()
    return recorder


def options_of(
    create: Callable[[pulumi.ResourceOptions], object], stack: str
) -> dict[str, pulumi.ResourceOptions]:
    """Options of each resource that `create` registers with the options it is given, by type."""
    seen: dict[str, pulumi.ResourceOptions] = {}

    def look(args: pulumi.ResourceTransformationArgs) -> None:
        seen[args.type_] = args.opts

    async def program() -> None:
        create(pulumi.ResourceOptions(transformations=[look]))

    run(program, stack)
    return seen
