"""The stored logins for MCP servers: one file for each, which only the owner of the home can read. The files are not part of backups."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from moot.config.home import Stamp, lock_file, stamp_of, write_atomically
from moot.types.agent import McpServer
from moot.types.canonical import JsonObject, dumps, loads

_FOLDER = ("state", "logins")
_VERSION = 1


def has_key(server: McpServer) -> bool:
    """Return whether a server is configured with a key, in which case a login is not used."""
    return any(name.lower() == "authorization" for name in server.headers)


class LoginFile:
    """The file with the login for one server. A login belongs to a URL: it is not sent if the server's URL changes."""

    def __init__(self, home: Path, server: McpServer) -> None:
        self._server = server
        self._path = home.joinpath(*_FOLDER, f"{server.name}.json")

    @property
    def stamp(self) -> Stamp:
        """A value that changes whenever another process writes or deletes the file."""
        return stamp_of(self._path)

    def read(self) -> JsonObject | None:
        """Return the login, or None if there is none for this URL."""
        try:
            value = loads(self._path.read_bytes())
        except (OSError, ValueError):
            return None
        known = isinstance(value, dict) and value.get("version") == _VERSION and value.get("url") == self._server.url
        return value if known and isinstance(value, dict) else None

    def lock(self) -> AbstractContextManager[None]:
        """Keep other processes from changing the file during the block."""
        return lock_file(self._path)

    def write(self, login: JsonObject) -> None:
        """Store the login in place of an earlier one."""
        write_atomically(self._path, dumps({**login, "version": _VERSION, "url": self._server.url}))

    def delete(self) -> bool:
        """Delete the login. Return False if there was none."""
        if not self._path.exists():
            return False
        with self.lock():
            self._path.unlink(missing_ok=True)
        return True
