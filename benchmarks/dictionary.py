"""Train the dictionary that compresses sealed events: `python benchmarks/dictionary.py NAME [--size BYTES]`.

It is trained with the recordings in `tests/recorded`, in which the text is replaced by text of moot's docs, and with the events that moot
adds around them. The same files give the same bytes. A released dictionary is never replaced: a later one gets another
name, in `moot.store.log.frames`.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import zstandard
from answers import RECORDED, SHAPES, answer, recorded_frames, tokens

from moot.convert.exchanges import Retranslation, translator_of
from moot.store.log import frames
from moot.store.log.rows import Row, checked
from moot.store.rows import message_body
from moot.types.canonical import JsonObject, dumps
from moot.types.chunk import FINISH_STEP, START_STEP, Chunk, finish, start, tool_output
from moot.types.exchange import Ending, Exchange, ExchangeOptions, end_body, start_body
from moot.types.message import Message, text_part
from moot.types.usage import Usage

ROOT = Path(__file__).parents[1]
DICTIONARIES = ROOT / "src" / "moot" / "store" / "dictionaries"
GUIDES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
SOURCES = sorted((ROOT / "src" / "moot" / "tools").glob("*.py"))
RUN = "0192f5a0-0000-7000-8000-000000000000"
OPTIONS = ExchangeOptions("1.0", 1, (), {})
PIECES = 500


class Log:
    """Builder of a log with events as a run writes them."""

    def __init__(self, chance: random.Random) -> None:
        self.rows: list[Row] = []
        self._chance = chance
        self._at = 1_795_302_511_000_000

    def add(self, kind: str, chunks: Sequence[Chunk] = (), raw: bytes | None = None, **more: object) -> None:
        self._at += self._chance.choice((0, 0, 25_000, 31_417))
        body = more.get("body")
        exchange, phase, key = (str(more[name]) if name in more else None for name in ("exchange", "phase", "key"))
        said = None if body is None else dumps(body)  # type: ignore[arg-type]
        self.rows.append(checked(Row(len(self.rows) + 1, self._at, 1, exchange, kind, dumps(chunks), raw, phase, key, said, b"")))

    def run(self, converter: str, given: Sequence[bytes], words: str, output: str) -> None:
        translator = translator_of(converter)
        assert translator is not None
        again = Retranslation(translator, OPTIONS)
        exchange = Exchange(f"{RUN}:1.0", RUN, RUN, "answer", converter, f"{converter}/1", "provider", "model", OPTIONS, {"pieces": []})
        self.add("message", body=message_body(Message(RUN, "user", (text_part(words),))))
        self.add("tree", body={"op": "answer", "message": RUN, "parent": RUN, "run": RUN})
        self.add("chunks", (start(RUN, {}),), phase="start", key="run")
        self.add("exchange", (START_STEP,), exchange=":1.0", phase="start", key="llm:1.0", body=start_body(exchange, "model@provider"))
        for frame in given:
            self.add("raw", again.feed(frame), frame, exchange=":1.0")
        chunks, _ = again.close("eof")
        ended = end_body(Ending("stop", "stop", Usage(1200, 300, 1024, 0, 0)), "eof", None, None)
        self.add("exchange", chunks, exchange=":1.0", phase="end", key="llm:1.0", body=ended)
        value: JsonObject = {"text": output}
        self.add("journal", phase="start", key="tool:1.0.0", body={"tool": "read_file", "arguments": {"path": "src/main.py"}})
        self.add("chunks", (tool_output("call_1", value),), phase="end", key="tool:1.0.0", body={"value": {"error": False, "value": value}})
        self.add("chunks", (FINISH_STEP, finish("stop")), phase="end", key="run", body={"status": "finished", "finish_reason": "stop"})


def logs() -> Iterator[list[Row]]:
    chance = random.Random(1)
    guides = [path.read_text(encoding="utf-8") for path in GUIDES]
    sources = [path.read_text(encoding="utf-8") for path in SOURCES]
    for place, text in enumerate(guides):
        for shape in SHAPES:
            log = Log(chance)
            words = tokens(text)
            begin = chance.randrange(max(len(words) - PIECES, 1))
            log.run(shape.converter, answer(shape, words[begin : begin + PIECES], chance), text[:800], sources[place % len(sources)][:2000])
            yield log.rows
    for path in sorted(path for path in RECORDED.rglob("*") if path.suffix in (".sse", ".ndjson")):
        log = Log(chance)
        log.run(path.parent.name, recorded_frames(path), guides[0][:200], sources[0][:200])
        yield log.rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("name")
    options.add_argument("--size", type=int, default=48 << 10)
    given = options.parse_args()
    samples = [frames.pack(rows[begin : begin + 128]) for rows in logs() for begin in range(0, len(rows), 128)]
    trained = zstandard.train_dictionary(given.size, samples, level=12, dict_id=1, k=512, d=8, f=20, threads=0)
    DICTIONARIES.mkdir(exist_ok=True)
    path = DICTIONARIES / f"{given.name}.zstd"
    path.write_bytes(trained.as_bytes())
    print(f"{path}: {len(trained)} bytes out of {len(samples)} frames, {sum(map(len, samples)):,} bytes")


if __name__ == "__main__":
    main()
