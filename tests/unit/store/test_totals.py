"""Usage totals equal a fresh count after any operation: answered, imported, grown, forked, moved, sealed, deleted, restored, redacted,
purged, given another agent and model, backed up and restored to a home."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from import_stage import take
from moot.config.settings import Settings
from moot.errors import Busy, NotFound
from moot.store import SqliteStore, open_store
from moot.store.maintenance.backup import restore
from moot.types.chunk import finish, start
from moot.types.conversation import Conversation, Project
from moot.types.event import Event
from moot.types.maintenance import REDACTION_MARK, Secret
from moot.types.message import Message, text_part
from moot.types.run import Run
from moot.types.store import End, Fold, Submission
from moot.types.usage import Usage
from talk_format import line

NUMBERS, NAMES = st.integers(0, 3), st.sampled_from(["amber", "birch"])
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), NUMBERS, NAMES, st.sampled_from(["finished", "failed"])),
        st.tuples(st.just("bring"), NUMBERS, NAMES),
        *(st.tuples(st.just(what), NUMBERS) for what in ("fork", "move", "rename", "delete", "undelete", "purge", "grow")),
        st.tuples(st.just("redact"), NAMES),
        *(st.tuples(st.just(what)) for what in ("seal", "count", "home")),
    ),
    max_size=14,
)
TABLES = ("answer", "answer_edit", "answer_tool", "answer_day", "answer_slot", "tool_day")


class Life:
    """A home and the operations on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.homes = itertools.count()
        self.lines: dict[int, list[bytes]] = {}
        self.store: SqliteStore

    async def begin(self) -> None:
        self.store = await open_store(Settings(self.folder / f"home{next(self.homes)}"))
        self.project = await self.store.projects.create(Project("other", name="other"))

    async def act(self, act: tuple[Any, ...]) -> None:
        ids = [one.id for deleted in (False, True) for one in (await self.store.conversations.list(deleted=deleted, archived=None)).items]
        match act:
            case ("say", number, name, status):
                await self.say(f"c{number}", name, status)
            case ("bring", number, name):
                at = 1_700_000_000_000 + number * 86_400_000
                lines = self.lines.setdefault(number, [line(talk=f"t{number}", title="T")])
                usage: Any = {"input": 5, "output": 2}
                lines.append(line(id=f"a{len(lines)}", role="assistant", text="one", at=at, usage=usage, model=f"{name}@theirs"))
                await self.bring(number)
            case ("grow", number) if number in self.lines and len(self.lines[number]) > 1:
                self.lines[number].append(self.lines[number][-1])
                await self.bring(number)
            case ("redact", name):
                await self.store.erasure.redact(Secret((name,)))
            case ("seal",):
                async for _ in self.store.upkeep.seal():
                    pass
            case ("count",):
                await self.store.stats.count()
            case ("home",):
                await self.move_out()
            case (what, number) if ids and what != "grow":
                with suppress(Busy, NotFound):  # it is deleted
                    await self.change(what, ids[number % len(ids)])
            case _:
                pass

    async def say(self, id: str, name: str, status: Any) -> None:
        try:
            conversation = await self.store.conversations.get(id)
        except NotFound:
            conversation = Conversation(id)
        count = next(COUNT)
        run = Run(f"r{count}", id, f"m{count}", agent=f"{name}-agent", model=f"{name}@ours")
        submission = Submission(run, conversation, Message(f"u{count}", "user", (text_part("go"),)), owner="o")
        try:
            accepted = await self.store.records.submit(submission)
        except (Busy, NotFound):  # it is deleted
            return
        run, body = accepted.run, {"call": "x", "tool": f"{name}-tool"}
        assert accepted.fence is not None
        usage = Usage(10, 3)
        steps: Any = [
            {"step": 1, "model": run.model, "usage": usage.to_json(), "cost": None, "ms": 7, "first_ms": 2},
            {"step": 2, "cost": 4},
        ]
        tool: Any = {"type": f"tool-{name}-tool", "toolCallId": "x", "state": "output-available", "input": {}, "output": {}}
        events = [
            Event("chunks", (start(run.message, {}),), phase="start", key="run"),
            Event("journal", phase="start", key="tool:1.0.0", body=body, at=1_000_000),
            Event("journal", phase="end", key="tool:1.0.0", body={"value": {}}, at=1_250_000),
            Event(
                "chunks",
                (
                    {"type": "tool-input-available", "toolCallId": "x", "toolName": f"{name}-tool", "input": {}},
                    {"type": "tool-output-available", "toolCallId": "x", "output": {}},
                    {"type": "message-metadata", "messageMetadata": {"steps": steps}},
                    finish("stop"),
                ),
                phase="end",
                key="run",
                body={"status": status},
            ),
        ]
        changes = [Fold((tool,), {"steps": steps}, status), End(status, usage=usage)]
        stamped = [event._replace(run=run.id) for event in events]
        await self.store.log.append(run.conversation, stamped, fence=accepted.fence, changes=changes)

    async def bring(self, number: int) -> None:
        path = self.folder / f"{number}.talk"
        path.write_bytes(b"".join(self.lines[number]))
        await take(self.store, path)

    async def change(self, what: str, id: str) -> None:
        conversations = self.store.conversations
        match what:
            case "fork":
                await self.store.tree.fork(id)
            case "move":
                there = (await conversations.get(id)).project == self.project.id
                await conversations.update(id, project="default" if there else self.project.id)
            case "rename":
                await conversations.update(id, agent=(f"agent{next(COUNT)}", "moot"), model=f"m{next(COUNT)}@p")
            case "purge":
                await self.store.erasure.purge([id])
            case _:
                await conversations.delete(id, restore=what == "undelete")

    async def move_out(self) -> None:
        made = await self.store.erasure.backups.back_up(self.folder / f"backup{next(COUNT)}")
        await self.store.close()
        home = self.folder / f"home{next(self.homes)}"
        restore(Path(made.path), home)
        self.store = await open_store(Settings(home))

    async def tables(self) -> dict[str, list[Any]]:
        await self.store.stats.count()
        read = self.store._reader.read
        return {name: sorted(await read(lambda c, name=name: c.execute(f"SELECT * FROM {name}").fetchall()), key=repr) for name in TABLES}

    async def judge(self) -> None:
        """Deleted rows leave no totals, and a recount gives the same ones."""
        before = await self.tables()

        def anew(transaction: Any) -> tuple[int, int]:
            transaction.execute("DELETE FROM answer_tool")
            transaction.execute("DELETE FROM answer")
            left = [transaction.row(f"SELECT count(*) FROM {name}")[0] for name in ("answer_day", "tool_day")]
            transaction.execute("INSERT OR IGNORE INTO to_count SELECT no FROM message WHERE role = 'assistant'")
            return left[0], left[1]

        assert await self.store._writer.write(anew) == (0, 0)
        assert await self.tables() == before
        whole, rows = await self.store.stats.usage(), await self.store.stats.usage(since=1)  # totals of days, and of the answers themselves
        assert (whole.total, whole.days, whole.models, whole.agents, whole.projects, whole.tools) == (
            *(rows.total, rows.days, rows.models, rows.agents, rows.projects, rows.tools),
        )


