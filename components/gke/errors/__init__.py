"""Errors of Google Cloud: what each one means, and the hook that logs it beside Google's text."""
