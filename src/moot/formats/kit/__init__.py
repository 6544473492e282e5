"""Shared code of the formats: safe access to foreign files, incremental JSON, and conversion to and from messages."""

__all__: list[str] = []
