"""Kubernetes objects that an update of a stack creates, recorded from the stack's own program.

Pulumi's runtime changes its process for good, so that the program runs in a process of its own:
`python -m berth.cli.verbs.doctor.kubernetes.registered`.
"""

import asyncio
import json
import subprocess
import sys
from typing import Any

from berth.components.core.errors import BerthError
from berth.components.core.project import project_folder

_SECONDS = 120
_KUBERNETES = "kubernetes:"


class WouldFailError(BerthError):
    """The program reports that an update would fail."""


def registered_types(stack: str, outputs: dict[str, Any] | None = None) -> list[str]:
    """Return Pulumi's types of all Kubernetes objects, each once: `kubernetes:batch/v1:CronJob`.

    Args:
        stack: name of the stack.
        outputs: outputs of the environment's stack, for an engineer's own stack.

    Raises:
        WouldFailError: the program reports that an update would fail.
        BerthError: the program could not be run.
    """
    # By stdin: a kubeconfig is no argument.
    question = json.dumps({"stack": stack, "outputs": outputs or {}})
    command = [sys.executable, "-m", "berth.cli.verbs.doctor.kubernetes.registered"]
    try:
        done = subprocess.run(
            command,
            input=question,
            capture_output=True,
            check=False,
            text=True,
            timeout=_SECONDS,
            cwd=project_folder(),
        )
    except subprocess.TimeoutExpired:
        raise BerthError(
            f"the program of stack {stack} did not end within {_SECONDS} s",
            f"see where it hangs: pulumi preview -s {stack}",
        ) from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise BerthError(
            lines[-1] if lines else f"the program of stack {stack} ended with {done.returncode}",
            f"see why: pulumi preview -s {stack}",
        )
    answer = json.loads(done.stdout)
    if "refused" in answer:
        raise WouldFailError(answer["refused"])
    return [str(kind) for kind in answer["types"]]


def record_types(stack: str, outputs: dict[str, Any]) -> list[str]:
    """Run a stack's program in this process; return the types of its Kubernetes objects."""
    import pulumi

    from berth.stacks.load.stack import load_stack
    from berth.stacks.program.main import build

    types: set[str] = set()

    class Recorder(pulumi.runtime.Mocks):
        def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
            types.add(str(args.typ))
            if args.typ == "pulumi:pulumi:StackReference":
                return args.name, {"name": args.name, "outputs": outputs, "secretOutputNames": []}
            return args.name, dict(args.inputs)

        def call(
            self, args: pulumi.runtime.MockCallArgs
        ) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
            return dict(args.args), None

    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(
        Recorder(), project="berth", stack=stack, preview=True, organization="organization"
    )

    @pulumi.runtime.test  # type: ignore[untyped-decorator]  # Pulumi's own has no types
    def run() -> Any:
        return build(load_stack(stack), recorded=True)

    run()
    return sorted(kind for kind in types if kind.startswith(_KUBERNETES))


def main() -> None:
    """Answer the question on stdin."""
    import pulumi

    question = json.load(sys.stdin)
    answer: dict[str, Any]
    try:
        answer = {"types": record_types(question["stack"], question["outputs"])}
    except pulumi.RunError as error:
        answer = {"refused": str(error)}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
