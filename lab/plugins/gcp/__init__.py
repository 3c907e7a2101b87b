"""The simulated GKE: a stand-in for the `gcp` provider plugin whose node pools become KWOK nodes.

Belongs here: the resource types that the product uses, what Google's API accepts and refuses of
them, and the nodes that a machine type gives. Everything that it makes is a JSON file under the
lab's `cloud` folder or a node in the lab's API server. Does not belong here: what runs on nodes
(device plugins, operators; see `lab/devices`).
"""
