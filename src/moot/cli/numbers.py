"""The numbers of the list that was printed last: `3` in the next command means what stood there as 3."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from moot.types.canonical import dumps, loads_object

_FILE = "last-list.json"

log = logging.getLogger("moot.cli")


def keep_numbers(state: Path, ids: Sequence[str]) -> None:
    """From here on 1 is the first of these; also for other processes. Whole or not at all; a folder that can't be written is told."""
    fresh = state / f"{_FILE}.{os.getpid()}"
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh.write_bytes(dumps({"conversations": list(ids)}))
        fresh.replace(state / _FILE)
    except OSError as error:
        log.warning("the numbers of this list could not be kept: %s", error)


def numbered(state: Path) -> Sequence[str] | None:
    """The ids that the last printed list numbered, from 1; None when none was printed or its record can't be read."""
    try:
        ids = loads_object((state / _FILE).read_bytes()).get("conversations")
    except (OSError, ValueError):
        return None
    return [str(id) for id in ids] if isinstance(ids, list) else None
