"""User hooks: commands that run at conversation events, and tool calls before and after a run."""

__all__: list[str] = []
