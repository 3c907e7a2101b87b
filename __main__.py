"""The Pulumi program: `pulumi up -s STACK` builds the stack that stacks/Pulumi.STACK.yaml describes."""

from berth.stacks.program import run

run()
