"""Markdown and source code, parsed once for the HTML export and the terminal.

Each module imports a large library, so import it only where something is drawn.

| file | what it holds |
|---|---|
| `code.py` | the highlighter |
| `markdown.py` | the Markdown parser |
| `stream.py` | complete and open blocks of Markdown that is still being written |
"""

__all__: list[str] = []
