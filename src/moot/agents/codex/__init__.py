"""The agent service `codex`: the Codex program, driven over `codex app-server`."""

__all__: list[str] = []
