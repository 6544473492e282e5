"""The format `claude`: sessions of Claude Code, JSON Lines that form a tree by `uuid` and `parentUuid`."""

__all__: list[str] = []
