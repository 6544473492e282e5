"""Runs that continue after the user has left the terminal."""

from __future__ import annotations

from typing import Literal

import anyio

from moot.cli.console.output import Output
from moot.cli.terminal.foreground import foreground
from moot.cli.terminal.prompts.items import Column, Item
from moot.cli.terminal.prompts.pick import pick
from moot.engine import Engine
from moot.types.run import OPEN, Run, RunStatus

Exit = Literal["detach", "stop", "stay"]

_WORKING: frozenset[RunStatus] = frozenset({"queued", "running"})
_SECONDS = 0.5
"""Time between two checks whether an outside agent's question was answered."""


async def unfinished(engine: Engine) -> list[Run]:
    """Return the runs that would stop if this process ended. A waiting run of moot's own agents needs no process."""
    here = await engine.runs.here()
    return [run for run in here if run.status in _WORKING or (run.agent_type != "moot" and run.status in OPEN)]


async def ask_exit(engine: Engine, conversation: str | None, output: Output) -> Exit:
    """Ask what to do with the runs of this process before the user leaves. Return "stay" if the user doesn't want to leave."""
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
    return "stay" if picked is None else "detach" if picked.item.key == "detach" else "stop" if picked.item.key == "stop" else "stay"


async def stop_all(engine: Engine) -> None:
    """Stop the runs of this process. Their output so far is kept."""
    for run in await unfinished(engine):
        await engine.runs.cancel(run.id)
        await engine.runs.wait(run.id)


async def finish(engine: Engine) -> None:
    """Wait until no run needs this process any more."""
    while runs := await unfinished(engine):
        if (await engine.runs.wait(runs[0].id)).status == "waiting":
            await anyio.sleep(_SECONDS)
