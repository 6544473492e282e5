"""Counting what answers took, behind everybody's back: each answer becomes a narrow row once it is over, and again when it changes.

| file | what it does |
|---|---|
| `taken.py` | what one answer took, out of its message, its run and its journal |
| `counter.py` | the rows: made for what has come or changed since |
"""

__all__: list[str] = []
