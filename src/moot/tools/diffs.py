"""What a change does to a text, as a unified diff for people."""

from __future__ import annotations

import difflib

__all__ = ["DIFF_CHARACTERS", "unified"]

DIFF_CHARACTERS = 12_000
"""More is cut: it travels with the call's output."""
_COMPARED_LINES = 4000
"""Longer texts are not compared line by line: it takes the square of their length."""


def unified(path: str, before: str, after: str) -> str:
    """The diff, empty when nothing differs; of very long texts only how long they are."""
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > _COMPARED_LINES:
        return f"--- {path}\n+++ {path}\n({len(old):,} lines become {len(new):,})"
    diff = "\n".join(difflib.unified_diff(old, new, path, path, lineterm=""))
    return diff if len(diff) <= DIFF_CHARACTERS else diff[:DIFF_CHARACTERS] + "\n… (cut)"
