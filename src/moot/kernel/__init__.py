"""The Jupyter kernel: a notebook is a conversation, and a cell is a prompt. See docs/notebooks.md."""

__all__: list[str] = []
