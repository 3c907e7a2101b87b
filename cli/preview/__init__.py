"""`berth preview`: what `pulumi up` would do, and what that means for berths, GPUs and money.

Belongs here: how a report is shown, and an exit code for CI. Does not belong here: what a plan
means (stacks/preview), and the engine (cli/engine.py).
"""
