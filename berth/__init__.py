"""Package `berth`, as it is installed: the folders of the repository's top level under one name.

In a checkout they are symbolic links, so that `from berth.components.gke import …` is the same line in the checkout and on a
wheel. Nothing else belongs here.
"""
