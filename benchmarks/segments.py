"""The disk space that sealing saves, and its cost.

    python benchmarks/segments.py [--mb 200] [--rest 20] [--keep FOLDER]

Store the given number of MB of streams as runs (`answers.py`: recorded frames with text of installed documentation), and conversations with
mostly tool outputs (excerpts of files of this machine). Then seal everything and read it back. Sizes include
chunks, everything else in an event, and the index of segments.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import zstandard
from answers import answers, files, sentences

from moot.config.settings import Settings
from moot.convert.exchanges import Retranslation, translator_of
from moot.convert.fold import Folder
from moot.store import SqliteStore, open_store
from moot.store.log import segments
from moot.store.log.events import Events
from moot.types.chunk import FINISH_STEP, START_STEP, Chunk, finish, start, tool_output
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.exchange import Exchange, ExchangeOptions, end_body, start_body
from moot.types.ids import exchange_id, llm_key, new_id
from moot.types.message import Message, text_part
from moot.types.run import Run
from moot.types.store import CloseExchange, End, Fold, OpenExchange, Submission
from moot.types.usage import Usage

OPTIONS = ExchangeOptions("1.0", 1, (), {"provider": "recorded"})
BATCH = 64
RUNS = 6
"""Number of runs in a conversation."""


class Writing:
    """A writer of runs like those of the loop."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self._conversation: Conversation | None = None
        self._runs = 0
        self._at = 1_795_302_511_000_000
        self._chance = random.Random(4)

    @asynccontextmanager
    async def run(self, words: str) -> AsyncIterator[tuple[Run, Callable[[Iterable[Event]], Any]]]:
        if self._conversation is None or self._runs % RUNS == 0:
            self._conversation = Conversation(new_id(), directory="/")
        self._runs += 1
        asked = Message(new_id(), "user", (text_part(words),))
        accepted = await self.store.records.submit(
            Submission(Run(new_id(), self._conversation.id, new_id()), self._conversation, asked, owner="b")
        )
        run, fence, folder = accepted.run, accepted.fence, Folder()
        self._conversation = accepted.conversation
        assert fence is not None

        async def add(events: Iterable[Event], *changes: Any) -> None:
            waiting: list[Event] = []
            for event in events:
                self._at += self._chance.choice((0, 0, 0, 25_000 + self._chance.randrange(4000)))
                folder.feed_all(event.chunks)
                waiting.append(event._replace(run=run.id, at=self._at))
                if len(waiting) == BATCH:
                    await self.store.log.append(run.conversation, waiting, fence=fence)
                    waiting = []
            await self.store.log.append(run.conversation, waiting, fence=fence, changes=changes)

        await add([Event("chunks", (start(run.message, {}),), phase="start", key="run")])
        yield run, add
        last = Event("chunks", (FINISH_STEP, finish("stop")), phase="end", key="run", body={"status": "finished"})
        folder.feed_all(last.chunks)
        await self.store.log.append(
            run.conversation,
            [last._replace(run=run.id, at=self._at)],
            fence=fence,
            changes=[Fold(folder.parts(), folder.metadata(), "finished"), End("finished", usage=Usage(10, 10))],
        )

    async def streamed(self, converter: str, given: Sequence[bytes], words: str) -> None:
        translator = translator_of(converter)
        assert translator is not None
        again = Retranslation(translator, OPTIONS)
        async with self.run(words) as (run, add):
            id, key = exchange_id(run.id, 1, 0), llm_key(1, 0)
            name = f"{translator.name}/{translator.version}"
            exchange = Exchange(id, run.id, run.conversation, "answer", converter, name, "p", "m", OPTIONS, {})
            opened = Event("exchange", (START_STEP,), None, None, id, "start", key, start_body(exchange, "m@p"))
            await add([opened], OpenExchange(exchange))
            await add(Event("raw", again.feed(frame), frame, None, id) for frame in given)
            chunks, ending = again.close("eof")
            await add(
                [Event("exchange", chunks, None, None, id, "end", key, end_body(ending, "eof", None, None))], CloseExchange(id, "eof")
            )

    async def worked(self, outputs: Sequence[str], words: str) -> None:
        async with self.run(words) as (_, add):
            for number, text in enumerate(outputs):
                key, value = f"tool:1.{number}.0", {"text": text, "lines": text.count("\n")}
                call: Chunk = {
                    "type": "tool-input-available",
                    "toolCallId": f"call_{number}",
                    "toolName": "read_file",
                    "input": {"path": f"{number}.py"},
                }
                body = {"tool": "read_file", "arguments": {"path": f"{number}.py"}}
                await add([Event("chunks", (call,)), Event("journal", phase="start", key=key, body=body)])
                output = Event(
                    "chunks",
                    (tool_output(f"call_{number}", value),),
                    phase="end",
                    key=key,
                    body={"value": {"error": False, "value": value}},
                )
                await add([output])


