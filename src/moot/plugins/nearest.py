"""The nearest known name to one that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def hint(name: str, known: Sequence[str]) -> str:
    """`; did you mean 'run'?`, or `;` when nothing is near: stands between a complaint and the list of what is known."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ";"
