"""Asking a person at a terminal: may this call run, and what do you say to these questions?

`decide` is the one entry. Where the terminal can move its cursor it is a small application below what is there already; elsewhere a
typed line. Either way nothing is chosen beforehand, what was typed before the question is no answer to it, every control character of
what is decided about is spelled out, and all of it can be seen.

| file | what it does |
|---|---|
| `deciding.py` | `decide` |
| `situations.py` | the values: what is known around an approval, what came of asking |
| `typed.py` | the same as typed lines |
"""

__all__: list[str] = []