async def filled(home: Path, size: int, rest: int) -> tuple[int, int]:
    """Fill a store. Return the bytes of raw data, and the number of the first conversation with mostly tool outputs."""
    store = await open_store(Settings(home))
    writing, raw, asked = Writing(store), 0, sentences()
    for shape, frames in answers(size):
        raw += sum(map(len, frames))
        await writing.streamed(shape.converter, frames, next(asked))
    first = await store._reader.read(lambda connection: connection.execute("SELECT max(no) + 1 FROM conversation").fetchone()[0])
    writing, given, texts = Writing(store), 0, files(12_000)
    while given < rest:
        outputs = [next(texts) for _ in range(12)]
        given += sum(map(len, outputs))
        await writing.worked(outputs, next(asked))
    await store.close()
    return raw, first


# ── measuring ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

SIZES = """
    SELECT count(*), sum(length(chunks)), sum(coalesce(length(raw), 0)), sum(coalesce(length(body), 0)),
        sum(coalesce(length(exchange), 0) + length(kind) + coalesce(length(key), 0) + coalesce(length(phase), 0) + 8 + 8 + 8)
    FROM event WHERE id >> 32 >= ? AND id >> 32 < ?
"""
SEALED = "SELECT sum(length(data) + length(frames)) FROM segment WHERE conversation >= ? AND conversation < ?"
SAID = """
    SELECT sum(json_extract(f.value, '$[5]')) FROM segment AS s JOIN json_each(CAST(s.frames AS TEXT)) AS f
    WHERE s.conversation >= ? AND s.conversation < ?
"""
LAST = 1 << 30


def plainly(connection: Any, first: int, last: int) -> int:
    """Return the size of the same events if rows are compressed only with zstd, in frames of 512."""
    size, compressor = 0, zstandard.ZstdCompressor(level=12)
    rows = connection.execute("SELECT * FROM event WHERE id >> 32 >= ? AND id >> 32 < ? ORDER BY id", (first, last))
    while some := rows.fetchmany(512):
        fields = [field if isinstance(field, bytes) else str(field).encode() for row in some for field in row if field is not None]
        size += len(compressor.compress(b"".join(fields)))
    return size


def decoded(connection: Any, first: int, last: int) -> tuple[float, int]:
    """Read all rows of the segments. Return the CPU seconds and the size of the rows in bytes."""
    size = connection.execute(SAID, (first, last)).fetchone()[0]
    heads = connection.execute(
        "SELECT conversation, sealed_through FROM log_head WHERE conversation >= ? AND conversation < ?", (first, last)
    ).fetchall()
    cpu, count = time.process_time(), 0
    for conversation, through in heads:
        for begin in range(0, through, 2048):
            count += len(list(segments.rows(connection, conversation, begin, min(begin + 2048, through))))
    cpu = time.process_time() - cpu
    assert count == sum(through for _, through in heads)
    return cpu, size


def paged(connection: Any, first: int, last: int) -> tuple[float, int]:
    """Read all events with their chunks. Return the CPU seconds and the number of events."""
    events, count, cpu = Events(), 0, time.process_time()
    for (conversation,) in connection.execute("SELECT no FROM conversation WHERE no >= ? AND no < ?", (first, last)).fetchall():
        after = 0
        while page := events.page(connection, conversation, after, 512):
            count += len(page)
            after = page[-1].seq
    return time.process_time() - cpu, count


def looked(connection: Any, times: int) -> list[float]:
    """Return the times in ms to read one random event with an empty cache."""
    chance, took = random.Random(6), []
    heads = connection.execute("SELECT conversation, next_seq - 1 FROM log_head WHERE next_seq > 1").fetchall()
    for _ in range(times):
        conversation, last = chance.choice(heads)
        events, began = Events(), time.perf_counter()
        (found,) = events.page(connection, conversation, chance.randrange(last), 1)
        took.append((time.perf_counter() - began) * 1e3)
        assert found.kind != "damaged"
    return took


async def appended(store: SqliteStore, stop: asyncio.Event) -> list[float]:
    """Append 200 events per second until `stop` is set. Return the times in ms that each append waited."""
    id = (await store.conversations.create(Conversation(new_id()))).id
    took: list[float] = []
    while not stop.is_set():
        began = time.perf_counter()
        await store.log.append(id, [Event("meta", (), b'data: {"delta": "word"}\n\n', body={"n": 1}, at=1 << 60)])
        took.append((time.perf_counter() - began) * 1e3)
        await asyncio.sleep(0.005)
    return took


