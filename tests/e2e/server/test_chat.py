from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import anyio
import pytest

from e2e.server.conftest import LiveServer
from e2e.server.http_calls import called, sent
from e2e.server.stream_calls import fold, is_idle, messages, post, read, resumed, say, steps_of, text
from moot.testing._server import Recorded
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
    async with open_server([Reply(text=LONG, hang_at=5, times=0)]) as server:
        both: list[list[dict[str, Any]]] = []
        opened: list[int] = []

        async def one() -> None:
            async with server.client.post("/api/chat", json=say("hi")) as answer:
                opened.append(answer.status)
                if opened == [200, 200]:
                    await called(server)
                    server.model.release()
                both.append([chunk for _, chunk in read(await answer.text())])

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)
        assert len(server.model.requests) == 1
        assert both[0][0]["messageId"] == both[1][0]["messageId"] and text(both[0]) == text(both[1]) == LONG


async def test_resuming_follows_the_live_message_while_a_prompt_is_queued(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text=LONG, hang_at=5), Reply(text="Second.")]) as server:
        async with server.client.post("/api/chat", json=say("hi")) as live:
            await live.content.readuntil(b"text-delta")
            queued = await sent(server.client, "POST", "/api/conversations/c1/messages", {"text": "later", "on_busy": "queue"}, 202)
            shown = [chunk for _, chunk in await resumed(server)]
        assert text(shown) == LONG and shown[0]["messageId"] != queued["run"]["message"]


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
    script = [Reply(text=LONG, hang_at=5), Reply(text="Second.")]
    async with open_server(script) as server, server.client.post("/api/chat", json=say("hi")) as first:
        await first.content.readuntil(b"text-delta")
        async with server.client.post("/api/chat", json=say("more", id="u2")) as refused:
            assert refused.status == 409
        async with server.client.post("/api/chat", json=say("more", id="u2", on_busy="queue")) as second:
            server.model.release()
            assert text([chunk for _, chunk in read(await second.text())]) == "Second."
        await first.read()


async def test_a_client_that_disconnects_stops_no_run_and_can_resume(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text=LONG, hang_at=5)]) as server:
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


async def test_a_chat_without_a_live_run_is_never_replayed(open_server: Callable[..., Any]) -> None:
    async with open_server(obey=True, mode="ask") as server:
        assert await is_idle(server, "nobody")
        await post(server, say("hi"))
        assert await is_idle(server)
        await post(server, wants(server, WRITE, id="u2"))
        assert (await messages(server))[-1]["parts"][-1]["state"] == "approval-requested"
        assert await is_idle(server)
        assert await is_idle(server, **{"Last-Event-ID": "nonsense"})


async def test_a_client_that_has_a_whole_answer_follows_the_next_one(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="First."), Reply(text=LONG, hang_at=5)]) as server:
        async with server.client.post("/api/chat", json=say("hi")) as answer:
            last, _ = read(await answer.text())[-1]
        async with server.client.post("/api/chat", json=say("more", id="u2")) as live:
            await live.content.readuntil(b"text-delta")
            assert text([chunk for _, chunk in await resumed(server, **{"Last-Event-ID": last})]) == LONG


async def test_stopping_ends_the_run_and_aborts_the_stream(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text=LONG, hang_at=5)]) as server:
        async with server.client.post("/api/chat", json=say("hi")) as answer:
            begun = await answer.content.readuntil(b"text-delta")
            async with server.client.post("/api/chat/c1/stop") as stopped:
                assert len((await stopped.json())["stopped"]) == 1
            chunks = [chunk for _, chunk in read((begun + await answer.read()).decode())]
        assert chunks[-1]["type"] == "abort"
        last = (await messages(server))[-1]
        assert last["role"] == "assistant" and all(part.get("state") != "streaming" for part in last["parts"])


async def test_an_error_is_sent_live_and_as_the_last_chunk_when_a_prompt_is_repeated(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text=LONG, cut_at_byte=900, times=0)]) as server:
        chunks = await post(server, say("hi"))
        kinds = [chunk["type"] for chunk in chunks]
        assert kinds.index("error") < kinds.index("finish") and chunks[-1]["finishReason"] == "error"
        again = await post(server, say("hi"))
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
        assert set(asked) == {"type", "approvalId", "toolCallId"}
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


async def test_a_leg_that_waits_is_closed_and_the_next_one_begins_with_the_outputs(open_server: Callable[..., Any]) -> None:
    async with open_server(obey=True, mode="ask") as server:
        first = await post(server, wants(server, WRITE))
        assert steps_of(first) == ["start", "start-step", "finish-step", "finish"]
        assert [chunk["type"] for chunk in first[-3:]] == ["tool-approval-request", "finish-step", "finish"]
        assert first[-1] == {"type": "finish", "finishReason": "tool-calls"}
        waiting = await post(server, wants(server, WRITE))  # the same prompt again
        assert steps_of(waiting) == steps_of(first)
        body = answered(await messages(server), True)
        second = await post(server, body)
        assert second[0]["messageId"] == first[0]["messageId"]
        assert steps_of(second) == ["start", "tool-output-available", "start-step", "finish-step", "finish"]
        assert steps_of(await post(server, body)) == steps_of(second)
        whole = await post(server, wants(server, WRITE))
        assert steps_of(whole) == ["start", "start-step", "tool-output-available", "finish-step", "start-step", "finish-step", "finish"]


