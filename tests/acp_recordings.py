"""Recorded ACP and headless streams with their expected translations. Run as a script to regenerate the expected files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from moot.convert.agents.acp import Acp
from moot.convert.agents.captures import Acpx
from moot.convert.agents.headless import GeminiStream, OpencodeRun
from moot.convert.fold import fold_parts
from moot.types.chunk import FINISH_REASONS, Chunk, problems
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.message import is_settled, is_tool

FOLDER = Path(__file__).parent / "recorded" / "agents"
OPTIONS = ExchangeOptions("1.0", 1)
SILENT = FOLDER / "acp-silent.json"
"""The kinds of lines that give no chunk in any recording."""

Line = tuple[bool, bytes]
"""True if moot sent the line, and its bytes."""


def paths() -> list[Path]:
    return [
        *sorted((FOLDER / "acp").glob("*.jsonl")),
        *sorted((FOLDER / "opencode").glob("*.jsonl")),
        *sorted((FOLDER / "gemini-cli").glob("*.jsonl")),
    ]


def translator(path: Path) -> Any:
    if path.name.startswith("acpx"):
        return Acpx()
    return {"acp": Acp, "opencode": OpencodeRun, "gemini-cli": GeminiStream}[path.parent.name]()


def lines(path: Path) -> list[Line]:
    """Return the lines of the pipe; lines of a wire capture `{dir, t, msg}` are restored."""
    if not path.name.endswith(".wire.jsonl"):
        return [(False, line) for line in path.read_bytes().splitlines(keepends=True)]
    wrapped = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    return [(str(line["dir"]).startswith("client"), orjson.dumps(line["msg"]) + b"\n") for line in wrapped]


def fold(made: Any, given: list[Line], ended: Ended = "eof") -> tuple[list[tuple[Chunk, ...]], tuple[Chunk, ...], Ending, Any]:
    state = made.open(OPTIONS)
    events: list[tuple[Chunk, ...]] = []
    for ours, line in given:
        state, chunks = (made.said if ours else made.feed)(state, line)
        events.append(chunks)
    closing, ending = made.close(state, ended)
    return events, closing, ending, state


def chunks_of(made: Any, given: list[Line], ended: Ended = "eof") -> tuple[list[Chunk], Ending]:
    events, closing, ending, _ = fold(made, given, ended)
    return [chunk for event in events for chunk in event] + list(closing), ending


def kind(ours: bool, line: bytes) -> str:
    """Return the kind of line, as used by the list of silent kinds."""
    message = orjson.loads(line)
    if "jsonrpc" not in message:
        role = f" {message['role']}" if "role" in message else ""
        return f"{message.get('type')}{role}"
    side = "client" if ours else "agent"
    method = message.get("method")
    if method == "session/update":
        return f"{side}: {method} {message['params']['update']['sessionUpdate']}"
    if method is None:
        return f"{side}: answer" if "error" not in message else f"{side}: error"
    return f"{side}: {method}"


def check(chunks: list[Chunk], ending: Ending) -> None:
    """Check what must be true for every answer."""
    assert [found for chunk in chunks for found in problems(chunk, 7)] == []
    for part in fold_parts((), chunks):
        assert part.get("state") not in ("streaming", "input-streaming"), part
        assert not is_tool(part) or is_settled(part), part
    depth = 0
    for chunk in chunks:
        depth += (chunk["type"] == "start-step") - (chunk["type"] == "finish-step")
        assert depth in (0, 1)
    assert depth == 0
    outputs = [str(chunk["toolCallId"]) for chunk in chunks if _is_output(chunk)]
    assert len(outputs) == len(set(outputs)), "a call has two outputs"
    assert ending.finish_reason in FINISH_REASONS
    json.dumps([*chunks, ending.to_json()], allow_nan=False)  # integers of any size


def _is_output(chunk: Chunk) -> bool:
    return str(chunk["type"]).startswith(("tool-output", "tool-input-error")) and not chunk.get("preliminary")


def silent() -> dict[str, list[str]]:
    """The kinds that never gave a chunk, by converter."""
    heard: dict[str, dict[str, bool]] = {}
    for path in paths():
        made, given = translator(path), lines(path)
        kinds = heard.setdefault(made.name, {})
        for (ours, line), chunks in zip(given, fold(made, given)[0], strict=True):
            kinds[kind(ours, line)] = kinds.get(kind(ours, line), False) or bool(chunks)
    return {name: sorted(kind for kind, spoke in kinds.items() if not spoke) for name, kinds in sorted(heard.items())}


def expected(path: Path) -> dict[str, Any]:
    """Return the chunks of each line that gives some, those of the close, and the ending."""
    made = translator(path)
    events, closing, ending, _ = fold(made, lines(path))
    said = {str(number): list(chunks) for number, chunks in enumerate(events, 1) if chunks}
    return {"converter": f"{made.name}/{made.version}", "lines": said, "close": list(closing), "ending": ending.to_json()}


def snapshots() -> Iterator[tuple[Path, bytes]]:
    for path in paths():
        yield path.with_suffix(".chunks.json"), orjson.dumps(expected(path), option=orjson.OPT_INDENT_2) + b"\n"
    yield SILENT, orjson.dumps(silent(), option=orjson.OPT_INDENT_2) + b"\n"


def main() -> None:
    for path, content in snapshots():
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
            sys.stdout.write(f"changed {path.relative_to(FOLDER)}\n")


if __name__ == "__main__":
    main()
