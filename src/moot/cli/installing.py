"""`moot export --install`: write a conversation where another agent can continue it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from moot.cli.configured import here
from moot.cli.opening import opened_at
from moot.cli.output import Output
from moot.runtime.installing import installed
from moot.types.canonical import JsonObject
from moot.types.forgetting import KeptCopy
from moot.types.format import Format

__all__ = ["install"]

_WORDS = {"written": "wrote", "replaced": "updated", "unchanged": "unchanged:"}


async def install(which: str, writer: Format, output: Output, *, json: bool) -> int:
    """Write the session file and print the command that continues it to stdout. Return the exit code."""
    async with opened_at(which, output) as (engine, found):
        done = await installed(engine.store, found, writer, home=Path.home(), environ=os.environ, directory=here())
        session = done.session
        await engine.store.forgetting.register_files([KeptCopy(str(session.path), "export", 0, len(session.data), found.id)])
    command = f"cd {shlex.quote(str(session.directory))} && {shlex.join(session.command)}"
    fidelity = session.fidelity
    counts: JsonObject = {"kept": dict(fidelity.kept), "approximated": dict(fidelity.approximated), "lost": dict(fidelity.lost)}
    if json:
        about: JsonObject = {"ok": True, "file": str(session.path), "bytes": len(session.data), "fidelity": counts}
        about |= {"outcome": done.outcome, "beside": None if done.beside is None else str(done.beside)}
        output.json({**about, "directory": str(session.directory), "command": list(session.command)})
        return 0
    if done.beside is not None:
        output.say(f"moot: kept {done.beside}: it has messages that this conversation lacks; 'moot import' adds them", "yellow")
    output.say(f"moot: {_WORDS[done.outcome]} {session.path} ({len(session.data):,} bytes); continue it with:")
    output.line(command)
    return 0
