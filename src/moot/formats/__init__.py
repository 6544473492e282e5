"""Other programs' files of conversations, and our own: one file for each format, behind the seam `moot.types.format`.

Pure and synchronous: a source is read and never changed, no clock, no network; whoever calls does it off the event loop.

| file | what it does |
|---|---|
| `recording.py` | `recording`: conversations with their runs and what vendors sent; captures of other programs |
| `_lines.py` | its lines, written and read |
| `_facts.py` | its values as JSON |
| `_captures.py` | whose a capture is, and the runs in it |
"""

__all__: list[str] = []