COUNT = itertools.count()


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(acts=ACTS)
@example([("say", 0, "amber", "finished"), ("count",), ("seal",), ("move", 0), ("bring", 1, "birch"), ("grow", 1), ("redact", "amber")])
@example([("bring", 0, "amber"), ("count",), ("rename", 0), ("bring", 0, "birch")])
@example([("bring", 0, "amber"), ("count",), ("delete", 0), ("fork", 0), ("undelete", 0), ("home",), ("purge", 0)])
def test_incremental_sums_equal_a_fresh_count(acts: list[tuple[Any, ...]]) -> None:
    async def lived() -> None:
        with tempfile.TemporaryDirectory() as folder:
            life = Life(Path(folder))
            await life.begin()
            try:
                for act in acts:
                    await life.act(act)
                await life.judge()
            finally:
                await life.store.close()

    asyncio.run(lived())


def test_times_of_tools_and_redacted_names_are_counted_again_from_a_sealed_log() -> None:
    async def lived() -> None:
        with tempfile.TemporaryDirectory() as folder:
            life = Life(Path(folder))
            await life.begin()
            await life.say("c0", "amber", "finished")
            before = (await life.store.stats.usage()).tools["amber-tool"]
            assert (before.calls, before.ms, before.timed) == (1, 250, 1)
            await life.act(("seal",))
            await life.act(("redact", "amber"))
            found = await life.store.stats.usage()
            assert found.tools == {f"{REDACTION_MARK}-tool": before} and set(found.models) == {f"{REDACTION_MARK}@ours"}
            await life.store.close()

    asyncio.run(lived())
