"""The command `moot chat list`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Cursor, Limit, Parameter, Plain
from moot.cli.console.format import age, parse_time, print_table
from moot.cli.console.lines import Lines
from moot.cli.context.configuration import configured, here
from moot.cli.context.numbers import keep_numbers
from moot.cli.remote.address import remote_url
from moot.config.settings import Settings
from moot.convert.serialization import conversation_json, status_of
from moot.errors import UsageError
from moot.plugins.registry import attribute
from moot.store.database.snapshot import open_snapshot
from moot.store.tree.lists import ListFilter, choices, live, page, project_id, with_listed_names
from moot.types.conversation import LOCAL_HOST, Conversation, Page
from moot.types.run import RunStatus

LIMIT = 50
HEAD = ("NO", "ID", "MODEL", "AGE", "MESSAGES", "STATUS", "TITLE")

ListPage = tuple[Page[Conversation], dict[str, RunStatus]]


def list_(
    *words: Annotated[
        str, Parameter(metavar="WORD", help="Only conversations whose title, model, agent, origin or directory contains these words.")
    ],
    limit: Limit | None = None,
    cursor: Cursor = None,
    here_only: Annotated[bool, Parameter(name="--here", help="Only conversations from this directory.")] = False,
    host: Annotated[
        str | None, Parameter(help="Only conversations imported from this machine by 'moot sync'. 'local' is this machine.")
    ] = None,
    archived: Annotated[bool, Parameter(help="Only archived conversations.")] = False,
    deleted: Annotated[bool, Parameter(help="Only deleted conversations.")] = False,
    project: Annotated[str, Parameter(metavar="PROJECT", help="Only conversations in the project with this name or id.")] = "",
    agent: Annotated[str, Parameter(metavar="AGENT", help="Only conversations with this agent, or imported from it.")] = "",
    model: Annotated[str, Parameter(metavar="MODEL", help="Only conversations with this model.")] = "",
    tag: Annotated[str, Parameter(metavar="TAG", help="Only conversations with this tag.")] = "",
    since: Annotated[
        str, Parameter(metavar="TIME", help="Only conversations active since a date (2026-01-31) or within a period (30d).")
    ] = "",
    until: Annotated[
        str, Parameter(metavar="TIME", help="Only conversations created before a date (2026-01-31) or more than a period ago (30d).")
    ] = "",
    plain: Annotated[bool, Parameter(help="Print the list without the interactive browser.")] = False,
    json: AsJson = False,
    output: Annotated[Lines, Plain],
) -> int:
    """List conversations, pinned ones first, then by most recent activity. In a terminal, let the user continue and change them."""
    filters = project or agent or model or tag or since or until
    if here_only and remote_url():
        raise UsageError("--here can't be used with --url, because conversations are in folders of the server.", fix="Use --project.")
    if output.attended and not (plain or json or cursor or limit or host or filters or remote_url()):
        scope = "deleted" if deleted else "archived" if archived else "here" if here_only else ""
        status: int = attribute("moot.cli.commands.chat.browser:browse")(output, " ".join(words), scope)
        return status
    wanted = ListFilter(
        limit=limit or LIMIT,
        cursor=cursor,
        directory=str(here()) if here_only else None,
        query=" ".join(words),
        deleted=deleted,
        archived=None if deleted else archived,
        host="" if host == LOCAL_HOST else host,
        project=project or None,
        agent=agent or None,
        model=model or None,
        since=parse_time(since) if since else None,
        until=parse_time(until, "--until") if until else None,
        tag=tag or None,
        pinned_first=True,
    )
    if remote_url():
        (shown, states), state = attribute("moot.cli.context.engine:list_on_server")(output, wanted)
    else:
        settings = configured(output).settings
        (shown, states), state = read_page(settings, wanted), settings.home / "state"
    if json:
        output.json({"data": [conversation_json(item, states) for item in shown.items], "next_cursor": shown.next_cursor})
    else:
        print_list(state, shown, states, output)
    return 0


def read_page(settings: Settings, wanted: ListFilter) -> ListPage:
    """Return a page of conversations and the status of each conversation's live run.

    Raise UsageError for an invalid cursor, and StoreError if reading fails.
    """
    with open_snapshot(settings.database) as connection:
        if connection is not None:
            if wanted.project is not None:
                wanted = replace(wanted, project=project_id(connection, wanted.project))
            if wanted.agent or wanted.model or wanted.host or wanted.tag:
                wanted = with_listed_names(wanted, choices(connection, None))
            shown, states = page(connection, wanted), live(connection)
            if "running" not in states.values():
                return shown, states
    # there is no database yet, it has an older schema, or only an engine can tell whether a running run's process is alive
    return attribute("moot.cli.context.engine:list_with_engine")(settings, wanted)


def print_list(state: Path, page: Page[Conversation], live: Mapping[str, RunStatus], output: Lines) -> None:
    """Print a page of conversations as a table and store their list numbers."""
    rows = [
        [
            str(number),
            item.id[:13],
            item.shown_model or "-",
            age(item.updated_at, time.time()),
            str(item.message_count),
            status_of(item, live),
            item.title or "untitled",
        ]
        for number, item in enumerate(page.items, 1)
    ]
    head = HEAD
    if any(item.came_from or item.editor for item in page.items):
        head = (*HEAD[:-1], "FROM", HEAD[-1])
        rows = [[*row[:-1], item.came_from or item.editor or "-", row[-1]] for row, item in zip(rows, page.items, strict=True)]
    if any(item.host for item in page.items):
        head = (*head[:-1], "HOST", head[-1])
        rows = [[*row[:-1], item.host or "-", row[-1]] for row, item in zip(rows, page.items, strict=True)]
    if any(item.tags or item.pinned_at for item in page.items):
        head = (*head[:-1], "TAGS", head[-1])
        rows = [[*row[:-1], _marks(item), row[-1]] for row, item in zip(rows, page.items, strict=True)]
    print_table(output, head, rows)
    keep_numbers(state, [item.id for item in page.items])
    if page.next_cursor:
        output.say(f"moot: next page: --cursor {page.next_cursor}", "dim")


def _marks(conversation: Conversation) -> str:
    """Return the text of the column of tags, which also says if the conversation is pinned."""
    return " ".join((*(("(pinned)",) if conversation.pinned_at else ()), *conversation.tags)) or "-"
