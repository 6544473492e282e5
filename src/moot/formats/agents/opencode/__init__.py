"""The format `opencode`: sessions of OpenCode, in its database, its exports and the output of its server."""

__all__: list[str] = []
