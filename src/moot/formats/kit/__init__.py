"""Code that the formats share: safe access to foreign files, incremental JSON, and conversion to and from messages."""

__all__: list[str] = []
