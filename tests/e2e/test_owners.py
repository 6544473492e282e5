"""Prompts of several users on one moot: each uses their own conversations, limits and blobs."""

from __future__ import annotations

from typing import Any

import pytest

from moot.errors import NotFound
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.types.conversation import Project
from moot.types.ids import new_id
from moot.types.limits import Limits
from moot.types.message import text_part
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio


async def test_a_prompt_uses_and_creates_conversations_of_its_owner(stage: Any) -> None:
    async with stage(lambda _: Reply(text="yes")) as on:
        store = on.engine.store
        run, _ = await on.ask("hello", user="ann")
        mine = await store.of("ann").conversations.get(run.conversation)
        assert (mine.owner, run.user) == ("ann", "ann")
        before = await store.log.last_seq(mine.id)
        for other in ("bob", "local"):
            with pytest.raises(NotFound):
                await on.submit("let me in", conversation=mine.id, user=other)
        assert await store.log.last_seq(mine.id) == before
        again, _ = await on.ask("and more", conversation=mine.id, user="ann")
        here, _ = await on.ask("from the terminal", conversation=mine.id)
        assert [again.user, here.user] == ["ann", "local"]
        assert len(await store.of("ann").records.runs()) == 3 and await store.of("local").records.runs() == []


async def test_conversation_keys_are_separate_for_each_owner(stage: Any) -> None:
    async with stage(lambda _: Reply(text="yes")) as on:
        found = [(await on.ask("hello", key="cron:nightly", user=user))[0].conversation for user in ("ann", "bob", None, "ann", None)]
        assert found[0] == found[3] and found[2] == found[4] and len(set(found)) == 3


async def test_each_owner_has_their_own_limit_of_runs(stage: Any) -> None:
    async with stage([Reply(text="never ends", hang_at=3)] * 3, limits=Limits(runs_per_user=1)) as on:
        submitted = [await on.submit("go", user=user) for user in ("ann", "bob", "ann", None)]
        assert [one.run.status for one in submitted] == ["running", "running", "queued", "running"]


async def test_a_blob_hash_in_a_conversation_opens_only_blobs_of_its_owner(stage: Any) -> None:
    secret = b"what ann alone may read"

    def script(recorded: Recorded) -> Reply:
        tool = any(message["role"] == "tool" for message in recorded.json["messages"])
        return Reply(text="done") if tool else Reply(tool_calls=[ToolCall("read_file", {"path": f"blob:{name}"})])

    async with stage(script) as on:
        for user in ("ann", "bob"):
            await on.engine.store.of(user).projects.create(Project(new_id(), "shop", root_path=str(on.directory)))
        blob = await on.engine.store.of("ann").blobs.upload(secret, "text/plain")
        name = blob.sha256
        for user, reads in (("ann", True), ("bob", False), (None, False)):
            _, message = await on.ask("read it", user=user)
            (call,) = [part for part in message.parts if str(part["type"]).startswith("tool-")]
            assert (secret.decode() in str(call)) is reads
        picture = {"type": "file", "mediaType": "text/plain", "url": f"blob:{name}"}
        submitted = await on.engine.runs.submit(Prompt((text_part("look"), picture), directory=str(on.directory), user="bob"))
        assert (await on.engine.runs.wait(submitted.run.id)).status == "failed"
        assert secret not in b"".join(request.body for request in on.server.requests[4:])
