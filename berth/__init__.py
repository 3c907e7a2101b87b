"""Package `berth`, as it is installed: the folders of the repository's top level under one name.

In a checkout they are symbolic links, so that `from berth.components.gke import …` is the same line
in a checkout and with a wheel. Nothing else belongs here.
"""
