"""Programs that workflows of CI run: `python -m berth.cli.ci.PROGRAM`."""
