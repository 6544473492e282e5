"""Replaying and repeating earlier runs."""
