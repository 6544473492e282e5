"""`moot export --install`: a conversation put where another agent goes on with it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from moot.cli.configured import here
from moot.cli.opening import opened_at
from moot.cli.output import Output
from moot.runtime.installing import installed
from moot.types.canonical import JsonObject
from moot.types.format import Format

__all__ = ["install"]


async def install(which: str, writer: Format, output: Output, *, json: bool) -> int:
    """Writes the session and says what resumes it, on stdout."""
    async with opened_at(which, output) as (engine, found):
        session = await installed(engine.store, found, writer, home=Path.home(), environ=os.environ, directory=here())
    command = f"cd {shlex.quote(str(session.directory))} && {shlex.join(session.command)}"
    fidelity = session.fidelity
    counts: JsonObject = {"kept": dict(fidelity.kept), "approximated": dict(fidelity.approximated), "lost": dict(fidelity.lost)}
    if json:
        about: JsonObject = {"ok": True, "file": str(session.path), "bytes": len(session.data), "fidelity": counts}
        output.json({**about, "directory": str(session.directory), "command": list(session.command)})
        return 0
    output.say(f"moot: wrote {session.path} ({len(session.data):,} bytes); this goes on with it:")
    output.line(command)
    return 0
