"""The cost of the vendor's raw bytes: translating them, storing them, and verifying everything against them.

    python benchmarks/raw.py [--rows 20000] [--reps 5]

Three tables. Converters: CPU per chunk and per kB of raw for the recordings in `tests/recorded`, each translated repeatedly for
0.15 seconds. Storing: CPU and bytes on disk of an event with its raw bytes, compared with the same event without them. Verifying: MB of
raw that `moot verify` checks per second of CPU, in a log written by the store itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from moot.config.settings import Settings
from moot.convert.dialects.openai_chat_stream import OpenAIStream
from moot.convert.exchanges import Retranslation, translator_of
from moot.convert.fold import Folder
from moot.providers.http import shape_of
from moot.store import SqliteStore, open_store
from moot.types.canonical import JsonObject
from moot.types.chunk import FINISH_STEP, START_STEP, Chunk, finish, start
from moot.types.conversation import Conversation
from moot.types.event import SENT, Event
from moot.types.exchange import Exchange, ExchangeOptions, end_body
from moot.types.ids import exchange_id, llm_key, new_id
from moot.types.message import Message, text_part
from moot.types.run import Run
from moot.types.store import CloseExchange, End, Fence, Fold, OpenExchange, Submission

RECORDED = Path(__file__).parents[1] / "tests" / "recorded"
OPTIONS = ExchangeOptions("1.0", 1, (), {"provider": "recorded"})
THEIRS = {"claude-code": ("claude-stream-json", "claude-code"), "codex": ("codex-exec", "codex-app-server")}
"""Folder of recordings that don't name their converter → the converter of its headless streams, and that of its wire captures."""
SOME_TIME = 0.15
"""CPU seconds for which a recording is translated repeatedly."""
BATCH = 32
"""Events per append, as in a typical socket read."""

Line = tuple[bytes, bool]
"""A frame, and True if moot sent it."""


# ── converters ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def recordings() -> Iterator[tuple[str, list[Line]]]:
    """Yield the converter and the frames of each recording."""
    for told in sorted(RECORDED.rglob("*.chunks.json")):
        base = told.name.removesuffix(".chunks.json")
        (path,) = [file for file in told.parent.glob(f"{base}.*") if file.suffix in (".sse", ".ndjson", ".jsonl")]
        converter = str(json.loads(told.read_bytes()).get("converter") or THEIRS[told.parent.name][".wire." in told.name])
        if path.suffix in (".sse", ".ndjson"):
            yield converter, [(frame, False) for frame in frames_of(told.parent.name, path.read_bytes())]
        else:
            yield converter, [line_of(line) for line in path.read_bytes().splitlines(keepends=True)]


def frames_of(dialect: str, body: bytes) -> list[bytes]:
    shape = shape_of(dialect)
    assert shape is not None
    cutter = shape.frames()
    whole = list(cutter.feed(body))
    rest = cutter.rest()
    return whole if rest is None else [*whole, rest]


def line_of(line: bytes) -> Line:
    """Parse a line of a headless stream, or of a wire capture `{dir, t, msg}`."""
    value = json.loads(line)
    if isinstance(value, dict) and "dir" in value and "msg" in value:
        return orjson.dumps(value["msg"]) + b"\n", value["dir"] == "out"
    return line, False


def translated(converter: str, lines: list[Line]) -> int:
    """Translate the frames and return the number of chunks."""
    translator = translator_of(converter)
    assert translator is not None
    again = Retranslation(translator, OPTIONS)
    return sum([len(again.feed(raw, SENT if ours else None)) for raw, ours in lines]) + len(again.close("eof")[0])


def converters() -> None:
    spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0, 0, 0])
    for converter, lines in recordings():
        if translator_of(converter) is None or not translated(converter, lines):
            continue
        times, began = 0, time.process_time()
        while (took := time.process_time() - began) < SOME_TIME:
            chunks = translated(converter, lines)
            times += 1
        totals = spent[converter]
        for at, value in enumerate((took / times, chunks, sum(len(raw) for raw, _ in lines), len(lines))):
            totals[at] += value
    print(f"{'converter':26} {'chunks':>7} {'kB':>7} {'µs/frame':>9} {'µs/chunk':>9} {'µs/kB':>7}")
    for converter, (seconds, chunks, size, frames) in sorted(spent.items()):
        micro = seconds * 1e6
        print(f"{converter:26} {chunks:7,.0f} {size / 1e3:7,.1f} {micro / frames:9.2f} {micro / chunks:9.2f} {micro / size * 1e3:7.2f}")


# ── storing ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def frame(words: str, extra: int) -> bytes:
    """Return a frame as an endpoint sends it. `extra` adds padding, for endpoints with larger frames."""
    padding = f',"pad":"{"x" * extra}"' if extra else ""
    choice = f'"choices":[{{"index":0,"delta":{{"content":{json.dumps(words)}}},"finish_reason":null}}]'
    return f'data: {{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1795302511,"model":"m"{padding},{choice}}}\n\n'.encode()


