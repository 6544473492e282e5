"""Lookup of installed weights, without importing the download code."""

from __future__ import annotations

from pathlib import Path

from moot.providers.weights.manifest import MANIFEST, Weights, find_any
from moot.providers.weights.partial import models_folder


def path_of(name: str, home: Path) -> Path | None:
    """Return the file of these weights if it is installed completely, else None. Raise UsageError for an unknown name."""
    weights = find_any(name)
    path = models_folder(home) / weights.file
    return path if path.is_file() and path.stat().st_size == weights.size else None


def installed(home: Path) -> list[Weights]:
    """Return the chat models whose weights are installed."""
    return [weights for weights in MANIFEST.values() if path_of(weights.name, home)]
