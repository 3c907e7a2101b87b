"""Policies, one module each: the registry finds the `judge` of every module here."""
