"""Policies, one module each: a `POLICY` that describes itself. The registry finds every module of this folder."""