async def test_a_leg_cut_before_its_end_gets_the_end_and_a_live_replay_never_nests_steps(open_server: Callable[..., Any]) -> None:
    write = Reply(tool_calls=[ToolCall("write_file", {"path": "a.txt", "content": "hello"})])
    async with open_server([write, Reply(text=LONG, hang_at=5)], mode="ask") as server:
        prompt = say("go", directory=str(server.directory))
        async with server.client.post("/api/chat", json=prompt) as answer:
            frames = read(await answer.text())
        asked = next(id for id, chunk in frames if chunk["type"] == "tool-approval-request")
        rest = [chunk["type"] for _, chunk in await resumed(server, **{"Last-Event-ID": asked})]
        assert rest == ["finish-step", "finish"]
        async with server.client.post("/api/chat", json=answered(await messages(server), True)) as live:
            seen = (await live.content.readuntil(b"text-delta")).decode()
            output = next(block for block in seen.split("\n\n") if "tool-output-available" in block)
            after = {"Last-Event-ID": output.split("\n", 1)[0].removeprefix("id: ")}
            path = "/api/chat/c1/stream"
            async with server.client.get(path) as whole, server.client.get(path, headers=after) as part:
                server.model.release()
                replayed, rest = [[chunk for _, chunk in read(await answer.text())] for answer in (whole, part)]
            steps = ["start-step", "tool-output-available", "finish-step", "start-step", "finish-step"]
            assert steps_of(replayed) == ["start", *steps, "finish"]
            assert steps_of(rest) == ["start-step", "finish-step", "finish"]


async def test_a_repeated_prompt_after_an_approval_gets_both_legs_of_the_message(open_server: Callable[..., Any]) -> None:
    async with open_server(obey=True, mode="ask") as server:
        await post(server, wants(server, WRITE))
        await post(server, answered(await messages(server), True))
        six = await post(server, wants(server, WRITE))
        seven = await post(server, wants(server, WRITE), **{"X-AI-SDK-Version": "7"})
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
        assert [chunk["type"] for chunk in first][-3:] == ["tool-input-available", "finish-step", "finish"]
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
    assert shown == parts[1], "as it was sent"
    async with server.client.get("/api/conversations/c1/messages") as answer:
        linked = (await answer.json())["data"][0]["parts"][1]
    assert linked["url"].startswith("/api/blobs/") and linked["filename"] == "a.png" and "providerMetadata" not in linked
    assert await server.engine.store.blobs.get(linked["url"].removeprefix("/api/blobs/")) == data
    parts[1]["url"] = linked["url"]  # a link from the server counts as the same content
    await post(server, body)
    assert len(server.model.requests) == 1
    parts[1]["url"] = "file:///etc/passwd"
    async with server.client.post("/api/chat", json=body) as refused:
        assert refused.status == 400


SENT: list[dict[str, Any]] = [
    {"type": "text", "text": "look", "providerMetadata": {"mine": {"cache": True}}},
    {"type": "data-place", "id": "p", "data": {"at": 3}},
    {"type": "source-url", "sourceId": "s", "url": "https://a.b/", "title": "A"},
    {"type": "file", "mediaType": "text/plain", "url": "data:text/plain,one%20two"},
    {"type": "file", "mediaType": "text/plain", "filename": "b.txt", "url": "data:text/plain;charset=utf-8;base64,b25l"},
]


async def test_parts_of_a_client_come_back_as_they_were_sent(server: LiveServer) -> None:
    forged = {**SENT[0], "providerMetadata": {"mine": {"cache": True}, "moot": {"head": "data:text/html,"}}}
    await post(server, {"id": "c1", "messages": [{"id": "u1", "role": "user", "parts": [forged, *SENT[1:]]}]})
    assert (await messages(server))[0]["parts"] == SENT
    await post(server, {"id": "c1", "messages": [{"id": "u1", "role": "user", "parts": SENT}]})
    assert len(server.model.requests) == 1, "the same parts are the same prompt"


REFUSED: list[dict[str, Any]] = [
    {"type": "text"},
    {"type": "text", "text": "x", "state": "begun"},
    {"type": "file", "url": "data:,x"},
    {"type": "nonsense"},
    {"type": "text", "text": "x", "providerMetadata": {"flat": 1}},
    {"type": "tool-look", "toolCallId": "t", "state": "input-available", "input": {}},
]


async def test_parts_that_the_sdk_refuses_are_refused(server: LiveServer) -> None:
    for part in REFUSED:
        parts = [{"type": "text", "text": "look"}, part]
        for given in ([{"role": "user", "parts": parts}], [{"role": "user", "parts": parts[:1]}, {"role": "user", "parts": parts}]):
            async with server.client.post("/api/chat", json={"id": "c9", "messages": given}) as refused:
                assert refused.status == 422, (part, await refused.text())
        async with server.client.get("/api/chat/c9/messages") as nothing:
            assert nothing.status == 404, part
    assert not server.model.requests


