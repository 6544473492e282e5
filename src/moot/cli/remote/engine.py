"""The parts of an engine that commands use, on a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast
from urllib.parse import quote

from moot.cli.console.lines import Lines
from moot.cli.remote.client import Client, connect
from moot.engine.locks import Place
from moot.errors import UsageError
from moot.features.approvals import Asked, CallPreview
from moot.features.remote import Change, signature_of
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject, loads_object
from moot.types.event import Event
from moot.types.ids import SystemClock, new_id
from moot.types.message import Message
from moot.types.run import Prompt, Run, Submitted
from moot.types.search import SearchPage
from moot.types.store import OwnerStore

_CHANGES: frozenset[str] = frozenset(Change.__args__)


class RemoteEngine:
    """A server's engine. Only what `features/remote.py` lists is available."""

    def __init__(self, client: Client, home: Path) -> None:
        self.client = client
        self.store = cast("OwnerStore", _Store(client))
        """The user's data on the server. A cast, because only the methods in `features/remote.py` exist."""
        self.runs = RemoteRuns(client)
        self.tail = RemoteTail(client)
        self.approvals = RemoteApprovals(client)
        self.state = home / "state" / "servers" / client.name
        """Folder on this machine for the numbers of the lists that were printed."""

    def now(self) -> int:
        """Return the time in ms."""
        return SystemClock().now() // 1000

    async def submit(self, prompt: Prompt) -> Submitted:
        """Send a prompt. Folders in it are folders of the server."""
        fields = {name: getattr(prompt, name) for name in ("conversation", "answers", "agent", "model", "mode", "on_busy", "temporary")}
        body = {**fields, "parts": list(prompt.parts), "allow": list(prompt.allowed_uris), "settings": prompt.settings}
        return cast("Submitted", await self.client.exact("/api/remote/prompts", cast("JsonObject", body), key=new_id()))

    async def purge(self, conversation: str) -> None:
        """Permanently delete a conversation."""
        await self.client.send("DELETE", f"/api/conversations/{quote(conversation, safe='')}?purge=true")

    async def place(self, run: str) -> Place | None:
        """Return the process that executes the run."""
        return cast("Place | None", await self.client.read("runs.place", {"id": run}))

    async def converters(self, conversation: str) -> dict[str, str]:
        """Return the converter of each newer translation in the conversation, by exchange."""
        return cast("dict[str, str]", await self.client.read("translations.converters", {"id": conversation}))

    async def first(self, conversation: str, messages: list[Message]) -> list[Message]:
        """Return the messages in their original translation."""
        arguments = {"id": conversation, "messages": [message.id for message in messages]}
        return cast("list[Message]", await self.client.read("translations.first", arguments))

    async def search_meaning(self, query: str, limit: int, conversation: str | None) -> SearchPage:
        """Return the answers closest in meaning to the query."""
        arguments = {"query": query, "limit": limit, "id": conversation or ""}
        return cast("SearchPage", await self.client.read("meaning.search", arguments))


class _Store:
    """The server's store. `store.conversations.get(id)` sends the operation `conversations.get`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, part: str) -> _Part:
        return _Part(self._client, part)


class _Part:
    def __init__(self, client: Client, part: str) -> None:
        self._client = client
        self._name = part

    def __getattr__(self, name: str) -> Callable[..., Awaitable[object]]:
        operation = f"{self._name}.{name}"

        async def call(*args: object, **keywords: object) -> object:
            arguments = signature_of(operation).bind(*args, **keywords).arguments
            if operation not in _CHANGES:
                return await self._client.read(operation, arguments)
            body = {"operation": operation, "arguments": {key: _listed(value) for key, value in arguments.items()}}
            return await self._client.exact("/api/remote/change", cast("JsonObject", body))

        return call


def _listed(value: object) -> object:
    return list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value


class RemoteRuns:
    """Runs on the server. They continue when this command ends."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def current(self, run: str) -> Run:
        """Return the run with its current status."""
        return cast("Run", await self._client.read("runs.current", {"id": run}))

    async def wait(self, run: str) -> Run:
        """See `Runs.wait`."""
        while (settled := await self._client.read("runs.wait", {"id": run})) is None:
            pass
        return cast("Run", settled)

    async def cancel(self, run: str) -> None:
        """Stop the run."""
        await self._client.post(f"/api/runs/{quote(run, safe='')}/cancel", {}, key=new_id())

    async def resume(self, run: str) -> Run:
        """Resume the run on the server. Raise Busy if it is running, UsageError if it has ended."""
        await self._client.post(f"/api/runs/{quote(run, safe='')}/resume", {}, key=new_id())
        return await self.current(run)

    async def here(self) -> list[Run]:
        """Return no runs, because none belongs to this process."""
        return []

    async def answer(self, approval: str, answer: Answer, *, wake: bool = True) -> None:
        """Answer an approval. The server continues the run."""
        await self._client.post(f"/api/approvals/{quote(approval, safe='')}", answer_body(answer), key=new_id())


def answer_body(answer: Answer) -> JsonObject:
    """Return an answer as the server expects it."""
    return {
        "approved": answer.approved,
        "option": answer.option,
        "reason": answer.reason,
        "patterns": list[Json](answer.patterns),
        "arguments": None if answer.arguments is None else loads_object(answer.arguments),
        "value": answer.value,
    }


class RemoteTail:
    """Events of the server's conversations."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def watch(self, conversation: str, *, after: int = 0) -> AsyncGenerator[tuple[Event, ...], None]:
        """See `Tail.watch`. A lost connection is established again."""
        return self._client.events(conversation, after)


class RemoteApprovals:
    """Approvals on the server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def open(self) -> list[Asked]:
        """Return the open approvals of all conversations, oldest first."""
        return cast("list[Asked]", await self._client.read("approvals.open", {}))

    async def asked(self, approval: Approval) -> Asked:
        """Return the approval with the conversations that led to it."""
        return cast("Asked", await self._client.read("approvals.asked", {"id": approval.id}))

    async def preview(self, approval: Approval, arguments: bytes) -> CallPreview:
        """Return a preview of the call with these arguments."""
        text = None if arguments == approval.arguments else arguments.decode("utf-8", "replace")
        return cast("CallPreview", await self._client.read("approvals.preview", {"id": approval.id, "arguments": text}))

    async def check(self, approval: Approval, answer: Answer) -> str:
        """Return the reason why the answer is not possible, or an empty string."""
        return cast("str", await self._client.read("approvals.check", {"id": approval.id, "answer": answer_body(answer)}))

    async def explain(self, approval: Approval, arguments: bytes) -> str:
        """Return a model's explanation of the call. Raise UsageError if its arguments were edited."""
        if arguments != approval.arguments:
            raise UsageError("Edited calls on a server can't be explained.")
        data = await self._client.post(f"/api/approvals/{quote(approval.id, safe='')}/explain", {}, key=new_id())
        return str(loads_object(data).get("text", ""))


@asynccontextmanager
async def open_remote(home: Path, output: Lines) -> AsyncGenerator[RemoteEngine]:
    """Open the engine of the command line's server for the duration of the block. `home` is moot's home on this machine."""
    async with connect(output) as client:
        yield RemoteEngine(client, home)
