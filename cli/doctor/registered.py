"""The Kubernetes objects that an update of a stack makes: what its program registers when it runs, recorded without an engine.

It is the program itself, so that there is no second list of what it makes. Pulumi's runtime is one
for a process and leaves it changed: the program runs in a process of its own, `python -m
berth.cli.doctor.registered`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Coroutine
from typing import Any

from berth.components.core.errors import BerthError
from berth.stacks import stack_file

_SECONDS = 120
_KUBERNETES = "kubernetes:"


class WouldFailError(BerthError):
    """The program reports that an update would fail."""


def types_of(stack: str, told: dict[str, Any] | None = None) -> list[str]:
    """Pulumi's types of all objects of Kubernetes, each once: `kubernetes:batch/v1:CronJob`.

    Args:
        stack: an environment on an existing cluster, or an engineer's own stack.
        told: for the latter, the outputs of its environment's stack.
    """
    # By stdin: a kubeconfig is no argument.
    question = json.dumps({"stack": stack, "told": told or {}})
    command = [sys.executable, "-m", "berth.cli.doctor.registered"]
    try:
        done = subprocess.run(
            command,
            cwd=stack_file.project(),
            input=question,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BerthError(f"the program of stack {stack} did not end within {_SECONDS} s") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise BerthError(lines[-1] if lines else f"the program of stack {stack} ended with {done.returncode}")
    answer = json.loads(done.stdout)
    if "refused" in answer:
        raise WouldFailError(answer["refused"])
    return [str(each) for each in answer["types"]]


def record(stack: str, told: dict[str, Any]) -> list[str]:
    """Run a stack's program in this process, and return the types of all Kubernetes objects that it registers.

    Args:
        stack: the stack.
        told: outputs of every stack that it asks for.
    """
    import pulumi  # noqa: PLC0415 - the other half of this file does without

    types: set[str] = set()

    class Recorder(pulumi.runtime.Mocks):
        def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
            types.add(str(args.typ))
            if args.typ == "pulumi:pulumi:StackReference":
                return args.name, {"name": args.name, "outputs": told, "secretOutputNames": []}
            return args.name, dict(args.inputs)

        def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
            return dict(args.args), None

    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(Recorder(), project="berth", stack=stack, preview=True, organization="organization")

    @pulumi.runtime.test  # type: ignore[untyped-decorator]  # Pulumi's own has no types
    def run() -> Any:
        return _program(stack)

    run()
    return sorted(each for each in types if each.startswith(_KUBERNETES))


def _program(stack: str) -> Coroutine[Any, Any, None]:
    from berth.stacks.load import load_stack  # noqa: PLC0415
    from berth.stacks.program import build  # noqa: PLC0415

    return build(load_stack(stack))


def main() -> None:
    """Answer the question that stands on stdin."""
    import pulumi  # noqa: PLC0415

    question = json.load(sys.stdin)
    answer: dict[str, Any]
    try:
        answer = {"types": record(question["stack"], question["told"])}
    except pulumi.RunError as error:
        answer = {"refused": str(error)}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
