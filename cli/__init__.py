"""The `berth` command line: no state of its own, and no second way to do what stacks/ does."""
