"""The format `cherry`: agent sessions of Cherry Studio versions 1 and 2, and the chats of version 2."""

__all__: list[str] = []
