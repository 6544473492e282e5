"""List numbers: `3` in a command refers to the third conversation or approval in the most recently printed list."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from moot.types.canonical import dumps, loads_object

Listed = Literal["conversations", "approvals"]

_FILES: dict[Listed, str] = {"conversations": "last-list.json", "approvals": "last-approvals.json"}

log = logging.getLogger("moot.cli")


def keep_numbers(state: Path, ids: Sequence[str], listed: Listed = "conversations") -> None:
    """Store the ids of a printed list atomically, so that all processes can use them. Log a warning if the directory is not writable."""
    fresh = state / f"{_FILES[listed]}.{os.getpid()}"
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh.write_bytes(dumps({listed: list(ids)}))
        fresh.replace(state / _FILES[listed])
    except OSError as error:
        log.warning("cannot save the numbers of this list: %s", error)


def numbered(state: Path, listed: Listed = "conversations") -> Sequence[str] | None:
    """Return the ids of the most recently printed list, or None if there is none or it cannot be read."""
    try:
        ids = loads_object((state / _FILES[listed]).read_bytes()).get(listed)
    except (OSError, ValueError):
        return None
    return [str(id) for id in ids] if isinstance(ids, list) else None
