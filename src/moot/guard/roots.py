"""The folders that tools may access, however a path is spelled, except moot's own folder inside them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from moot.errors import Refused, UsageError

__all__ = ["Roots", "folders", "is_own"]

PATH_BYTES = 4095
"""Limit of other programs."""

_HOME = re.compile(r"~[A-Za-z_][\w.-]*|~")


class Roots:
    """The allowed folders. Lookups compare path components and open nothing."""

    def __init__(self, roots: Sequence[Path], directory: Path) -> None:
        self.directory = directory
        """Base of relative paths."""
        self.folders = tuple(Path(os.path.realpath(root)) for root in roots)
        spelled = [(PurePosixPath(root.absolute()).parts, real) for root, real in zip(roots, self.folders, strict=True)]
        spelled += [(root.parts, root) for root in self.folders]
        # longest first, so that resolution starts at the innermost folder
        self._prefixes = sorted(spelled, key=lambda pair: -len(pair[0]))

    def spelled(self, path: str) -> str:
        """Return the absolute path without resolving anything. Raise Refused if it is invalid."""
        if "\0" in path:
            raise Refused(f"{path!r} contains a NUL character, which paths can't have")
        try:
            length = len(os.fsencode(path))
        except UnicodeEncodeError as error:
            raise Refused(f"{path!r} contains a lone surrogate, which paths can't have") from error
        if length > PATH_BYTES:
            raise Refused(f"{path[:80]!r}…: the path is too long ({length} bytes, maximum {PATH_BYTES})")
        if _HOME.fullmatch(path.partition("/")[0]):
            raise Refused(f"{path!r}: '~' is not expanded here; use a path relative to {str(self.directory)!r} or an absolute one")
        return str(self.directory / path)

    def start(self, path: str, spelled: str) -> tuple[Path, list[str]]:
        """Return the allowed folder that contains the absolute path `spelled`, and the remaining components.

        Raise Refused, mentioning `path`, if there is none.
        """
        for candidate in (spelled, os.path.normpath(spelled)):
            parts = PurePosixPath("/" + candidate.lstrip("/")).parts
            for prefix, root in self._prefixes:
                if parts[: len(prefix)] == prefix:
                    return root, list(parts[len(prefix) :])
        known = ", ".join(repr(str(root)) for root in self.folders) or "none"
        raise Refused(f"{path!r} is outside the allowed folders: {known}", fix="add its folder to allowed_uris")


def is_own(folder: int) -> bool:
    """Return whether an open folder is a moot home, or the folder in it that contains the database.

    It is recognized by its content, so that no spelling, link or mount gets around the check, nor another moot's home. It holds settings
    and approvals. Also, opening and closing the database file would release its process's locks
    (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """
    return any(_holds(folder, name) for name in ("data/moot.db", "moot.db"))


def _holds(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def folders(uris: Sequence[str]) -> tuple[Path, ...]:
    """Return the folders in a list of `allowed_uris`: absolute paths and `file:` URIs. Raise UsageError for anything else."""
    return tuple(_folder_of(uri) for uri in uris)


def _folder_of(uri: str) -> Path:
    path = uri
    if uri.casefold().startswith("file:"):
        parts = urlsplit(uri)
        path = unquote(parts.path) if parts.netloc in ("", "localhost") else ""
    if not path.startswith("/") or "\0" in path:
        message = f"allowed_uris: {uri!r} is neither an absolute path nor a file: URI"
        raise UsageError(message, fix="write it like /home/me/work or file:///home/me/work")
    return Path(os.path.normpath("/" + path.lstrip("/")))