async def lived(home: Path, rows: int, *, raw: bool, extra: int = 0) -> tuple[float, float]:
    """Store a run of `rows` streamed chunks. Return CPU in µs per event, and bytes on disk per event."""
    store = await open_store(Settings(home))
    conversation = Conversation(new_id(), directory="/")
    run = Run(new_id(), conversation.id, new_id())
    accepted = await store.records.submit(Submission(run, conversation, Message(new_id(), "user", (text_part("continue"),)), owner="bench"))
    fence = accepted.fence
    assert fence is not None
    translator, id = OpenAIStream(), exchange_id(run.id, 1, 0)
    again = Retranslation(translator, OPTIONS)
    exchange = Exchange(
        id, run.id, conversation.id, "answer", "openai-chat", f"{translator.name}/{translator.version}", "p", "m", OPTIONS, {}
    )
    chunks = (start(run.message, {}),)
    await store.log.append(fence.conversation, [Event("chunks", chunks, run=run.id, phase="start", key="run")], fence=fence)
    head = Event("exchange", (START_STEP,), None, run.id, id, "start", llm_key(1, 0), {"model": "m@p"})
    await store.log.append(fence.conversation, [head], fence=fence, changes=[OpenExchange(exchange)])
    frames = [frame(f" word{number % 977}", extra) for number in range(rows)]
    # translate before the clock starts: only storing is measured, with the same chunks both times
    events = [Event("raw", again.feed(one), one if raw else b"", run.id, id, at=1_795_302_511_000_000) for one in frames]
    cpu = time.process_time()
    for begin in range(0, rows, BATCH):
        await store.log.append(fence.conversation, events[begin : begin + BATCH], fence=fence)
    cpu = time.process_time() - cpu
    if raw:
        await finished(store, fence, run, [*chunks, START_STEP, *(piece for event in events for piece in event.chunks)], again)
    await store.close()
    return cpu / rows * 1e6, (home / "data" / "moot.db").stat().st_size / rows


async def finished(store: SqliteStore, fence: Fence, run: Run, said: list[Chunk], again: Retranslation) -> None:
    """End the run as the loop does, so that all of it can be verified."""
    closing, ending = again.close("eof")
    id, last = exchange_id(run.id, 1, 0), (FINISH_STEP, finish("stop"))
    end = Event("exchange", closing, None, run.id, id, "end", llm_key(1, 0), end_body(ending, "eof", None, None))
    await store.log.append(fence.conversation, [end], fence=fence, changes=[CloseExchange(id, "eof")])
    folder = Folder()
    folder.feed_all((*said, *closing, *last))
    changes = [Fold(folder.parts(), folder.metadata(), "finished"), End("finished", usage=ending.usage)]
    body: JsonObject = {"status": "finished"}
    await store.log.append(
        fence.conversation, [Event("chunks", last, None, run.id, None, "end", "run", body)], fence=fence, changes=changes
    )


def keeping(rows: int, reps: int) -> None:
    print(f"\n{'':24} {'CPU µs/event':>13} {'without raw':>12} {'raw adds':>9} {'bytes/event':>12} {'without raw':>12}")
    for name, extra in (("a frame of 180 bytes", 0), ("a frame of 400 bytes", 220)):
        costs: dict[bool, list[float]] = {True: [], False: []}
        sizes: dict[bool, float] = {}
        for _ in range(reps):
            for raw in (True, False):
                with tempfile.TemporaryDirectory() as folder:
                    cost, sizes[raw] = asyncio.run(lived(Path(folder), rows, raw=raw, extra=extra))
                    costs[raw].append(cost)
        with_raw, without = median(costs[True]), median(costs[False])
        added = median(one / other - 1 for one, other in zip(costs[True], costs[False], strict=True))
        print(f"{name:24} {with_raw:13.2f} {without:12.2f} {added:+9.0%} {sizes[True]:12.0f} {sizes[False]:12.0f}   at most +50 %")


# ── verifying ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def verified(home: Path) -> tuple[float, Any]:
    """Return the CPU seconds of one verification, and its receipt."""
    store = await open_store(Settings(home))
    cpu = time.process_time()
    receipts = [receipt async for receipt in store.verifier.verify(translator_of)]
    cpu = time.process_time() - cpu
    await store.close()
    return cpu, receipts[-1]


def verifying(rows: int, reps: int) -> None:
    print(f"\n{'moot verify':24} {'MB of raw/s':>12} {'events/s':>10} {'µs/event':>9}")
    for name, extra in (("frames of 180 bytes", 0), ("frames of 400 bytes", 220)):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(lived(Path(folder), rows, raw=True, extra=extra))
            looks = [asyncio.run(verified(Path(folder))) for _ in range(reps)]
        receipt = looks[0][1]
        assert not receipt.damages and receipt.rebuilt == 1 and receipt.raw_events == rows, receipt.damages
        cpu = median(look[0] for look in looks)
        print(f"{name:24} {receipt.raw_bytes / cpu / 1e6:12.1f} {receipt.events / cpu:10,.0f} {cpu / receipt.events * 1e6:9.2f}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--reps", type=int, default=5)
    given = options.parse_args()
    converters()
    keeping(given.rows, given.reps)
    verifying(given.rows, given.reps)


if __name__ == "__main__":
    main()
