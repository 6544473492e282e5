"""Questions in the terminal: choose from a list, confirm, type a line, edit text.

Every question is drawn below what the terminal already shows and is erased when it is answered. On a terminal that can't move its
cursor (`TERM=dumb`), the choices are printed as numbered lines, and the user types the answer.
"""

from __future__ import annotations

__all__: list[str] = []


__all__: list[str] = []
