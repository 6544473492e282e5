"""Generate model answers as endpoints and agents stream them: the frames of a recording in `tests/recorded` with one delta repeated.

The text comes from documentation installed on this machine, without repeated sentences. Tool outputs are files of this machine.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from moot.types.ids import new_id

RECORDED = Path(__file__).parents[1] / "tests" / "recorded"
DOCUMENTATION = (Path("/usr/share/doc"), Path("/usr/share/common-licenses"), Path("/usr/share/perl"))
FILES = (Path("/usr/lib/python3"), Path("/usr/lib/python3.11"), Path("/usr/include"), Path("/etc"))
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|\n\s*\n")
TOKEN = re.compile(r"\s?[A-Za-z]{1,6}|[a-z]{1,4}|\s+|[^\sA-Za-z]{1,3}")
UUID = re.compile(rb'"uuid": ?"[-0-9a-f]{36}"')
LONG_ID = re.compile(rb'"(?:id|item_id|responseId|session_id|sessionId|api_message_id|messageId|threadId|turnId|itemId)": ?"([^"]{9,})"')


class Shape(NamedTuple):
    """A recording, and the name of the string in its frames that contains the streamed text."""

    converter: str
    path: str
    key: str
    weight: int


SHAPES = (
    Shape("anthropic", "anthropic/text.sse", "text", 4),
    Shape("anthropic", "anthropic/thinking.sse", "thinking", 2),
    Shape("anthropic", "anthropic/parallel-tools.sse", "partial_json", 1),
    Shape("openai-chat", "openai-chat/text.sse", "content", 3),
    Shape("openai-chat", "openai-chat/reasoning-content.sse", "reasoning_content", 2),
    Shape("openai-chat", "openai-chat/parallel-tools.sse", "arguments", 1),
    Shape("openai-responses", "openai-responses/text.sse", "delta", 3),
    Shape("google", "google/text.sse", "text", 2),
    Shape("ollama", "ollama/text.ndjson", "content", 2),
    Shape("claude-stream-json", "agents/claude-code/stream-json-list.jsonl", "text", 3),
)


def sentences() -> Iterator[str]:
    """Yield each paragraph of the installed documentation once."""
    seen: set[int] = set()
    paths = [path for folder in DOCUMENTATION for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    random.Random(1).shuffle(paths)
    for path in paths:
        if path.suffix not in (".gz", ".txt", ".md", ".html", ".pod", ".rst", "") or path.stat().st_size > 4 << 20:
            continue
        data = path.read_bytes()
        try:
            text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        except (OSError, UnicodeDecodeError, EOFError):
            continue
        for sentence in SENTENCE.split(re.sub(r"<[^>]{1,200}>", "", text)):
            if 20 < len(sentence) < 2000 and (known := hash(" ".join(sentence.split()))) not in seen:
                seen.add(known)
                yield sentence


def files(limit: int) -> Iterator[str]:
    """Yield outputs like those of a tool that reads or searches files: excerpts of text files."""
    paths = [path for folder in FILES for path in sorted(folder.rglob("*")) if path.suffix in (".py", ".h", ".conf", ".txt", ".rst", "")]
    chance = random.Random(2)
    chance.shuffle(paths)
    for path in paths:
        try:
            text = path.read_text() if path.is_file() and not path.is_symlink() else ""
        except (OSError, UnicodeDecodeError):
            continue
        size = chance.randint(200, limit)
        for begin in range(0, len(text), size):
            yield text[begin : begin + size]


def tokens(text: str) -> list[str]:
    """Split the text into pieces of about four characters, as models stream them."""
    return TOKEN.findall(text)


def recorded_frames(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return re.findall(rb"(?s).+?(?:\r?\n){2}|.+", data) if path.suffix == ".sse" else compact(data.splitlines(keepends=True))


def answer(shape: Shape, words: list[str], chance: random.Random) -> list[bytes]:
    """Return the frames of one answer with this text."""
    given = recorded_frames(RECORDED / shape.path)
    piece = re.compile(rb'("%s": ?)"(?:[^"\\]|\\.)+"' % shape.key.encode())
    typed = re.compile(rb"_delta|\.delta|\.chunk|candidates|\"done\":")
    places = [place for place, frame in enumerate(given) if piece.search(frame) and typed.search(frame) and b"message_start" not in frame]
    first = places[1] if len(places) > 1 else places[0]
    last = max(place for place in places if given[place].count(b'"') == given[first].count(b'"'))
    middle = piece.sub(lambda found: found[1] + b"\0", given[first])
    made = [*given[:first], *(middle.replace(b"\0", json.dumps(word, ensure_ascii=False).encode()) for word in words), *given[last + 1 :]]
    return varied(made, chance)


def varied(frames: list[bytes], chance: random.Random) -> list[bytes]:
    """Return the frames with different ids, counters, times and padding in each."""
    ids = {found[1] for frame in frames for found in LONG_ID.finditer(frame)}
    others = {id: id[:9] + re.sub(rb"[0-9a-z]", lambda _: b"%x" % chance.randrange(16), id[9:]) for id in ids}
    micros, made = 1_795_302_511_000_000, []
    for number, frame in enumerate(frames):
        for id, other in others.items():
            frame = frame.replace(id, other)
        micros += chance.randrange(9_000, 31_000)
        frame = UUID.sub(lambda _: b'"uuid":"%s"' % new_id().encode(), frame)
        frame = re.sub(rb'"sequence_number":\d+', b'"sequence_number":%d' % number, frame)
        frame = re.sub(rb'"obfuscation":"\w+"', lambda _: b'"obfuscation":"%s"' % padding(chance), frame)
        frame = re.sub(rb'("created_at":"[^".]+\.)\d{6}', lambda found, at=micros: found[1] + b"%06d" % (at % 1_000_000), frame)
        made.append(frame)
    return made


def padding(chance: random.Random) -> bytes:
    letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return bytes(chance.choice(letters) for _ in range(chance.randint(4, 14)))


def answers(size: int, seed: int = 3) -> Iterator[tuple[Shape, list[bytes]]]:
    """Yield answers of 150 to 1500 chunks until their frames have `size` bytes in total."""
    chance, given = random.Random(seed), 0
    weights = [shape.weight for shape in SHAPES]
    words: list[str] = []
    for sentence in sentences():
        words += tokens(sentence + " ")
        if len(words) < 1500:
            continue
        count = chance.randint(150, 1500)
        (shape,) = chance.choices(SHAPES, weights)
        frames = answer(shape, words[:count], chance)
        del words[:count]
        given += sum(map(len, frames))
        yield shape, frames
        if given >= size:
            return


def compact(lines: list[bytes]) -> list[bytes]:
    """Return JSON lines without a space after colons, as programs write them. Truncated lines are not changed."""
    return [orjson.dumps(json.loads(line)) + b"\n" if line.endswith(b"}\n") else line for line in lines]
