"""The examples of the HTTP API guide, run in order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest

from moot.testing.script import Reply, ToolCall
from style.test_guides import blocks

pytestmark = pytest.mark.anyio

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "http-api.md"

MADE = {"/api/projects": "PROJECT", "/api/conversations": "CONVERSATION", "/api/blobs": "BLOB"}


def script(recorded: Any) -> Reply:
    tool = any(message["role"] == "tool" for message in recorded.json["messages"])
    return Reply(text="There is flour.") if tool else Reply(tool_calls=[ToolCall("shell", {"command": "touch pantry"})])


async def test_every_example_of_the_guide_runs(open_server: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # working directory of its commands
    examples = blocks(GUIDE, "http")
    assert len(examples) > 20
    names: dict[str, str] = {}
    async with open_server(script, mode="ask") as server:
        for example in examples:
            head, _, body = example.strip().partition("\n")
            method, path = head.split(" ", 1)
            path = re.sub(r"[A-Z]{3,}", lambda match: quote(names[match[0]], safe=""), path)
            for name, value in names.items():
                body = body.replace(f'"{name}"', json.dumps(value))
            kind = "application/json" if body.startswith("{") else "text/plain"
            async with server.client.request(method, path, data=body or None, headers={"content-type": kind} if body else {}) as answer:
                text = await answer.text()
                assert answer.status < 300, (example, text)
            found = json.loads(text) if answer.content_type == "application/json" else {}
            if method == "POST" and path in MADE:
                names[MADE[path]] = found.get("id") or found["sha256"]
            if "run" in found and isinstance(found["run"], dict):
                names["RUN"] = found["run"]["id"]
                with anyio.fail_after(60):
                    await server.engine.runs.wait(names["RUN"])
            if path.startswith("/api/approvals?"):
                names["APPROVAL"] = found["data"][0]["id"]
            if path.endswith("limit=50"):
                names["MESSAGE"] = found["data"][0]["id"]
            if method == "POST" and path.startswith("/api/approvals/"):
                await server.engine.runs.wait(names["RUN"])
