"""The answers that an outside agent takes, under the keys of ours that mean the same. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from moot.cli.approving.rows import spelled
from moot.types.outside import Option

__all__ = ["by_key", "label"]

_NUMBERS = "123456789"


def by_key(options: Sequence[Option]) -> dict[str, Option]:
    """`y` and `n` for this once, `s` for longer, as far as there are such; numbers for what is left, in the agent's order."""
    found: dict[str, Option] = {}
    numbers = iter(_NUMBERS)
    for option in options:
        letter = {"allow_once": "y", "allow_always": "s", "reject_once": "n"}.get(option.kind, "")
        key = letter if letter and letter not in found else next(numbers, "")
        if key:
            found[key] = option
    return {key: found[key] for key in sorted(found, key=lambda key: (not found[key].allows, key.isdigit(), key != "y", key))}


def label(option: Option) -> str:
    """The agent's words on one line, nothing of them hidden."""
    return " ".join(spelled(option.label)) or option.kind.replace("_", " ")
