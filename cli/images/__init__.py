"""Digests of the images that settings name."""

from __future__ import annotations
