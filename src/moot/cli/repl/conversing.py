"""Bare `moot`, and whatever else goes on in the loop: a conversation in a terminal, until the person leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import nullcontext

import anyio

from moot.cli.configured import configured, here
from moot.cli.options import Out
from moot.cli.output import Output
from moot.cli.picking.picking import speaks_unicode
from moot.cli.repl.logged import logging_into
from moot.cli.welcome.asked import asks_main, settled
from moot.commands import Situation, Wishes
from moot.engine import open_engine
from moot.errors import UsageError
from moot.plugins.registry import Registry
from moot.types.part import Part

__all__ = ["bare", "converse"]

_DESKS = Registry("moot.desks", {"screen": "moot.cli.repl.desk:Desk", "lines": "moot.cli.repl.plain:Plain"})
"""By path: a terminal that can't be drawn on does not wait for prompt-toolkit."""


async def bare(*, yes: bool = False, output: Out) -> int:
    """Bare `moot`: a new conversation in this directory. Raises UsageError where there is no terminal.

    `yes` takes the first model there is where none was ever chosen, and asks nothing.
    """
    if not output.attended:
        raise UsageError("a conversation needs a terminal", fix='For one prompt: moot run "…"; moot --help lists the rest.')
    return await converse(None, output, yes=yes)


async def converse(
    conversation: str | None, output: Output, *, prompt: Sequence[Part] = (), wishes: Wishes | None = None, yes: bool = False
) -> int:
    """Goes on with a conversation (None = a new one) until the person leaves; the exit code.

    What was said is printed first; then the prompt is sent, or, without one, a last message that is the user's is answered.
    `conversation` is an id. Needs a terminal.
    """
    loaded = configured(output)
    for note in loaded.notes:
        output.say(f"moot: {note}", "dim")
    wishes = wishes or Wishes()
    if conversation is None and asks_main(loaded.settings, wishes.agent, wishes.model):
        loaded = await settled(loaded, output, yes=yes)
    ended = 0
    async with open_engine(loaded.settings) as engine:
        situation = Situation(engine, str(here()), wishes=wishes)
        async with anyio.create_task_group() as group:
            desk = _DESKS.load("screen" if _can_be_drawn_on() else "lines")(situation, group, output)

            async def heed() -> None:
                nonlocal ended
                with anyio.open_signal_receiver(*_heeded()) as signals:
                    async for number in signals:
                        if number == signal.SIGINT:
                            desk.interrupted()
                            continue
                        ended = 128 + number
                        desk.leave()

            group.start_soon(heed)
            with logging_into(desk.log, loaded.secrets) if output.stderr_terminal else nullcontext():
                await desk.run(conversation, prompt)
            group.cancel_scope.cancel()
    if situation.conversation is not None and not ended:
        output.say(f"moot chat continue {situation.conversation[:13]}", "dim")
    return ended


def _can_be_drawn_on() -> bool:
    return os.environ.get("TERM", "") not in ("dumb", "") and speaks_unicode()


def _heeded() -> list[signal.Signals]:
    """What is ignored stays so: `nohup` means it."""
    return [one for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN]
