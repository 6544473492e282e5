"""Suggestion of the closest known name."""

from __future__ import annotations

from collections.abc import Sequence

from moot.plugins.registry import attribute


def hint(name: str, known: Sequence[str]) -> str:
    """Return `; did you mean 'run'?`, or `;` if no name is close. Goes between an error message and the list of known names."""
    close = attribute("difflib:get_close_matches")(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ";"
