"""Lookup of entry points of installed packages."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from moot.plugins.registry import attribute

_METADATA = (".dist-info", ".egg-info")


def points(group: str) -> tuple[Any, ...]:
    """Return the entry points (importlib.metadata) of a group."""
    return tuple(attribute("importlib.metadata:entry_points")(group=group)) if _declared(group, tuple(sys.path)) else ()


@cache
def _declared(group: str, places: tuple[str, ...]) -> bool:
    """Return True if any package declares entry points in a group. This searches files, because importlib.metadata is slow to import."""
    return any(_declares(group, Path(place or ".")) for place in dict.fromkeys(places))


def _declares(group: str, place: Path) -> bool:
    if place.is_file():  # a zip file, which only importlib.metadata can read
        return True
    wanted = f"[{group}]".encode()
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.name.endswith(_METADATA) and wanted in Path(entry, "entry_points.txt").read_bytes():
                    return True
    return False
