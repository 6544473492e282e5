"""Webhooks: incoming POST requests that start runs, and outgoing POST requests that report runs to other programs."""
