"""Homes with real runs, to be modified behind moot's back; and a converter with another rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from e2e.conftest import Stage
from moot.config.settings import Models, Permissions, Settings
from moot.convert.exchanges import translator_of
from moot.engine import open_engine
from moot.runtime.auxiliary import auxiliary_call
from moot.store.database.connection import sqlite
from moot.store.database.transaction import SEQ_BITS, checksum
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer
from moot.types.approval import Answer
from moot.types.message import Message, text_part
from moot.types.verify import Receipt
from verification import verify

DIALECTS = ("openai-chat", "anthropic")
PIECE = b"its pla"
"""Text that only one frame has."""
LARGE = b"\x89PNG" + bytes(range(256)) * 1200
"""Size of a blob that is stored in a file."""


def script(recorded: Recorded) -> Reply:
    said = recorded.user_text
    if said.endswith("hang"):
        return Reply(text="It goes on and on", hang_at=5)
    if said.endswith("break"):
        return Reply(text="This is a sentence that is cut.", cut_at_byte=700, chunk_size=4)
    if said.endswith("refuse"):
        return Reply(status=401, error="bad key")
    if said == "work" and "effect" not in str(recorded.json["messages"]):
        calls = [ToolCall("list_files", {"path": "."}, id="look"), ToolCall("shell", {"command": "echo effect"}, id="do")]
        return Reply(text="I look and do.", reasoning="First the files.", tool_calls=calls)
    return Reply(text="Everything is in its place, and so am I.")


async def live_through(home: Path, work: Path, dialect: str) -> None:
    """A conversation with calls, approvals, an interrupted answer, a refusal, a cancelled run, and an auxiliary call."""
    async with ScriptedServer(script) as server:
        mine = server.provider("mine", dialect)
        chosen = Settings(home, models=Models(main="scripted@mine"), providers={"mine": mine}, permissions=Permissions(mode="ask"))
        async with open_engine(chosen, seed=1) as engine:
            on = Stage(engine, server, work)
            first, _ = await on.ask("work", lambda _: Answer(True))
            into: dict[str, Any] = {"conversation": first.conversation}
            assert (await on.ask("break", **into))[0].status == "failed"
            assert (await on.ask("refuse", **into))[0].status == "failed"
            hanging = await on.submit("hang", **into)
            seen = hanging.seq
            while not any(
                chunk["type"] == "text-delta"
                for event in await engine.store.log.read(first.conversation, after=seen)
                for chunk in event.chunks
            ):
                await anyio.sleep(0.01)
            await engine.runs.cancel(hanging.run.id)
            await engine.runs.wait(hanging.run.id)
            await engine.store.blobs.put(LARGE, "image/png")
            await on.ask("say it", **into)
            question = Message("0", "user", (text_part("what is this?"),))
            await auxiliary_call(engine.runtime, first.conversation, "explain", "Explain.", [question], model="main")


class Store:
    """Return a copy of such a home, to be modified behind moot's back."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.database = sqlite.connect(str(home / "data" / "moot.db"), isolation_level=None)

    def events(self, where: str = "true") -> list[dict[str, Any]]:
        names = ("id", "kind", "chunks", "raw", "phase", "key", "body")
        found = self.database.execute(f"SELECT {', '.join(names)} FROM event WHERE {where} ORDER BY id").fetchall()
        return [dict(zip(names, row, strict=True)) for row in found]

    def streamed(self) -> dict[str, Any]:
        """Return an event with a part of the text of a complete answer."""
        return next(row for row in self.events("kind = 'raw'") if PIECE in row["raw"])

    def change(self, row: dict[str, Any], *, fixed: bool, **values: Any) -> None:
        """Write the columns; `fixed` also corrects the checksum."""
        now = {**row, **values}
        for name, value in values.items():
            self.database.execute(f"UPDATE event SET {name} = ? WHERE id = ?", (value, row["id"]))
        if fixed:
            self.fix(now)

    def fix(self, row: dict[str, Any]) -> None:
        seq = row["id"] & (1 << SEQ_BITS) - 1
        check = checksum(seq, row["kind"], row["chunks"], row["raw"], row["phase"], row["key"], row["body"])
        self.database.execute('UPDATE event SET "check" = ? WHERE id = ?', (check, row["id"]))

    def run(self, sql: str, *values: Any) -> None:
        assert self.database.execute(sql, values).rowcount == 1, sql

    async def verified(self, **more: Any) -> Receipt:
        self.database.close()
        return await verify(self.home, **more)

    async def kinds(self, **more: Any) -> set[str]:
        receipt = await self.verified(**more)
        assert receipt.damaged, "the change was not found"
        return {damage.kind for damage in receipt.damages}


class Altered:
    """A converter with one rule changed: text becomes upper case, or whatever `change` returns. Version 1 is the present one."""

    def __init__(
        self, inner: Any, version: int = 1, *, raises: bool = False, change: Callable[[str], str] = str.upper, calls: str = ""
    ) -> None:
        self._inner = inner
        self.name, self.version = inner.name, inner.version + version - 1
        self._raises, self._change, self._calls = raises, change, calls

    def open(self, options: Any) -> Any:
        return self._inner.open(options)

    def feed(self, state: Any, raw: bytes) -> Any:
        if self._raises:
            raise KeyError("rule")
        state, chunks = self._inner.feed(state, raw)
        return state, self._altered(chunks)

    def close(self, state: Any, ended: Any) -> Any:
        chunks, ending = self._inner.close(state, ended)
        return self._altered(chunks), ending

    def _altered(self, chunks: Any) -> Any:
        return tuple([self._one(dict(chunk)) for chunk in chunks])

    def _one(self, chunk: Any) -> Any:
        if chunk["type"] == "text-delta":
            chunk["delta"] = self._change(chunk["delta"])
        if self._calls and "toolCallId" in chunk:
            chunk["toolCallId"] = f"{self._calls}{chunk['toolCallId']}"
        return chunk


def named(dialect: str, version: int) -> str:
    """Return the name of a version of a dialect's converter, as it is stored. Version 1 is the present one."""
    present = translator_of(f"{dialect}/1")
    assert present is not None
    return f"{dialect}/{present.version + version - 1}"


def altered(**more: Any) -> Callable[[str], Any]:
    return lambda converter: Altered(translator_of(converter), **more)
