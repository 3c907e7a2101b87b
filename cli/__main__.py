"""`python -m berth.cli`: the `berth` command."""

from berth.cli.main import main

main()
