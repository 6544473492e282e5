"""Backups: a whole home as one file, made while the home is in use, and restoring such files."""

from moot.store.maintenance.backup.archive import read
from moot.store.maintenance.backup.restoration import restore

__all__ = ["read", "restore"]
