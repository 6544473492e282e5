"""The format `codex`: sessions of Codex, JSON Lines in which most content is stored twice."""

__all__: list[str] = []
