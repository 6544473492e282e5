"""The folders that may be touched, by whatever spelling a path comes, and the one inside them that never may: moot's own."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from moot.errors import Refused, UsageError

__all__ = ["Roots", "folders", "is_own"]

PATH_BYTES = 4095
"""What other programs can open."""

_HOME = re.compile(r"~[A-Za-z_][\w.-]*|~")


class Roots:
    """Finds the allowed folder that a path lies in, component by component; nothing here opens anything."""

    def __init__(self, roots: Sequence[Path], directory: Path) -> None:
        self.directory = directory
        """Where relative paths start."""
        self.folders = tuple(Path(os.path.realpath(root)) for root in roots)
        spelled = [(PurePosixPath(root.absolute()).parts, real) for root, real in zip(roots, self.folders, strict=True)]
        spelled += [(root.parts, root) for root in self.folders]
        # the longest first, so that of two nested folders the nearer one is where a walk starts
        self._prefixes = sorted(spelled, key=lambda pair: -len(pair[0]))

    def spelled(self, path: str) -> str:
        """The path made absolute, nothing resolved. Raises Refused for what can be no path here."""
        if "\0" in path:
            raise Refused(f"{path!r} holds a NUL character and can't be a path")
        try:
            length = len(os.fsencode(path))
        except UnicodeEncodeError as error:
            raise Refused(f"{path!r} holds a lone surrogate and can't be a path") from error
        if length > PATH_BYTES:
            raise Refused(f"{path[:80]!r}…: a path of {length} bytes is too long; at most {PATH_BYTES} can be")
        if _HOME.fullmatch(path.partition("/")[0]):
            raise Refused(f"{path!r}: '~' is not expanded here; use a path relative to {str(self.directory)!r} or an absolute one")
        return str(self.directory / path)

    def start(self, path: str, spelled: str) -> tuple[Path, list[str]]:
        """The allowed folder in which the absolute `spelled` lies, and the components that lead on from it.

        Raises Refused, with the words of `path`, when there is none.
        """
        for candidate in (spelled, os.path.normpath(spelled)):
            parts = PurePosixPath("/" + candidate.lstrip("/")).parts
            for prefix, root in self._prefixes:
                if parts[: len(prefix)] == prefix:
                    return root, list(parts[len(prefix) :])
        known = ", ".join(repr(str(root)) for root in self.folders) or "none"
        raise Refused(f"{path!r} leads outside the folders that may be touched: {known}", fix="add its folder to allowed_uris")


def is_own(folder: int) -> bool:
    """Whether an open folder is a moot home, or the one in it that holds the database.

    Known by what it holds, so that no spelling, link or mount gets by, nor the home of another moot. Settings and decisions lie there;
    and a database file that anybody in its process opens and closes loses its locks (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """
    return any(_holds(folder, name) for name in ("data/moot.db", "moot.db"))


def _holds(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def folders(uris: Sequence[str]) -> tuple[Path, ...]:
    """The folders that a list of `allowed_uris` names: absolute paths and `file:` URIs. Raises UsageError for anything else."""
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
