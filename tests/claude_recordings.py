"""Recordings of Claude Code with their expected chunks. Run as a script to regenerate the chunks and the silent kinds."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from moot.convert.agents.claude_code import ClaudeCode, State
from moot.types.chunk import Chunk
from moot.types.exchange import Ended, Ending, ExchangeOptions

RECORDED = Path(__file__).parent / "recorded" / "agents" / "claude-code"
NAMES = sorted(path.name for path in RECORDED.glob("*.jsonl"))
TRANSLATOR = ClaudeCode()


def lines_of(name: str) -> list[bytes]:
    """The program's output, line by line."""
    found: list[bytes] = []
    for line in (RECORDED / name).read_bytes().splitlines(keepends=True):
        row = json.loads(line)
        if "dir" not in row:
            found.append(line)
        elif row["dir"] == "in":
            found.append(json.dumps(row["msg"], ensure_ascii=False).encode() + b"\n")
    return found


def translate(lines: list[bytes], ended: Ended = "eof", extra: dict[str, Any] | None = None) -> tuple[list[Chunk], Ending, State]:
    """The chunks, the ending, and the state before the end."""
    state = TRANSLATOR.open(ExchangeOptions("1.0", 1, (), extra or {}))
    chunks: list[Chunk] = []
    for line in lines:
        state, made = TRANSLATOR.feed(state, line)
        chunks += made
    json.dumps(state)
    closing, ending = TRANSLATOR.close(state, ended)
    return [*chunks, *closing], ending, state


def silent() -> list[str]:
    """The kinds of lines that give no chunk in any recording."""
    quiet, loud = set[str](), set[str]()
    for name in NAMES:
        state = TRANSLATOR.open(ExchangeOptions("1.0", 1))
        for line in lines_of(name):
            event = json.loads(line)
            kind = ".".join(str(word) for word in (event.get("type"), event.get("subtype")) if word)
            state, chunks = TRANSLATOR.feed(state, line)
            (loud if chunks else quiet).add(kind)
    return sorted(quiet - loud)


def expected(name: str) -> dict[str, Any]:
    """The expected file of a recording."""
    chunks, ending, _ = translate(lines_of(name))
    return {"chunks": chunks, "ending": ending.to_json()}


def main() -> None:
    written = {(RECORDED / name).with_suffix(".chunks.json"): expected(name) for name in NAMES} | {RECORDED / "silent.json": silent()}
    for path, value in written.items():
        text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"changed {path.relative_to(RECORDED.parents[3])}\n")


if __name__ == "__main__":
    main()
