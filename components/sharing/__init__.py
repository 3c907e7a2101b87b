"""Sharing profiles as NVIDIA's device plugin reads them, and the node labels that choose among them. All of it pure."""
