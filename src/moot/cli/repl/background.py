"""Runs that continue after the user has left the terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Literal, cast

import anyio

from moot.cli.console.output import Output
from moot.cli.terminal.foreground import foreground
from moot.cli.terminal.prompts.items import Column, Item
from moot.cli.terminal.prompts.pick import pick
from moot.engine import Engine
from moot.errors import UsageError
from moot.types.run import OPEN, Run, RunStatus

Exit = Literal["detach", "stop", "stay"]

_WORKING: frozenset[RunStatus] = frozenset({"queued", "running"})
_SECONDS = 0.5
"""Time between two checks whether an outside agent's question was answered."""
_SETTLE_SECONDS = 10.0
"""Maximum time for the follow-up work of a run that has ended."""


async def unfinished(engine: Engine) -> list[Run]:
    """Return the runs that would stop if this process ended. A waiting run of moot's own agents needs no process."""
    here = await engine.runs.here()
    return [run for run in here if run.status in _WORKING or (run.agent_type != "moot" and run.status in OPEN)]


async def conversation_of(engine: Engine, runs: Sequence[Run]) -> str | None:
    """Return the conversation of the runs, or None if they belong to several. Sub-agents belong to the run that started them."""
    found: set[str] = set()
    for run in runs:
        while run.parent_run is not None:
            run = await engine.store.records.run(run.parent_run)
        found.add(run.conversation)
    return found.pop() if len(found) == 1 else None


async def confirm_exit(engine: Engine, output: Output, suspend_for: Callable[[Callable[[], Awaitable[Exit]]], Awaitable[Exit]]) -> Exit:
    """Ask what to do with running answers before the user leaves, and stop them if the user chooses that.

    Return "stop" without asking if there are none. `suspend_for` runs a function that reads the terminal.
    """
    if not (runs := await unfinished(engine)):
        return "stop"
    choice = await suspend_for(partial(_ask, engine, runs, output))
    if choice == "stop":
        await stop_all(engine)
    return choice


async def check_detach(engine: Engine) -> None:
    """Raise UsageError if there is nothing to detach from, or if this system can't."""
    if foreground() is None:
        raise UsageError("moot can't detach on this system.", fix="Use /new and continue here.")
    if not await unfinished(engine):
        raise UsageError("No run is active.", fix="Use /exit to leave the conversation.")


async def _ask(engine: Engine, runs: Sequence[Run], output: Output) -> Exit:
    conversation = await conversation_of(engine, runs)
    follow = f"moot chat attach {conversation[:13]}" if conversation is not None else "moot ps"
    resume = f"moot chat continue {conversation[:13]}" if conversation is not None else "moot chat list"
    items = [
        Item("stop", ("Stop", f"the text so far is kept; {resume}")),
        Item("stay", ("Stay", "keep the conversation open")),
    ]
    if foreground() is not None:
        items.insert(0, Item("detach", ("Detach", f"the answer continues in the background; {follow}")))
    columns = (Column(width=8), Column(width=60, rank=1, grows=True))
    picked = await pick(items, title="An answer is running. Exit?", output=output, columns=columns)
    return cast("Exit", picked.item.key) if picked is not None else "stay"


async def follow_notice(engine: Engine) -> str:
    """Return the notice that is printed when the user detaches."""
    conversation = await conversation_of(engine, await unfinished(engine))
    command = f"moot chat attach {conversation[:13]}" if conversation is not None else "moot ps"
    return f"The answer continues in the background. To follow it, run: {command}"


async def stop_all(engine: Engine) -> None:
    """Stop the runs of this process. Their output so far is kept."""
    for run in await unfinished(engine):
        await engine.runs.cancel(run.id)
        await engine.runs.wait(run.id)


async def finish(engine: Engine) -> None:
    """Wait until no run needs this process any more."""
    while True:
        await engine.runs.settle(_SETTLE_SECONDS)  # the end of a sub-agent resumes its parent
        if not (runs := await unfinished(engine)):
            return
        if (await engine.runs.wait(runs[0].id)).status == "waiting":
            await anyio.sleep(_SECONDS)
