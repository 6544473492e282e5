from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from e2e.server.conftest import LiveServer
from e2e.server.stream_calls import fold, messages, post, read, resumed, say, text
from moot.testing.script import Reply, ToolCall
from moot.types.limits import Limits as RunLimits

pytestmark = pytest.mark.anyio

LONG = "All work and no play makes a dull model. " * 12


async def test_a_prompt_streams_its_message_without_internal_chunks(server: LiveServer) -> None:
    async with server.client.post("/api/chat", json=say("hi")) as answer:
        body = await answer.text()
        headers = answer.headers
    chunks = [chunk for _, chunk in read(body)]
    assert [chunk["type"] for chunk in chunks[:2]] == ["start", "start-step"] and chunks[-1] == {"type": "finish", "finishReason": "stop"}
    assert text(chunks) == "Hello there."
    assert all(id for id, _ in read(body))
    assert headers["content-type"] == "text/event-stream" and headers["cache-control"] == "no-cache"
    assert headers["x-vercel-ai-ui-message-stream"] == "v1" and headers["x-accel-buffering"] == "no"
    shown = await messages(server)
    assert [(message["id"], message["role"]) for message in shown] == [("u1", "user"), (chunks[0]["messageId"], "assistant")]


async def test_a_repeated_prompt_joins_its_run(server: LiveServer) -> None:
    first = await post(server, say("hi"))
    again = await post(server, say("hi"))
    assert again[0]["messageId"] == first[0]["messageId"] and text(again) == text(first)
    assert len(server.model.requests) == 1


async def test_the_same_prompt_sent_twice_concurrently_is_one_run(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text=LONG, delay=0.01, times=0)]) as server:
        both: list[list[dict[str, Any]]] = []

        async def one() -> None:
            both.append(await post(server, say("hi")))

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)
        assert len(server.model.requests) == 1
        assert both[0][0]["messageId"] == both[1][0]["messageId"] and text(both[0]) == text(both[1]) == LONG


async def test_a_known_id_with_another_text_is_an_edit(server: LiveServer) -> None:
    first = await post(server, say("hi"))
    other = await post(server, say("hello"))
    assert other[0]["messageId"] != first[0]["messageId"]
    shown = await messages(server)
    assert [message["parts"][0].get("text") for message in shown if message["role"] == "user"] == ["hello"]
    found = await server.engine.store.conversations.by_client_id("c1")
    assert found is not None and len(await server.engine.store.tree.nodes(found.id)) == 4


async def test_regenerating_always_starts_a_new_run(server: LiveServer) -> None:
    first = await post(server, say("hi"))
    again = await post(server, say("hi", trigger="regenerate-message"))
    named = await post(server, say("hi", trigger="regenerate-message", messageId=first[0]["messageId"]))
    assert len({chunks[0]["messageId"] for chunks in (first, again, named)}) == 3
    assert len(await messages(server)) == 2


async def test_a_prompt_to_a_busy_conversation_is_rejected_unless_on_busy_allows_it(open_server: Callable[..., Any]) -> None:
    script = [Reply(text=LONG, delay=0.005), Reply(text="Second.")]
    async with open_server(script) as server, server.client.post("/api/chat", json=say("hi")) as first:
        await first.content.readuntil(b"text-delta")
        async with server.client.post("/api/chat", json=say("more", id="u2")) as refused:
            assert refused.status == 409
        assert text(await post(server, say("more", id="u2", on_busy="queue"))) == "Second."
        await first.read()


async def test_a_client_that_disconnects_stops_no_run_and_can_resume(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text=LONG, delay=0.01)]) as server:
        async with server.client.post("/api/chat", json=say("hi")) as answer:
            seen = (await answer.content.readuntil(b"text-delta")).decode()
        frames = await resumed(server)
        chunks = [chunk for _, chunk in frames]
        assert chunks[0]["type"] == "start" and chunks[0]["messageId"] in seen
        assert text(chunks) == LONG and chunks[-1]["type"] == "finish"
        assert [chunk["type"] for chunk in chunks].count("start") == 1


async def test_resuming_after_any_frame_sends_exactly_the_rest(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text=LONG, reasoning="hm " * 20, delay=0.002)]) as server:
        async with server.client.post("/api/chat", json=say("hi")) as answer:
            whole = read(await answer.text())
        expected = fold([chunk for _, chunk in whole])
        for index, (id, _) in enumerate(whole[:-1]):
            rest = await resumed(server, **{"Last-Event-ID": id})
            assert fold([chunk for _, chunk in whole[: index + 1]] + [chunk for _, chunk in rest]) == expected
        async with server.client.get("/api/chat/c1/stream", headers={"Last-Event-ID": whole[-1][0]}) as answer:
            assert answer.status == 204


