"""A process that died between a call and its output: what the resumed run sends is well-formed in every dialect."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess, make
from moot.testing.process import ScriptedProcess

pytestmark = pytest.mark.timeout(30)

PROMPT = 'call read_file {"path": "notes.txt"}\ncall shell {"command": "echo done >> effects"}\ncall list_files {"path": "."}'
"""Calls that may be repeated stand before and behind one that may not."""


@pytest.fixture(params=["openai-chat", "anthropic"])
def moot(request: pytest.FixtureRequest, tmp_path: Path, obedient: ScriptedProcess) -> MootProcess:
    made = make(tmp_path, tmp_path / "cache", obedient.config(dialect=request.param) + "permissions: {mode: auto}\n")
    (made.work / "notes.txt").write_text("apples\n")
    return made


def pairs(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Each call of a request with its output, which must stand where the dialect wants it; fails when one is missing or too many."""
    calls: list[str] = []
    outputs: dict[str, str] = {}
    for message in body["messages"]:
        content = message["content"] if isinstance(message.get("content"), list) else []
        now = [call["id"] for call in message.get("tool_calls", [])] + [part["id"] for part in content if part["type"] == "tool_use"]
        answered = [(part["tool_use_id"], part["content"]) for part in content if part["type"] == "tool_result"]
        answered += [(message["tool_call_id"], message["content"])] if message["role"] == "tool" else []
        if message["role"] == "assistant":
            assert len(calls) == len(outputs), "a call without an output before the next answer"
        for id, output in answered:
            assert id in calls and id not in outputs
            outputs[id] = json.dumps(output)
        if message["role"] == "user" and not answered:
            assert len(calls) == len(outputs), "a person speaks between a call and its output"
        calls += now
    assert len(set(calls)) == len(calls) == len(outputs)
    return [(id, outputs[id]) for id in calls]


@pytest.mark.parametrize("at", ["exchange.ended", "tool.started:2", "tool.worked:2"])
def test_a_resumed_run_sends_every_call_with_its_one_output(moot: MootProcess, obedient: ScriptedProcess, at: str) -> None:
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
