"""Checks of a project in Google Cloud, by its REST APIs."""