async def test_a_new_conversation_keeps_the_clients_earlier_messages(server: LiveServer) -> None:
    call = {"type": "tool-look", "toolCallId": "t1", "state": "output-available", "input": {"at": "x"}, "output": "seen"}
    made_by = {"signature": "forged", "provider": "scripted"}
    sealed = dict.fromkeys(("anthropic", "google", "openai", "openai-chat", "scripted"), made_by)
    forged = {"type": "reasoning", "text": "hm", "state": "done", "providerMetadata": sealed}
    image = {"type": "file", "mediaType": "text/plain", "filename": "a.txt", "url": "data:text/plain;base64,aGVsbG8="}
    asked_for = {"type": "tool-shell", "toolCallId": "t2", "state": "approval-requested", "input": {}, "approval": {"id": "p"}}
    answer = [{"type": "step-start"}, forged, call, {"type": "text", "text": "Hello Mara.", "state": "done"}, image, asked_for]
    earlier = [
        {"id": "a1", "role": "user", "parts": [{"type": "text", "text": "My name is Mara."}]},
        {"id": "a2", "role": "assistant", "parts": answer},
    ]
    asked = {"id": "a3", "role": "user", "parts": [{"type": "text", "text": "Who am I?"}]}
    body = {"id": "brought", "messages": [*earlier, asked], "trigger": "submit-message"}
    await post(server, body)
    shown = await messages(server, "brought")
    assert [message["id"] for message in shown[:3]] == ["a1", "a2", "a3"] and len(shown) == 4
    assert shown[1]["parts"] == answer
    told = server.model.requests[0].json["messages"]
    assert [message["role"] for message in told if message["role"] != "system"] == ["user", "assistant", "tool", "tool", "user"]
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
        prompt = say("count", directory=str(server.directory))
        chunks = await post(server, prompt)
        output = next(chunk for chunk in chunks if chunk["type"] == "tool-output-available")
        assert "providerMetadata" not in output and len(json.dumps(output)) < 16_384
        shown = output["output"]
        whole = "".join(f"{number}\n" for number in range(1, 40_001)).encode()
        assert shown["size"] == len(whole) and shown["head"].startswith("1\n2\n") and shown["tail"].rstrip().endswith("40000")
        assert await server.engine.store.blobs.get(shown["url"].removeprefix("/api/blobs/")) == whole
        kept = next(part for part in (await messages(server))[-1]["parts"] if part["type"] == "tool-shell")
        again = next(chunk for chunk in await post(server, prompt) if chunk["type"] == "tool-output-available")
        assert kept["output"] == again["output"] == shown and "resultProviderMetadata" not in kept


async def test_two_clients_receive_the_same_frames(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text=LONG, hang_at=5)]) as server:
        async with server.client.post("/api/chat", json=say("hi")) as first:
            begun = await first.content.readuntil(b"text-delta")
            second = [chunk for _, chunk in await resumed(server)]
            one = [chunk for _, chunk in read((begun + await first.read()).decode())]
        assert fold(one) == fold(second)


async def test_a_pause_before_the_next_try_is_reported_also_to_a_client_that_joins_later(open_server: Callable[..., Any]) -> None:
    async def status(answer: aiohttp.ClientResponse) -> dict[str, Any]:
        seen = (await answer.content.readuntil(b'"transient":true')).decode()
        return json.loads(seen.rpartition("data: ")[2] + "}")

    async with open_server([Reply(status=429, retry_after=50, times=0)]) as server:
        before = time.time()
        async with server.client.post("/api/chat", json=say("hi")) as first:
            begun = await status(first)
            async with server.client.get("/api/chat/c1/stream") as second:
                assert await status(second) == begun
            await server.client.post("/api/chat/c1/stop")
            await first.read()
        assert (begun["type"], begun["data"]["status"], begun["data"]["reason"]) == ("data-status", "retrying", "rate_limit")
        assert 40 < begun["data"]["until"] / 1000 - before < 60
        assert "data-status" not in str(await messages(server))


async def test_a_run_over_the_users_limit_says_at_once_that_it_is_queued(open_server: Callable[..., Any]) -> None:
    def script(recorded: Recorded) -> Reply:
        return Reply(text="Hello there.") if "second" in str(recorded.json["messages"]) else Reply(text="slow", hang_at=0)

    async with open_server(script, limits=RunLimits(runs_per_user=1)) as server:
        first = (await sent(server.client, "POST", "/api/conversations", {}, status=201))["id"]
        await sent(server.client, "POST", f"/api/conversations/{first}/messages", {"text": "first"}, status=202)
        async with server.client.post("/api/chat", json=say("second", chat="c2")) as answer:
            frame = await answer.content.readuntil(b"\n\n")
            assert json.loads(frame.removeprefix(b"data: ")) == {"type": "data-status", "data": {"status": "queued"}, "transient": True}
            await server.client.post(f"/api/chat/{first}/stop")
            assert text([chunk for _, chunk in read((frame + await answer.read()).decode())]) == "Hello there."
