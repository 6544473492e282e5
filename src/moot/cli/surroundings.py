"""Checks of `moot doctor` outside the store: the terminal, the clock, API keys, and other moot processes."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import moot
from moot.cli.output import Output
from moot.cli.things import plural
from moot.config.home import KEY_VARIABLES
from moot.config.settings import Settings
from moot.engine.owners import living
from moot.types.canonical import JsonObject

State: TypeAlias = Literal["ok", "note", "broken"]

_DAY = 86_400
_NARROW = 40
_SHOWN = 4
"""Characters shown of the end of a key."""
_LONG = 20
"""Minimum length of a key whose end is shown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check."""

    name: str
    state: State
    detail: str
    fix: str = ""

    def to_json(self) -> JsonObject:
        return {"name": self.name, "state": self.state, "detail": self.detail, "fix": self.fix}


def processes(settings: Settings) -> Finding:
    """List the other processes that use this home, by the locks that they hold."""
    places, dead = living(settings.owners)
    words = ", ".join(f"process {place.pid} on {place.host}" for place in places) or "none"
    stale = f"; {plural(dead, 'stale lock')}, removed at the next start" if dead else ""
    return Finding("processes", "ok", f"{words}{stale}")


def credentials(settings: Settings, origin: Mapping[str, str], environ: Mapping[str, str]) -> Finding:
    """List where each provider's key comes from, and the environment variables that it overrides."""
    used: list[str] = []
    unused: list[str] = []
    for name, entry in sorted(settings.providers.items()):
        variables = [variable for variable in KEY_VARIABLES.get(name, ()) if environ.get(variable)]
        place = origin.get(f"providers.{name}.api_key", "")
        if entry.api_key:
            losers = [variable for variable in variables if not place.endswith(f" {variable}") and environ[variable] != entry.api_key]
            used.append(f"{name}: {_masked(entry.api_key)} from {place}{f', not {_and(losers)}' if losers else ''}")
        elif entry.base_url:
            unused += [f"{variable} is not sent to providers.{name}.base_url" for variable in variables]
    if unused:
        fix = "To send it there, run: moot config set providers.NAME.api_key '${VARIABLE}'"
        return Finding("keys", "note", "; ".join([*used, *unused]), fix)
    return Finding("keys", "ok", "; ".join(used) or "none")


def terminal(output: Output) -> Finding:
    """Check what the terminal can display."""
    if not output.stdout_terminal:
        return Finding("terminal", "ok", "stdout is not a terminal; output is plain text")
    size = shutil.get_terminal_size()
    encoding = (sys.stdout.encoding or "").lower()
    words = [f"{os.environ.get('TERM') or 'TERM is not set'}", f"{size.columns} x {size.lines}"]
    words += ["colour" if output.stdout_colour else "no colour", encoding]
    fixes = list(_terminal_fixes(size.columns, encoding))
    return Finding("terminal", "note" if fixes else "ok", ", ".join(words), " ".join(fixes))


def clock(settings: Settings, now: float | None = None) -> Finding:
    """Check that the clock is not behind the installation and the database. `now` is in seconds."""
    now = time.time() if now is None else now
    shown = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    fix = "Set the clock. moot sorts conversations by it, and certificates are checked against it."
    for path, what in ((Path(moot.__file__), "moot was installed"), (settings.database, "the database was written")):
        if path.exists() and path.stat().st_mtime > now + _DAY:
            return Finding("clock", "broken", f"the clock shows {shown}, but {what} later than that", fix)
    return Finding("clock", "ok", shown)


def _terminal_fixes(columns: int, encoding: str) -> Iterator[str]:
    if encoding.replace("-", "") != "utf8":
        yield "Set LANG to a UTF-8 locale, for example LANG=C.UTF-8."
    if columns < _NARROW:
        yield f"Widen the window to at least {_NARROW} columns."
    if os.environ.get("TERM", "") in ("", "dumb"):
        yield "Set TERM to your terminal's type, for example TERM=xterm-256color."


def _masked(key: str) -> str:
    return f"…{key[-_SHOWN:]}" if len(key) >= _LONG else "a short key"


def _and(names: list[str]) -> str:
    return " and ".join(names)
