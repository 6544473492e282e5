"""Entry point of the REPL: a conversation in a terminal until the user leaves."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext

import anyio

from moot.cli.console.lines import debugging, write_notes
from moot.cli.console.output import Output, handled_signals
from moot.cli.context.configuration import configured_loader, here
from moot.cli.context.engine import open_watched, purged
from moot.cli.models import ensure_model, needs_main_model
from moot.cli.terminal.foreground import Foreground, foreground
from moot.cli.terminal.prompts.layout import moves_cursor, speaks_unicode
from moot.commands import CommandContext, RunOverrides
from moot.engine.submissions import copy_of
from moot.features.settings import allow_folders
from moot.guard.secrets import redact
from moot.plugins.registry import attribute
from moot.types.message import Part


class _LineHandler(logging.Handler):
    def __init__(self, say: Callable[[str], None], secrets: tuple[str, ...]) -> None:
        super().__init__(logging.INFO if debugging() else logging.WARNING)
        self._say, self._secrets = say, secrets

    def emit(self, record: logging.LogRecord) -> None:
        self._say(redact(f"moot: {record.getMessage()}", self._secrets))


@contextmanager
def log_to(say: Callable[[str], None], secrets: tuple[str, ...]) -> Generator[None, None, None]:
    """Pass logged warnings and errors to `say` within the block, and informational messages with MOOT_DEBUG=1."""
    root = logging.getLogger()
    handlers: list[logging.Handler] = [_LineHandler(say, secrets)]
    before, root.handlers = root.handlers, handlers
    try:
        yield
    finally:
        root.handlers = before


_BACKGROUND = "moot.cli.repl.background"
_SCREEN, _PLAIN = "moot.cli.repl.screen:ReplScreen", "moot.cli.repl.plain:PlainRepl"
"""Import paths, loaded on first use, because a dumb terminal does not need prompt-toolkit."""


@asynccontextmanager
async def _bound_to(link: Foreground | None) -> AsyncGenerator[None, None]:
    """Within this block, moot ends at once if the process that the shell waits for is killed, as if moot itself had been killed."""

    async def end() -> None:
        if link is not None:
            await anyio.wait_readable(link.pipe)
            if not link.detached:
                os.kill(os.getpid(), signal.SIGKILL)

    async with anyio.create_task_group() as group:
        group.start_soon(end)
        yield
        group.cancel_scope.cancel()


async def run_repl(
    conversation: str | None,
    output: Output,
    *,
    prompt: Sequence[Part] = (),
    overrides: RunOverrides | None = None,
    allowed: Sequence[str] = (),
    yes: bool = False,
    directory: str = "",
    temporary: bool = False,
) -> int:
    """Continue the conversation with this ID (None for a new one) until the user leaves. Return the exit code.

    Print the existing messages first. Then send the prompt or, without one, answer an unanswered last message. Needs a terminal.
    """
    loader = configured_loader(output)
    write_notes(output, loader.current.notes)
    overrides = overrides or RunOverrides()
    exit_code, detaches, link = 0, False, foreground()
    if conversation is None and needs_main_model(loader.current.settings, overrides.agent, overrides.model):
        async with _bound_to(link):
            await ensure_model(loader, output, yes=yes)
    async with _bound_to(link), open_watched(loader, output) as engine:
        context = CommandContext(engine, directory or str(here()), overrides=overrides, further_folders=list(allowed))
        context.temporary = temporary
        if conversation is not None and allowed:
            existing = await engine.store.conversations.get(conversation)
            existing = await copy_of(engine.store.conversations, existing) or existing
            await allow_folders(engine, existing.id, context.take_folders(), context.directory)
        async with anyio.create_task_group() as group:
            repl = attribute(_SCREEN if moves_cursor() and speaks_unicode() else _PLAIN)(context, group, output)

            async def watch_signals() -> None:
                nonlocal exit_code
                with anyio.open_signal_receiver(*handled_signals()) as signals:
                    async for number in signals:
                        exit_code = exit_code if number == signal.SIGINT else 128 + number
                        repl.handle_signal(number)

            group.start_soon(watch_signals)
            with log_to(repl.log, loader.current.secrets) if output.stderr_terminal else nullcontext():
                await repl.run(conversation, prompt)
            detaches = repl.detaches
            group.cancel_scope.cancel()
        if detaches and link is not None:
            output.say(await attribute(f"{_BACKGROUND}:follow_notice")(engine), "dim")
            link.detach()
            await attribute(f"{_BACKGROUND}:finish")(engine)
            return 0
        async with purged(context.started, engine, output):
            pass
    if temporary:
        return exit_code
    if context.conversation is not None and not exit_code:
        output.say(f"To continue: moot chat continue {context.conversation[:13]}", "dim")
    return exit_code
