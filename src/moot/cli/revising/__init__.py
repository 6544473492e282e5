"""Changing what was said: one message, or a whole conversation as one Markdown text. What was said before stays, on its own branch.

| file | what it does |
|---|---|
| `blocks.py` | a message as texts that may be changed and blocks that may not, and back |
| `document.py` | a whole conversation as one text and back, to the letter |
| `editing.py` | `moot chat edit` |
| `one.py` | one message in the editor, answered again |
| `whole.py` | the whole conversation in the editor, and what changed as a new branch |
"""

__all__: list[str] = []
