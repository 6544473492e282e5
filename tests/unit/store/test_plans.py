"""Frequent queries use an index, so that their time does not grow with the store."""

from __future__ import annotations

from typing import LiteralString

import pytest

from conformance.stores import end, prompt
from moot.config.settings import Settings
from moot.store import SqliteStore
from moot.store.database.connection import Connection
from moot.store.database.reader import Reader
from moot.store.lookup import conversation_by
from moot.store.runs import SqliteRunReader
from moot.store.stats.reports import AnswerStats
from moot.store.tree.lists import ListFilter, choices, page
from moot.types.conversation import Conversation, ListChoices
from moot.types.ids import new_id
from moot.types.limits import Spending, SpendingQuery
from moot.types.run import OPEN, STARTED, RunStatus
from moot.types.usage import Usage

pytestmark = pytest.mark.anyio

QUEUED: frozenset[RunStatus] = frozenset({"queued"})


def plans(connection: Connection, statements: list[str]) -> list[str]:
    connection.set_trace_callback(None)
    asked = [statement for statement in statements if statement.startswith(("SELECT", "WITH"))]
    assert asked
    return [row[3] for statement in asked for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]


@pytest.mark.parametrize("name", ["id", "key", "client_id"])
async def test_lookups_of_an_owners_conversation_use_an_index(store: SqliteStore, settings: Settings, name: LiteralString):
    reader, statements = Reader(settings.database), list[str]()

    def looked_up(connection: Connection) -> list[str]:
        connection.set_trace_callback(statements.append)
        assert conversation_by(connection, name, "x", "somebody") is None
        return plans(connection, statements)

    assert {plan.split()[0] for plan in await reader.read(looked_up)} == {"SEARCH", "CORRELATED"}, "the grants are a subquery"
    await reader.close()


@pytest.mark.parametrize("owner", [None, "somebody"])
async def test_finding_open_runs_does_not_scan_ended_runs(store: SqliteStore, settings: Settings, owner: str | None):
    reader, statements = Reader(settings.database), list[str]()
    await reader.read(lambda connection: connection.set_trace_callback(statements.append))
    for statuses in (OPEN, STARTED, QUEUED):
        assert await SqliteRunReader(reader, owner).runs(statuses=statuses) == []
    found = await reader.read(lambda connection: plans(connection, statements))
    assert [plan for plan in found if " r " in plan or plan.endswith(" r")] == ["SEARCH r USING INDEX run_open (status=?)"] * 3
    await reader.close()


@pytest.mark.parametrize("query", [SpendingQuery("local", 1, "default", "reviewer"), SpendingQuery(run="x")])
async def test_sums_of_spending_read_only_runs_of_the_period(store: SqliteStore, settings: Settings, query: SpendingQuery):
    reader, statements = Reader(settings.database), list[str]()
    await reader.read(lambda connection: connection.set_trace_callback(statements.append))
    assert await AnswerStats(store._writer, reader).spent([query]) == [Spending()]  # pyright: ignore[reportPrivateUsage]
    found = await reader.read(lambda connection: plans(connection, statements))
    scans = {plan for plan in found if plan.startswith("SCAN ") and plan.split()[1] in ("c", "r", "m", "p", "k")}
    assert scans <= {"SCAN r USING INDEX run_started"}, "an index of the open runs"
    assert any("conversation_owner" in plan for plan in found) or query.run
    await reader.close()


async def test_damaged_metadata_does_not_stop_the_sum_of_spending(store: SqliteStore) -> None:
    stored: dict[str, bytes] = {}
    for metadata in (b'{"steps":[{"cost":3},{"cost":null}]}', b'{"steps":'):
        accepted = await store.records.submit(prompt())
        await end(store, accepted, usage=Usage(input=5, output=7), model="m@p")
        stored[accepted.run.id] = metadata
        changed = (metadata, accepted.run.message)
        await store._writer.write(lambda transaction, row=changed: transaction.execute("UPDATE message SET metadata = ? WHERE id = ?", row))
    (everything, *single) = await store.stats.spent([SpendingQuery("local", 1), *(SpendingQuery(run=id) for id in stored)])
    assert everything == Spending(3, 24, 2)
    assert [(one.cost, one.unpriced) for one in single] == [(3, 1), (0, 1)]


FILTERS = [
    (ListFilter(owner="local"), "conversation_owner"),
    (ListFilter(owner="local", called=False), "conversation_call"),
    (ListFilter(owner="local", agent="claude", called=False), "conversation_agent"),
    (ListFilter(agent="claude", since=5), "conversation_agent"),
    (ListFilter(owner="local", model="gpt-5", since=5, until=9), "conversation_model"),
    (ListFilter(owner="local", project="shop", archived=None), "conversation_project"),
    (ListFilter(owner="local", since=5, until=9), "conversation_owner"),
    (ListFilter(owner="local", until=9), "conversation_owner"),
    (ListFilter(owner="local", called=False, pinned=False), "conversation_call"),
    (ListFilter(owner="local", project="shop", pinned=True, archived=None), "conversation_pinned"),
    (ListFilter(owner="local", tag="draft", pinned=True), "conversation_pinned"),
    (ListFilter(owner="local", tag="draft", agent="claude", called=False, pinned=False), "conversation_tag_recent"),
    (ListFilter(tag="draft", since=5, cursor="c9-1"), "conversation_tag_recent"),
]


@pytest.mark.parametrize(("wanted", "index"), FILTERS)
async def test_the_list_of_conversations_is_read_in_order_from_an_index(
    store: SqliteStore, settings: Settings, wanted: ListFilter, index: str
):
    reader, statements = Reader(settings.database), list[str]()

    def listed(connection: Connection) -> list[str]:
        connection.set_trace_callback(statements.append)
        assert page(connection, wanted).items == []
        return plans(connection, statements)

    found = await reader.read(listed)
    assert f" USING INDEX {index}" in found[0] or f" USING COVERING INDEX {index}" in found[0]
    assert found[0].startswith("SEARCH ") or index == "conversation_pinned", "an index of few rows"
    assert ("updated_at>?" in found[0] or "active_at>?" in found[0]) == (wanted.since is not None), "earlier conversations are not read"
    assert not [plan for plan in found if "TEMP B-TREE" in plan]
    await reader.close()


async def test_the_choices_of_the_list_are_looked_up_in_indexes(store: SqliteStore, settings: Settings):
    for agent, host in (("reviewer", "laptop"), ("default", "")):
        await store.conversations.create(Conversation(new_id(), agent=agent, model="m@p", host=host, tags=("draft", "release")))
    reader, statements = Reader(settings.database), list[str]()

    def chosen(connection: Connection) -> list[str]:
        connection.set_trace_callback(statements.append)
        assert choices(connection, "local") == ListChoices(("default", "reviewer"), ("m@p",), ("laptop",), 0, None, ("draft", "release"))
        return plans(connection, statements)

    assert {plan.split()[0] for plan in await reader.read(chosen)} == {"SEARCH"}
    await reader.close()
