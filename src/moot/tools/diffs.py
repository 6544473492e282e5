"""Unified diffs for display."""

from __future__ import annotations

import difflib

__all__ = ["DIFF_CHARACTERS", "unified"]

DIFF_CHARACTERS = 12_000
"""Maximum length of a diff, which is stored with the call's output."""
_COMPARED_LINES = 4000
"""Longer texts are not compared, because comparing takes quadratic time."""


def unified(path: str, before: str, after: str) -> str:
    """Return the diff, empty if the texts are equal. For very long texts, return only their lengths."""
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > _COMPARED_LINES:
        return f"--- {path}\n+++ {path}\n({len(old):,} lines become {len(new):,})"
    diff = "\n".join(difflib.unified_diff(old, new, path, path, lineterm=""))
    return diff if len(diff) <= DIFF_CHARACTERS else diff[:DIFF_CHARACTERS] + "\n… (cut)"
