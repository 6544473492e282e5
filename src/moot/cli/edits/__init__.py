"""Edit one message, or a whole conversation as one Markdown text. The original is kept on another branch."""

__all__: list[str] = []
