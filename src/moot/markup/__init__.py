"""Parsing of Markdown and highlighting of source code, for the HTML export and the terminal.

Each module imports a large library, so import it only when something is rendered.
"""

__all__: list[str] = []
