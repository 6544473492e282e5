"""The commands `moot chat attach` and `stop`, for runs of any process."""

from __future__ import annotations

from moot.cli.following import Follower
from moot.cli.opening import opened_at
from moot.cli.options import AsJson, Out, ShowFlags, Which
from moot.cli.references import live_run
from moot.cli.run import make_show
from moot.errors import UsageError

_NO_SHOW = ShowFlags()


async def attach(conversation: Which, /, *, shown: ShowFlags = _NO_SHOW, output: Out) -> int:
    """Follow a live run from the start of its answer to its end. Detaching does not stop it."""
    display = make_show(shown, output)
    async with opened_at(conversation, output) as (engine, found):
        run = await live_run(engine.store, found)
        if run is None:
            raise UsageError(f"Conversation {found.title or found.id!r} has no live run.", fix="moot ps")
        if run.status == "interrupted":
            raise UsageError("The run is interrupted.", fix=f"moot chat resume {found.id[:13]}")
        message = await engine.store.conversations.message(run.message)
        return await Follower(engine, output, display, stops=False).follow(run, found, max(message.first_seq - 1, 0))


async def stop(conversation: Which, /, *, json: AsJson = False, output: Out) -> None:
    """Stop a conversation's run in any process. The output so far is kept."""
    async with opened_at(conversation, output) as (engine, found):
        run = await live_run(engine.store, found)
        if run is not None:
            await engine.runs.cancel(run.id)
            run = await engine.runs.wait(run.id)
    if json:
        output.json({"ok": True, "conversation": found.id, "run": run.id if run else None, "status": run.status if run else None})
    else:
        output.say(f"moot: {run.status}" if run else "moot: no live run")
