"""A process that died between a call and its output: the resumed run sends a well-formed request in every dialect."""

from __future__ import annotations

import itertools
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from moot.testing.process import ScriptedProcess

PROMPT = 'call read_file {"path": "notes.txt"}\ncall shell {"command": "echo done >> effects"}\ncall list_files {"path": "."}'
"""Repeatable calls before and after one that is not repeatable."""


BOTH, LATER = ("openai-chat", "anthropic"), ("google", "ollama", "openai-responses")
POINTS = ("exchange.ended", "tool.started:2", "tool.worked:2")
CASES = [*((dialect, at) for dialect in BOTH for at in POINTS), *((dialect, "tool.started:2") for dialect in LATER)]


@pytest.fixture
def moot(dialect: str, tmp_path: Path, obedient: ScriptedProcess) -> MootProcess:
    made = make(tmp_path, obedient.config(dialect=dialect) + "permissions: {mode: auto}\n")
    (made.work / "notes.txt").write_text("apples\n")
    return made


def said(body: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The content of a request in any wire format: (call | output | user, id, output); without ids, the order decides."""
    order = {"call": itertools.count(), "output": itertools.count()}

    def one(kind: str, id: str | None, output: Any = None) -> tuple[str, str, Any]:
        return kind, id or f"no. {next(order[kind])}", output

    for message in body.get("messages", []):
        content = message["content"] if isinstance(message.get("content"), list) else []
        yield from (one("call", call.get("id")) for call in message.get("tool_calls", []))
        yield from (one("call", part["id"]) for part in content if part["type"] == "tool_use")
        yield from (one("output", part["tool_use_id"], part["content"]) for part in content if part["type"] == "tool_result")
        if message["role"] == "tool":
            yield one("output", message.get("tool_call_id"), message["content"])
        elif message["role"] == "user" and not any(part["type"] == "tool_result" for part in content):
            yield "user", "", None
    for item in body.get("input", []):
        if item["type"] in ("function_call", "function_call_output"):
            yield "output" if "output" in item else "call", item["call_id"], item.get("output")
        elif item["role"] == "user":
            yield "user", "", None
    for content in body.get("contents", []):
        for part in content["parts"]:
            if "functionCall" in part or "functionResponse" in part:
                of = part.get("functionCall") or part["functionResponse"]
                yield one("call" if "functionCall" in part else "output", of.get("id"), of.get("response"))
            elif content["role"] == "user":
                yield "user", "", None


def pairs(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Return each call of a request with its output, which must be where the dialect requires it. Fail if one is missing or too many."""
    calls: list[str] = []
    outputs: dict[str, str] = {}
    before = ""
    for kind, id, output in said(body):
        if kind == "call":
            assert before == "call" or len(calls) == len(outputs), "a call without an output before the next answer"
            calls.append(id)
        elif kind == "output":
            assert id in calls and id not in outputs
            outputs[id] = json.dumps(output)
        else:
            assert len(calls) == len(outputs), "a person speaks between a call and its output"
        before = kind
    assert len(set(calls)) == len(calls) == len(outputs)
    return [(id, outputs[id]) for id in calls]


@pytest.mark.parametrize(("dialect", "at"), CASES)
@pytest.mark.slow
def test_a_resumed_run_sends_every_call_with_exactly_one_output(moot: MootProcess, obedient: ScriptedProcess, at: str) -> None:
    before = len(obedient.requests())
    moot.more = {"MOOT_TESTING": "1", "MOOT_CRASH_AT": at}
    assert moot.run("run", PROMPT).returncode == -signal.SIGKILL
    moot.more = {}
    ended = moot.run("chat", "resume", "1")
    assert (ended.returncode, ended.stdout[-6:]) == (0, b"Done.\n"), ended.stderr
    _, request = [json.loads(row["body"]) for row in obedient.requests()[before:]]
    read, shell, listed = pairs(request)
    assert "apples" in read[1]
    assert "notes.txt" in listed[1]
    effects = (moot.work / "effects").read_text().count("done") if (moot.work / "effects").exists() else 0
    unknown = at.startswith(("tool.started", "tool.worked"))
    assert ("outcome of this call is unknown" in shell[1]) == unknown
    assert effects == (0 if at.startswith("tool.started") else 1)
