"""`berth preview`: what `pulumi up` would do, in the words of those whose work it touches.

Belongs here: reading the engine's own preview (engine.py, plan.py), what it means for berths and GPUs (fleet.py, effects/,
cost.py), and how it is shown (tree.py, markdown.py, document.py). Everything but engine.py, asking.py and verb.py is pure.
Does not belong here: a plan of its own making, or state.
"""
