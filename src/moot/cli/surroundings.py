"""What `moot doctor` looks at around moot: the terminal, the clock, keys, and the other processes of this home."""

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
from moot.config.home import KEY_VARIABLES
from moot.config.settings import Settings
from moot.engine.owners import living
from moot.types.canonical import JsonObject

State: TypeAlias = Literal["ok", "note", "broken"]

_DAY = 86_400
_NARROW = 40
_SHOWN = 4
"""Characters at the end of a key by which a person knows it."""
_LONG = 20
"""Characters of a key that are enough to show its end."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: State
    detail: str
    fix: str = ""

    def to_json(self) -> JsonObject:
        return {"name": self.name, "state": self.state, "detail": self.detail, "fix": self.fix}


def processes(settings: Settings) -> Finding:
    """Who else runs on this home, by the locks that they hold."""
    places, dead = living(settings.owners)
    words = ", ".join(f"process {place.pid} on {place.host}" for place in places) or "none"
    left = f"; {dead} left a lock behind, which is cleared at the next start" if dead else ""
    return Finding("processes", "ok", f"{words}{left}")


def credentials(settings: Settings, origin: Mapping[str, str], environ: Mapping[str, str]) -> Finding:
    """For each provider with a key, the place that it comes from, and what loses against it."""
    won: list[str] = []
    unused: list[str] = []
    for name, entry in sorted(settings.providers.items()):
        variables = [variable for variable in KEY_VARIABLES.get(name, ()) if environ.get(variable)]
        place = origin.get(f"providers.{name}.api_key", "")
        if entry.api_key:
            losers = [variable for variable in variables if not place.endswith(f" {variable}") and environ[variable] != entry.api_key]
            won.append(f"{name}: {_masked(entry.api_key)} of {place}{f', not {_and(losers)}' if losers else ''}")
        elif entry.base_url:
            unused += [f"{variable} is not sent to providers.{name}.base_url" for variable in variables]
    if unused:
        fix = "Where it is meant for that address: moot config set providers.NAME.api_key '${VARIABLE}'"
        return Finding("keys", "note", "; ".join([*won, *unused]), fix)
    return Finding("keys", "ok", "; ".join(won) or "none")


def terminal(output: Output) -> Finding:
    """What this terminal can show."""
    if not output.stdout_terminal:
        return Finding("terminal", "ok", "stdout is none: text comes plain")
    size = shutil.get_terminal_size()
    encoding = (sys.stdout.encoding or "").lower()
    words = [f"{os.environ.get('TERM') or 'TERM is not set'}", f"{size.columns} x {size.lines}"]
    words += ["colour" if output.stdout_colour else "no colour", encoding]
    fixes = list(_terminal_fixes(size.columns, encoding))
    return Finding("terminal", "note" if fixes else "ok", ", ".join(words), " ".join(fixes))


def clock(settings: Settings, now: float | None = None) -> Finding:
    """Whether the clock stands before things that have happened already. `now` is in seconds."""
    now = time.time() if now is None else now
    said = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    fix = "Set it; moot orders conversations by it, and certificates are judged by it."
    for path, what in ((Path(moot.__file__), "moot was installed"), (settings.database, "the database was written")):
        if path.exists() and path.stat().st_mtime > now + _DAY:
            return Finding("clock", "broken", f"it says {said}, but {what} later than that", fix)
    return Finding("clock", "ok", said)


def _terminal_fixes(columns: int, encoding: str) -> Iterator[str]:
    if encoding.replace("-", "") != "utf8":
        yield "Set LANG to a UTF-8 locale, as in LANG=C.UTF-8."
    if columns < _NARROW:
        yield f"Give the window {_NARROW} columns or more."
    if os.environ.get("TERM", "") in ("", "dumb"):
        yield "Set TERM to what the terminal is, as in TERM=xterm-256color."


def _masked(key: str) -> str:
    return f"…{key[-_SHOWN:]}" if len(key) >= _LONG else "a short one"


def _and(names: list[str]) -> str:
    return " and ".join(names)
