"""Policies: rules that every environment keeps, unless its settings waive one with a reason.

What Google Cloud or Kubernetes would refuse anyway is a rule of a slice.
"""
