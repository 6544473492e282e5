"""Channels: chat services in which people talk to moot. Each adapter is one file, the only one that knows its service."""
