"""Incoming and outgoing webhooks, and push notifications, which use the same queue."""
