"""Questions in the terminal: choose from a list, confirm, type a line, edit a text.

Every question is drawn below what the terminal already shows and is erased when it is answered. A terminal that cannot move its cursor
(`TERM=dumb`) gets the same question as numbered lines and a typed answer.
"""

from __future__ import annotations

__all__: list[str] = []


__all__: list[str] = []
