"""Hooks of the user: commands at events of a conversation, and tool calls before and after a run."""

__all__: list[str] = []