async def sealed(store: SqliteStore, share: float) -> tuple[float, float, int, list[float]]:
    """Seal everything. Return CPU seconds, wall seconds, bytes of events, and the waits of concurrent appends."""
    stop = asyncio.Event()
    appending = asyncio.create_task(appended(store, stop))
    cpu, wall, before = time.process_time(), time.perf_counter(), 0
    async for done in store.upkeep.seal(quiet=1.0, share=share, seconds=10.0 if share < 1 else None):
        before = done.before
    took = time.process_time() - cpu, time.perf_counter() - wall
    stop.set()
    return *took, before, await appending


def waits(name: str, took: list[float]) -> None:
    cuts = quantiles(took, n=100)
    print(f"{name:44} median {median(took):6.2f} ms   99 of 100 {cuts[98]:6.2f} ms   longest {max(took):6.2f} ms   ({len(took)} appends)")


async def measured(home: Path, first: int) -> None:
    size_of = (home / "data" / "moot.db").stat().st_size
    store = await open_store(Settings(home))
    ask: Callable[..., Any] = store._reader.read
    kinds = (("token streams", 0, first, "at most 10 %"), ("the rest", first, LAST, "at most 33 %"))
    before = [await ask(lambda c, a=a, b=b: c.execute(SIZES, (a, b)).fetchone()) for _, a, b, _ in kinds]
    plain = [await ask(lambda c, a=a, b=b: plainly(c, a, b)) for _, a, b, _ in kinds]
    rows_cpu, rows_count = await ask(lambda c: paged(c, 0, first))
    rows_looked = await ask(lambda c: looked(c, 300))
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(4, stop.set)
    alone = await appended(store, stop)
    *_, slow = await sealed(store, 0.1)
    cpu, wall, done, fast = await sealed(store, 1.0)
    print(f"\n{'':16}{'events':>10}{'raw MB':>9}{'all MB':>9}{'sealed MB':>11}{'of raw':>8}{'of all':>8}{'B/event':>9}{'zstd alone':>12}")
    for (name, a, b, goal), (count, chunks, raw, body, others), alike in zip(kinds, before, plain, strict=True):
        stored = (await ask(lambda c, a=a, b=b: c.execute(SEALED, (a, b)).fetchone()))[0]
        whole = chunks + raw + body + others
        of_raw = f"{stored / raw:8.1%}" if raw else f"{'':8}"
        print(
            f"{name:16}{count:10,}{raw / 1e6:9.1f}{whole / 1e6:9.1f}{stored / 1e6:11.2f}{of_raw}{stored / whole:8.1%}{stored / count:9.1f}"
            f"{alike / whole:12.1%}   {goal}"
        )
    print(
        f"\nsealing, nothing else to do: {done / cpu / 1e6:.0f} MB of events in a second of CPU, {done / wall / 1e6:.0f} MB/s by the clock"
    )
    for name, a, b, _ in kinds:
        took, size = await ask(lambda c, a=a, b=b: decoded(c, a, b))
        print(f"{'reading back, ' + name:44} {size / took / 1e6:6.0f} MB/s of chunks, raw and bodies, decoded to rows   at least 200")
    took, count = await ask(lambda c: paged(c, 0, first))
    print(f"{'events with their chunks read':44} {count / took:10,.0f}/s sealed   {rows_count / rows_cpu:10,.0f}/s from rows")
    sealed_looked = await ask(lambda c: looked(c, 300))
    print(f"{'one event somewhere':44} {median(sealed_looked):6.2f} ms sealed   {median(rows_looked):6.2f} ms from rows")
    waits("an append without sealing", alone)
    waits("an append while a tenth of the time is sealed", slow)
    waits("an append while `moot store compact` seals", fast)
    async for _ in store.upkeep.give_back():
        pass
    await store.close()
    print(f"database on disk: {size_of / 1e6:.1f} MB with rows, {(home / 'data' / 'moot.db').stat().st_size / 1e6:.1f} MB sealed")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mb", type=float, default=200)
    options.add_argument("--rest", type=float, default=20)
    options.add_argument("--keep", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = given.keep or Path(folder)
        began = time.perf_counter()
        raw, first = asyncio.run(filled(home, int(given.mb * 1e6), int(given.rest * 1e6)))
        print(f"{raw / 1e6:.0f} MB of streams in {first - 1} conversations, written in {time.perf_counter() - began:.0f} s")
        asyncio.run(measured(home, first))


if __name__ == "__main__":
    main()
