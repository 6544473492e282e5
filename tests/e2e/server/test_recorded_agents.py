"""The AI SDK's own clients, versions 7 and 6, read the chunks of recorded outside agents and build the same message as moot."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from e2e.server.test_clients import CLIENTS, node
from moot.convert.fold import fold_parts
from moot.convert.unfold import Version, for_version
from moot.types.chunk import Chunk

RECORDED = Path(__file__).parents[2] / "recorded" / "agents"
START: Chunk = {"type": "start", "messageId": "m1"}
FINISH: Chunk = {"type": "finish", "finishReason": "stop"}


def recordings() -> Iterator[tuple[str, list[Chunk]]]:
    """Yield the expected chunks of every recording of an agent."""
    for path in sorted(RECORDED.glob("*/*.chunks.json")):
        expected = json.loads(path.read_bytes())
        chunks = expected["chunks"] if "chunks" in expected else [*chain(*expected["lines"].values()), *expected["close"]]
        yield f"{path.parent.name}/{path.name}", chunks


@pytest.mark.parametrize("version", [7, 6])
def test_a_client_reads_every_recorded_answer_of_an_agent(version: Version) -> None:
    given = {name: [START, *chunks, FINISH] for name, chunks in recordings()}
    assert len(given) >= 40
    fitted = [{"name": name, "chunks": list(for_version(chunks, version))} for name, chunks in given.items()]
    command = [node(), str(CLIENTS / "read.mjs"), str(version)]
    ended = subprocess.run(command, input=json.dumps(fitted).encode(), cwd=CLIENTS, capture_output=True, timeout=60)
    assert ended.returncode == 0, ended.stderr[-2000:]
    problems: list[str] = []
    for row in map(json.loads, ended.stdout.splitlines()):
        ours = fold_parts((), for_version(given[row["name"]], version))
        if row["problem"] or shape(row["parts"]) != shape(ours):
            problems.append(f"{row['name']}: {row['problem'] or difference(shape(row['parts']), shape(ours))}")
    assert not problems, "\n".join(problems)


def shape(parts: Any) -> list[tuple[Any, ...]]:
    """Return the visible content of each part."""
    return [
        tuple(part.get(name) for name in ("type", "state", "text", "toolCallId", "input", "output", "errorText", "data")) for part in parts
    ]


def difference(theirs: list[Any], ours: list[Any]) -> str:
    pair = next(((one, other) for one, other in zip(theirs, ours, strict=False) if one != other), (len(theirs), len(ours)))
    return f"{pair[0]!r} is ours {pair[1]!r}"
