"""Channels: chat services, such as Discord, in which people talk to moot."""
