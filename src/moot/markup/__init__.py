"""Markdown and source code, parsed once for the HTML export and the terminal.

Each module imports a large library, so import it only where something is drawn.
"""

__all__: list[str] = []
