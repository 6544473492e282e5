"""Code shared by the formats: safe access to files of other programs, incremental JSON, and conversion to and from messages."""

__all__: list[str] = []
