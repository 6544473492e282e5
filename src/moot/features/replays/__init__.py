"""Replay and repeat earlier runs."""
