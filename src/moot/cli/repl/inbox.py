"""Open approvals in other conversations, reported while the user works in this one."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from moot.cli.repl.conversation import InteractiveConversation
from moot.commands import CommandContext
from moot.errors import MootError
from moot.types.approval import Approval

SECONDS = 2.0
"""Time between two checks."""

log = logging.getLogger("moot.cli")


async def watch_inbox(
    context: CommandContext,
    conversation: InteractiveConversation,
    notice: Callable[[str], object],
    changed: Callable[[int], object] | None = None,
) -> None:
    """Call `changed` when the number of open approvals in other conversations changes, and `notice` with a sentence if it grows."""
    shown = 0
    while True:
        try:
            count = len(await _open_elsewhere(context, conversation.live))
        except MootError as error:
            log.debug("can't read the open approvals: %s", error)
        else:
            if count > shown:
                notice(_notice(count))
            if count != shown and changed is not None:
                changed(count)
            shown = count
        await anyio.sleep(SECONDS)


def _notice(count: int) -> str:
    """Return a line with the command that lists the approvals."""
    if count == 1:
        return "An approval is open in another conversation · moot approvals list"
    return f"{count} approvals are open in other conversations · moot approvals list"


async def _open_elsewhere(context: CommandContext, live: str | None) -> list[Approval]:
    """Return the open approvals except those of the shown conversation and of its live run's sub-agents."""
    records, now = context.engine.store.records, context.engine.runtime.now() // 1000
    own = await records.approvals(conversation=context.conversation) if context.conversation is not None else []
    own += await records.approvals(run=live, tree=True) if live is not None else []
    known = {one.id for one in own}
    found = [one for one in await records.approvals() if one.id not in known and not one.by_client]
    return [one for one in found if one.expires_at is None or one.expires_at > now]
