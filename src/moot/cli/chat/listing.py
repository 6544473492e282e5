"""`moot chat list`: conversations, newest activity first."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated

from moot.cli.chat.facts import conversation_json, live_statuses, status_of
from moot.cli.configured import here
from moot.cli.numbers import keep_numbers
from moot.cli.opening import opened
from moot.cli.options import AsJson, Cursor, Limit, Out
from moot.cli.output import Output
from moot.cli.parameters import Parameter
from moot.cli.references import state_of
from moot.cli.tables import print_table
from moot.cli.times import age
from moot.engine import Engine
from moot.plugins.registry import attribute
from moot.types.conversation import Conversation
from moot.types.run import RunStatus
from moot.types.store import Page

LIMIT = 50
HEAD = ("NO", "ID", "MODEL", "AGE", "MESSAGES", "STATUS", "TITLE")


async def list_(
    *words: Annotated[str, Parameter(help="Only those in whose title, model, agent or directory each of these occurs.")],
    limit: Limit = LIMIT,
    cursor: Cursor = None,
    here_only: Annotated[bool, Parameter(name="--here", help="Only those of this directory.")] = False,
    archived: Annotated[bool, Parameter(name="--archived", help="Only those that are archived.")] = False,
    deleted: Annotated[bool, Parameter(name="--deleted", help="Only those that are deleted.")] = False,
    plain: Annotated[bool, Parameter(name="--plain", help="Only print the list, also on a terminal.")] = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """All conversations, newest activity first; on a terminal to filter, to go on with and to change."""
    if output.attended and not (plain or json or cursor or limit != LIMIT):
        scope = "deleted" if deleted else "archived" if archived else "here" if here_only else ""
        return await attribute("moot.cli.browsing.browsing:browse")(output, " ".join(words), scope)
    async with opened(output) as engine:
        page = await engine.store.conversations.list(
            limit=limit,
            cursor=cursor,
            directory=str(here()) if here_only else None,
            query=" ".join(words),
            deleted=deleted,
            archived=None if deleted else archived,
        )
        live = await live_statuses(engine.store)
        if json:
            output.json({"data": [conversation_json(item, live) for item in page.items], "next_cursor": page.next_cursor})
        else:
            print_list(engine, page, live, output)
    return 0


def print_list(engine: Engine, page: Page[Conversation], live: Mapping[str, RunStatus], output: Output) -> None:
    """The page as columns; its numbers are what a number means from here on."""
    print_table(output, HEAD, [_row(item, live, number) for number, item in enumerate(page.items, 1)])
    keep_numbers(state_of(engine), [item.id for item in page.items])
    if page.next_cursor:
        output.say(f"moot: more with --cursor {page.next_cursor}", "dim")


def _row(conversation: Conversation, live: Mapping[str, RunStatus], number: int) -> list[str]:
    return [
        str(number),
        conversation.id[:13],
        conversation.model or "-",
        age(conversation.updated_at, time.time()),
        str(conversation.message_count),
        status_of(conversation, live),
        conversation.title or "untitled",
    ]
