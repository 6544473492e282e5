"""Backups: a whole home as one file, made while the home is in use, and restoring such files."""

from moot.store.backing.manifest import read
from moot.store.backing.restoring import restore

__all__ = ["read", "restore"]
