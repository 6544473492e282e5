"""Entry points of installed packages. They are only looked up if the built-in names are not enough."""

from __future__ import annotations

import os
import sys
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
    """Return whether any package declares entry points in a group, by looking at files, as importlib.metadata is slow to import."""
    return any(_declares(group, Path(place or ".")) for place in dict.fromkeys(places))


def _declares(group: str, place: Path) -> bool:
    if place.is_file():  # a zip file, which only importlib.metadata can read
        return True
    try:
        folders = [entry.path for entry in os.scandir(place) if entry.name.endswith(_METADATA)]
    except OSError:
        return False
    return any(_names(group, Path(folder, "entry_points.txt")) for folder in folders)


def _names(group: str, file: Path) -> bool:
    try:
        return f"[{group}]".encode() in file.read_bytes()
    except OSError:
        return False