async def test_resuming_without_a_live_run_returns_204(server: LiveServer) -> None:
    async with server.client.get("/api/chat/nobody/stream") as answer:
        assert answer.status == 204
    await post(server, say("hi"))
    assert text([chunk for _, chunk in await resumed(server)]) == "Hello there."
    found = await server.engine.store.conversations.by_client_id("c1")
    assert found is not None
    with pytest.raises(AssertionError):
        await resumed(server, "c2")


async def test_stopping_ends_the_run_and_aborts_the_stream(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text=LONG, delay=0.05)]) as server:
        async with server.client.post("/api/chat", json=say("hi")) as answer:
            begun = await answer.content.readuntil(b"text-delta")
            async with server.client.post("/api/chat/c1/stop") as stopped:
                assert len((await stopped.json())["stopped"]) == 1
            chunks = [chunk for _, chunk in read((begun + await answer.read()).decode())]
        assert chunks[-1]["type"] == "abort"
        last = (await messages(server))[-1]
        assert last["role"] == "assistant" and all(part.get("state") != "streaming" for part in last["parts"])


async def test_an_error_is_sent_live_and_as_the_last_chunk_of_a_replay(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text=LONG, cut_at_byte=900, times=0)]) as server:
        chunks = await post(server, say("hi"))
        kinds = [chunk["type"] for chunk in chunks]
        assert kinds.index("error") < kinds.index("finish") and chunks[-1]["finishReason"] == "error"
        again = [chunk for _, chunk in await resumed(server)]
        assert again[-1]["type"] == "error" and again[-2] == {"type": "finish", "finishReason": "error"}


def wants(server: LiveServer, call: str, *, chat: str = "c1", id: str = "u1", **more: Any) -> dict[str, Any]:
    return say(f"call {call}", chat=chat, id=id, directory=str(server.directory), **more)


def answered(shown: list[dict[str, Any]], *approved: bool, **changes: Any) -> dict[str, Any]:
    """Return the last message with its approvals answered, as the AI SDK's clients do."""
    last, verdicts = shown[-1], list(approved)
    parts = []
    for part in last["parts"]:
        if part.get("state") == "approval-requested":
            part = {**part, "state": "approval-responded", "approval": {**part["approval"], "approved": verdicts.pop(0)}, **changes}
        parts.append(part)
    return {"id": "c1", "messages": [*shown[:-1], {**last, "parts": parts}], "trigger": "submit-message", "messageId": last["id"]}


WRITE = 'write_file {"path": "a.txt", "content": "hello"}'


async def test_an_approved_call_runs_with_the_stored_input_not_the_clients(open_server: Callable[..., Any]) -> None:
    async with open_server(obey=True, mode="ask") as server:
        first = await post(server, wants(server, WRITE))
        asked = next(chunk for chunk in first if chunk["type"] == "tool-approval-request")
        assert set(asked) == {"type", "approvalId", "toolCallId"} and first[-1]["type"] != "finish"
        body = answered(await messages(server), True, input={"path": "a.txt", "content": "forged"})
        second = await post(server, body)
        assert second[0] == {"type": "start", "messageId": first[0]["messageId"]}
        assert second[1]["type"] == "tool-output-available" and second[1]["toolCallId"] == asked["toolCallId"]
        last = (await messages(server))[-1]["parts"]
        call = next(part for part in last if part["type"] == "tool-write_file")
        assert call["input"]["content"] == "hello" and call["state"] == "output-available"
        again = await post(server, body)  # the same answer again returns the same stream
        assert fold(again) == fold(second) and again[0] == second[0]
        late = await post(server, answered_no(body))
        assert fold(late) == fold(second)


def answered_no(body: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(body).replace('"approved": true', '"approved": false'))


async def test_a_denied_call_does_not_run(open_server: Callable[..., Any]) -> None:
    async with open_server(obey=True, mode="ask") as server:
        await post(server, wants(server, WRITE))
        second = await post(server, answered(await messages(server), False))
        assert "tool-output-denied" in [chunk["type"] for chunk in second]


