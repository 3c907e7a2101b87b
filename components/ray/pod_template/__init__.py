"""Patches of pod templates: the setting, its checks, and the merge into a template."""
