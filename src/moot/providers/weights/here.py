"""Which weights lie on this machine: a look at the disk, for which nothing of fetching is imported."""

from __future__ import annotations

from pathlib import Path

from moot.providers.weights.manifest import MANIFEST, Weights, find_any
from moot.providers.weights.partial import models_folder


def path_of(name: str, home: Path) -> Path | None:
    """The file of these weights when it is here whole, else None. Raises UsageError for a name that is not in the manifest."""
    weights = find_any(name)
    path = models_folder(home) / weights.file
    return path if path.is_file() and path.stat().st_size == weights.size else None


def installed(home: Path) -> list[Weights]:
    """The entries of the manifest whose files are here."""
    return [weights for weights in MANIFEST.values() if path_of(weights.name, home)]
