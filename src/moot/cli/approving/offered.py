"""The answers that an outside agent accepts, bound to our keys of the same meaning. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from moot.cli.approving.rows import visible_line
from moot.types.outside import Option

__all__ = ["label", "options_by_key"]

_NUMBERS = "123456789"


def options_by_key(options: Sequence[Option]) -> dict[str, Option]:
    """Return the options by key: `y` and `n` for once, `s` for a lasting yes, numbers for the others in the agent's order."""
    found: dict[str, Option] = {}
    numbers = iter(_NUMBERS)
    for option in options:
        letter = {"allow_once": "y", "allow_always": "s", "reject_once": "n"}.get(option.kind, "")
        key = letter if letter and letter not in found else next(numbers, "")
        if key:
            found[key] = option
    return {key: found[key] for key in sorted(found, key=lambda key: (not found[key].allows, key.isdigit(), key != "y", key))}


def label(option: Option) -> str:
    """Return the agent's label on one line with control characters visible."""
    return visible_line(option.label) or option.kind.replace("_", " ")
