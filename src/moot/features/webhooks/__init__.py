"""Webhooks: POST requests of other programs that start runs, and those that report runs to other programs."""
