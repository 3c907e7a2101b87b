"""The lab controller: plays what would run on nodes, for nodes that are only simulated.

Belongs here: the device plugins' effect on KWOK nodes, and the operators that the lab runs as local processes while
their Deployment exists. Every rule is a pure function of what the API server holds; `handlers` connects them to it.
Does not belong here: making nodes (`lab/plugins/gcp`), and anything that a real node does by itself.
"""
