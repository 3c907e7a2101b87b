"""Pulumi provider plugins of the lab, and the server that they share."""
