"""Policies, one module each: the registry finds the `POLICY` of every module here."""