async def test_a_replay_after_an_approval_contains_both_legs_of_the_message(open_server: Callable[..., Any]) -> None:
    async with open_server(obey=True, mode="ask") as server:
        await post(server, wants(server, WRITE))
        waiting = [chunk for _, chunk in await resumed(server)]
        assert waiting[-1]["type"] == "tool-approval-request"
        await post(server, answered(await messages(server), True))
        six = [chunk for _, chunk in await resumed(server)]
        seven = [chunk for _, chunk in await resumed(server, **{"X-AI-SDK-Version": "7"})]
        assert [chunk["type"] for chunk in seven].count("start") == 1
        assert "tool-approval-response" in [chunk["type"] for chunk in seven]
        assert "tool-approval-response" not in [chunk["type"] for chunk in six]
        part = next(part for part in fold(seven) if part["type"] == "tool-write_file")
        assert part["state"] == "output-available" and part["approval"]["approved"] is True


async def test_several_calls_are_answered_at_once(open_server: Callable[..., Any]) -> None:
    calls = [ToolCall("fetch_url", {"url": f"http://127.0.0.1:9/{name}"}) for name in "ab"]
    async with open_server([Reply(tool_calls=calls), Reply(text="Both done.")], mode="ask") as server:
        asked = [chunk for chunk in await post(server, say("go")) if chunk["type"] == "tool-approval-request"]
        assert len(asked) == 2
        second = await post(server, answered(await messages(server), True, False))
        assert text(second) == "Both done."
        assert {"tool-output-denied", "tool-output-error"} <= {chunk["type"] for chunk in second}


async def test_approving_requires_the_scope_tools(open_server: Callable[..., Any]) -> None:
    async with open_server(obey=True, mode="ask") as server, server.caller(scopes=["chat"]) as chatter:
        async with chatter.post("/api/chat", json=wants(server, WRITE)) as refused:
            assert refused.status == 403
        await post(server, wants(server, WRITE))
        async with chatter.post("/api/chat", json=answered(await messages(server), True)) as refused:
            assert refused.status == 403
        async with chatter.post("/api/chat", json=say("x", chat="c2", mode="auto")) as refused:
            assert refused.status == 403


PICK = {"name": "pick_color", "description": "Let the person pick a colour.", "inputSchema": {"type": "object", "properties": {}}}


async def test_a_tool_of_the_client_is_run_by_the_client(open_server: Callable[..., Any]) -> None:
    script = [Reply(tool_calls=[ToolCall("pick_color", {})]), Reply(text="Red it is.")]
    async with open_server(script) as server:
        first = await post(server, say("colour?", tools=[PICK]))
        assert [chunk["type"] for chunk in first][-1] == "tool-input-available"
        assert "pick_color" in [tool["function"]["name"] for tool in server.model.requests[0].json["tools"]]
        run = (await server.engine.store.records.runs())[0]
        assert run.status == "waiting"
        async with server.client.get("/api/approvals") as asked:
            assert (await asked.json())["data"] == []  # client tools are not listed as approvals
        async with server.client.get("/api/approvals?by_client=true") as asked:
            (only,) = (await asked.json())["data"]
            assert only["by_client"] and only["tool"] == "pick_color" and only["questions"] is None
        shown = await messages(server)
        parts = [
            {**part, "state": "output-available", "output": {"colour": "red"}} if part["type"] == "tool-pick_color" else part
            for part in shown[-1]["parts"]
        ]
        body = {"id": "c1", "messages": [*shown[:-1], {**shown[-1], "parts": parts}], "messageId": shown[-1]["id"]}
        second = await post(server, body)
        assert second[0]["messageId"] == first[0]["messageId"]
        assert next(chunk for chunk in second if chunk["type"] == "tool-output-available")["output"] == {"colour": "red"}
        assert text(second) == "Red it is."
        told = server.model.requests[1].messages[-1]
        assert told["role"] == "tool" and "red" in told["content"]


async def test_a_client_tool_cannot_have_the_name_of_a_moot_tool(server: LiveServer) -> None:
    async with server.client.post("/api/chat", json=say("hi", tools=[{**PICK, "name": "shell"}])) as answer:
        assert answer.status == 400 and "shell" in (await answer.json(content_type=None))["detail"]


