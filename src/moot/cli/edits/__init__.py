"""Editing of one message, or of a whole conversation as one Markdown text. The original stays on its own branch."""

__all__: list[str] = []
