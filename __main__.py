"""Pulumi program: `pulumi up -s STACK` builds what stacks/Pulumi.STACK.yaml describes."""

from berth.stacks.program import run

run()