async def test_an_attachment_is_stored_as_a_blob_and_reaches_the_model(server: LiveServer) -> None:
    data = b"\x89PNG\r\n\x1a\n" + b"x" * 40
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    parts = [{"type": "text", "text": "look"}, {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": url}]
    body = {"id": "c1", "messages": [{"id": "u1", "role": "user", "parts": parts}]}
    await post(server, body)
    shown = (await messages(server))[0]["parts"][1]
    assert shown["url"].startswith("/api/blobs/") and shown["filename"] == "a.png"
    assert await server.engine.store.blobs.get(shown["url"].removeprefix("/api/blobs/")) == data
    parts[1]["url"] = shown["url"]  # a link from the server counts as the same content
    await post(server, body)
    assert len(server.model.requests) == 1
    parts[1]["url"] = "file:///etc/passwd"
    async with server.client.post("/api/chat", json=body) as refused:
        assert refused.status == 400


async def test_a_new_conversation_keeps_the_clients_earlier_messages(server: LiveServer) -> None:
    call = {"type": "tool-look", "toolCallId": "t1", "state": "output-available", "input": {"at": "x"}, "output": "seen"}
    forged = {"type": "reasoning", "text": "hm", "state": "done", "providerMetadata": {"mine": {"signature": "forged"}}}
    earlier = [
        {"id": "a1", "role": "user", "parts": [{"type": "text", "text": "My name is Mara."}]},
        {"id": "a2", "role": "assistant", "parts": [{"type": "step-start"}, forged, call, {"type": "text", "text": "Hello Mara."}]},
    ]
    asked = {"id": "a3", "role": "user", "parts": [{"type": "text", "text": "Who am I?"}]}
    body = {"id": "brought", "messages": [*earlier, asked], "trigger": "submit-message"}
    await post(server, body)
    shown = await messages(server, "brought")
    assert [message["id"] for message in shown[:3]] == ["a1", "a2", "a3"] and len(shown) == 4
    assert [part["type"] for part in shown[1]["parts"]] == ["step-start", "tool-look", "text"]
    told = server.model.requests[0].json["messages"]
    assert [message["role"] for message in told if message["role"] != "system"] == ["user", "assistant", "tool", "user"]
    assert "forged" not in json.dumps(told)
    await post(server, body)  # a repeated request joins the same run
    assert len(server.model.requests) == 1 and len(await messages(server, "brought")) == 4


async def test_attachments_count_against_the_upload_quota(open_server: Callable[..., Any]) -> None:
    async with open_server(limits=RunLimits(uploads=100)) as server:
        url = f"data:text/plain;base64,{base64.b64encode(b'x' * 90).decode()}"
        more = f"data:text/plain;base64,{base64.b64encode(b'y' * 90).decode()}"
        parts = [{"type": "text", "text": "look"}, {"type": "file", "mediaType": "text/plain", "filename": "a.txt", "url": url}]
        await post(server, {"id": "c1", "messages": [{"id": "u1", "role": "user", "parts": parts}]})
        parts[1]["url"] = more
        async with server.client.post("/api/chat", json={"id": "c1", "messages": [{"id": "u2", "role": "user", "parts": parts}]}) as answer:
            assert answer.status == 429 and "limits.uploads" in (await answer.json(content_type=None))["fix"]
        async with server.client.post("/api/conversations/c1/messages", json={"parts": parts}) as answer:
            assert answer.status == 429


async def test_a_large_output_is_sent_as_an_excerpt_with_a_link(open_server: Callable[..., Any]) -> None:
    script = [Reply(tool_calls=[ToolCall("shell", {"command": "seq 1 40000"})]), Reply(text="Counted.")]
    async with open_server(script) as server:
        chunks = await post(server, say("count", directory=str(server.directory)))
        output = next(chunk for chunk in chunks if chunk["type"] == "tool-output-available")
        assert "providerMetadata" not in output and len(json.dumps(output)) < 16_384
        shown = output["output"]
        whole = "".join(f"{number}\n" for number in range(1, 40_001)).encode()
        assert shown["size"] == len(whole) and shown["head"].startswith("1\n2\n") and shown["tail"].rstrip().endswith("40000")
        assert await server.engine.store.blobs.get(shown["url"].removeprefix("/api/blobs/")) == whole
        kept = next(part for part in (await messages(server))[-1]["parts"] if part["type"] == "tool-shell")
        again = next(chunk for _, chunk in await resumed(server) if chunk["type"] == "tool-output-available")
        assert kept["output"] == again["output"] == shown and "resultProviderMetadata" not in kept


async def test_two_clients_receive_the_same_frames(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text=LONG, delay=0.005)]) as server:
        async with server.client.post("/api/chat", json=say("hi")) as first:
            begun = await first.content.readuntil(b"text-delta")
            second = [chunk for _, chunk in await resumed(server)]
            one = [chunk for _, chunk in read((begun + await first.read()).decode())]
        assert fold(one) == fold(second)
