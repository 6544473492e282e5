"""What a waiting run asks, put to the person; what they say, handed to the run."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from moot.cli.repl.face import Face
from moot.engine import Engine
from moot.errors import Busy, NotFound
from moot.types.approval import Answer
from moot.types.run import Run

__all__ = ["ask_all"]


async def ask_all(engine: Engine, face: Face, run: Run) -> Literal["asked", "nothing", "later"]:
    """Asks everything that is open; later: the person decides another time, and the run waits on."""
    conversation = await engine.store.conversations.get(run.conversation)
    asked = [one for one in await engine.store.records.approvals(run=run.id) if not one.by_client]
    for approval in asked:
        decided = await face.decide(approval, conversation)
        match decided.how:
            case "stop":
                await engine.runs.cancel(run.id)
                break
            case "later":
                return "later"
            case "expired" | "elsewhere":
                await _go_on(engine, run.id)
            case _:
                await _answer(engine, face, run.id, approval.id, decided.answer)
    return "asked" if asked else "nothing"


async def _answer(engine: Engine, face: Face, run: str, approval: str, answer: Answer | None) -> None:
    if answer is None:
        return
    try:
        await engine.runs.answer(approval, answer)
    except (Busy, NotFound) as error:  # expired meanwhile, or answered elsewhere
        face.failed(error)
        await _go_on(engine, run)


async def _go_on(engine: Engine, run: str) -> None:
    """Has a waiting run learn that what it asked is decided, or can't be any more."""
    if (await engine.store.records.run(run)).status == "waiting":
        with suppress(Busy):  # somebody else does
            await engine.runs.resume(run)
