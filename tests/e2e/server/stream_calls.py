"""Helpers for tests of streams: bodies as clients send them, and frames as they read them."""

from __future__ import annotations

import json
from typing import Any

from e2e.server.conftest import LiveServer
from moot.convert.fold import Folder


def say(text: str, *, id: str = "u1", chat: str = "c1", **more: Any) -> dict[str, Any]:
    message = {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"id": chat, "messages": [message], "trigger": "submit-message", **more}


def read(body: str) -> list[tuple[str, dict[str, Any]]]:
    """Return id and chunk of each frame; `[DONE]` must be the last."""
    frames = [frame for frame in body.split("\n\n") if frame and not frame.startswith(":")]
    assert frames[-1] == "data: [DONE]"
    found: list[tuple[str, dict[str, Any]]] = []
    for frame in frames[:-1]:
        fields = dict(line.split(": ", 1) for line in frame.split("\n"))
        found.append((fields.get("id", ""), json.loads(fields["data"])))
    return found


def fold(chunks: list[dict[str, Any]]) -> tuple[Any, ...]:
    folder = Folder()
    for chunk in chunks:
        folder.feed(chunk)
    return folder.parts()


def text(chunks: list[dict[str, Any]]) -> str:
    return "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")


async def post(server: LiveServer, body: dict[str, Any], **headers: str) -> list[dict[str, Any]]:
    async with server.client.post("/api/chat", json=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return [chunk for _, chunk in read(await answer.text())]


async def resumed(server: LiveServer, chat: str = "c1", **headers: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the frames of the stream. An answer that hangs continues once the stream is open."""
    async with server.client.get(f"/api/chat/{chat}/stream", headers=headers) as answer:
        assert answer.status == 200
        server.model.release()
        return read(await answer.text())


async def is_idle(server: LiveServer, chat: str = "c1", **headers: str) -> bool:
    """Return True if there is no stream to resume."""
    async with server.client.get(f"/api/chat/{chat}/stream", headers=headers) as answer:
        return answer.status == 204


def steps_of(chunks: list[dict[str, Any]]) -> list[str]:
    """Return the borders of messages and steps, and the outputs of calls between them."""
    borders = ("start", "finish", "abort", "start-step", "finish-step")
    return [chunk["type"] for chunk in chunks if chunk["type"] in borders or chunk["type"].startswith("tool-output-")]


async def messages(server: LiveServer, chat: str = "c1", **headers: str) -> list[dict[str, Any]]:
    async with server.client.get(f"/api/chat/{chat}/messages", headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()
