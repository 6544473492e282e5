"""Conversations, messages and runs over a real socket."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import anyio
import pytest
from yarl import URL

from conformance.stores import prompt
from e2e.server.conftest import LiveServer
from e2e.server.http_calls import Json, began, called, ended, got, said, sent
from e2e.server.stream_calls import post, say
from moot.server.routes.conversations import resource
from moot.testing.script import Reply
from moot.types.agent import Agent
from moot.types.event import Event
from moot.types.message import text_of
from moot.types.run import Run

pytestmark = pytest.mark.anyio

# ── conversations ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_conversation_is_created_listed_updated_deleted_and_restored(server: LiveServer) -> None:
    made = await began(server, title="Plans", client_id="from-a-phone")
    assert (made["title"], made["title_source"], made["status"]) == ("Plans", "user", "standby")
    listed = await got(server.client, "/api/conversations")
    assert [item["id"] for item in listed["data"]] == [made["id"]] and listed["next_cursor"] is None
    assert (await got(server.client, "/api/conversations/from-a-phone"))["id"] == made["id"]
    path = f"/api/conversations/{made['id']}"
    changed = await sent(server.client, "PATCH", path, {"title": "Better", "archived": True, "settings": {"mode": "plan"}})
    assert (changed["title"], changed["settings"]) == ("Better", {"mode": "plan"}) and changed["archived_at"]
    assert (await got(server.client, "/api/conversations"))["data"] == []
    assert len((await got(server.client, "/api/conversations", archived="true"))["data"]) == 1
    deleted = await sent(server.client, "DELETE", path)
    assert deleted["deleted_at"]
    assert len((await got(server.client, "/api/conversations", deleted="true"))["data"]) == 1
    restored = await sent(server.client, "POST", f"{path}/restore")
    assert restored["deleted_at"] is None


async def test_conversations_are_pinned_and_tagged(server: LiveServer) -> None:
    ids = [(await began(server, title=title))["id"] for title in ("one", "two", "three")]

    async def listed(**filters: str) -> list[str]:
        return [item["title"] for item in (await got(server.client, f"/api/conversations?{urlencode(filters)}"))["data"]]

    path = f"/api/conversations/{ids[0]}"
    changed = await sent(server.client, "PATCH", path, {"pinned": True, "tags": ["release", "draft"]})
    assert changed["pinned_at"] and changed["tags"] == ["draft", "release"]
    assert await listed() == ["three", "two", "one"]
    assert await listed(pinned_first="true") == ["one", "three", "two"]
    assert (await listed(pinned="true"), await listed(pinned="false")) == (["one"], ["three", "two"])
    assert (await listed(tag="draft"), await listed(tag="none")) == (["one"], [])
    assert (await got(server.client, "/api/choices"))["tags"] == ["draft", "release"]
    refused = await sent(server.client, "PATCH", path, {"tags": ["Two words"], "title": "changed"}, 400)
    assert "lowercase" in refused["detail"] and (await got(server.client, path))["title"] == "one"
    changed = await sent(server.client, "PATCH", path, {"pinned": False, "tags": []})
    assert (changed["pinned_at"], changed["tags"]) == (None, [])


async def test_a_temporary_conversation_is_hidden_until_it_is_kept(server: LiveServer) -> None:
    made = await began(server, temporary=True)
    path = f"/api/conversations/{made['id']}"
    assert made["expires_at"] > made["created_at"]
    await sent(server.client, "POST", f"{path}/messages", {"text": "Go", "client_id": "a"}, 202)
    assert (await got(server.client, "/api/conversations"))["data"] == []
    assert (await sent(server.client, "PATCH", path, {"temporary": True}, 422))["detail"]
    kept = await sent(server.client, "PATCH", path, {"temporary": False})
    assert kept["expires_at"] is None
    assert [item["id"] for item in (await got(server.client, "/api/conversations"))["data"]] == [made["id"]]


async def test_the_list_is_filtered_by_agent_model_date_and_calls_of_programs(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Hello.", times=0)], agents={"default": Agent(), "reviewer": Agent("reviewer")}) as server:
        plain = await began(server, title="Plain")
        review = await began(server, title="Review", agent="reviewer", model="scripted@mine")
        body = {"model": "scripted@mine", "messages": [{"role": "user", "content": "Hello"}]}
        async with server.client.post("/v1/chat/completions", json=body) as answer:
            call = answer.headers["x-moot-conversation-id"]

        async def listed(**filters: str) -> set[str]:
            return {item["id"] for item in (await got(server.client, f"/api/conversations?{urlencode(filters)}"))["data"]}

        assert await listed() == {plain["id"], review["id"], call}
        assert await listed(agent="reviewer") == {review["id"]}
        assert await listed(model="scripted@mine") == {review["id"], call}
        assert await listed(called="true") == {call}
        assert await listed(called="false") == {plain["id"], review["id"]}
        assert await listed(since=str(review["updated_at"]), called="false") == {review["id"]}
        await sent(server.client, "POST", f"/api/conversations/{plain['id']}/messages", {"text": "Go", "client_id": "a"}, 202)
        assert plain["id"] in await listed(called="false"), "a prompt by other routes is not a call"
        period = {"since": str(plain["created_at"]), "until": str(review["created_at"])}
        assert await listed(**period) == {plain["id"]}, "active in the period, also if it continued later"
        assert await listed(host="local") == await listed()
        assert await listed(host="laptop") == set()
        found = await got(server.client, "/api/choices")
        assert (found["agents"], found["models"], found["calls"]) == (["default", "reviewer"], ["scripted@mine"], 1)


async def test_last_seq_is_not_newer_than_the_status(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await began(server)
    before = (await got(server.client, f"/api/conversations/{made['id']}"))["last_seq"]
    read = resource.live_statuses

    async def and_then_an_event(*given: Any) -> Any:
        found = await read(*given)
        await server.engine.store.log.append(made["id"], [Event("meta", body={"of": "a run that ended meanwhile"})])
        return found

    monkeypatch.setattr(resource, "live_statuses", and_then_an_event)
    assert (await got(server.client, f"/api/conversations/{made['id']}"))["last_seq"] == before


async def test_the_list_is_paginated_and_filtered(server: LiveServer) -> None:
    project = await sent(server.client, "POST", "/api/projects", {"name": "work"}, 201)
    names = ["plum", "quince", "pear", "medlar", "apple"]
    for number, name in enumerate(names):
        await began(server, title=f"number {name}", **({"project": project["id"]} if number % 2 else {}))
    first = await got(server.client, "/api/conversations", limit=3)
    rest = await got(server.client, "/api/conversations", limit=3, cursor=first["next_cursor"])
    assert [item["title"] for item in (*first["data"], *rest["data"])] == [f"number {name}" for name in reversed(names)]
    inside = await got(server.client, "/api/conversations", project=project["id"])
    assert [item["title"] for item in inside["data"]] == ["number medlar", "number quince"]
    assert len((await got(server.client, "/api/conversations", project="default"))["data"]) == 3
    assert [item["title"] for item in (await got(server.client, "/api/conversations", query="NUMBER quince"))["data"]] == ["number quince"]
    assert len((await got(server.client, "/api/conversations", host=""))["data"]) == 5
    assert (await got(server.client, "/api/conversations", host="laptop"))["data"] == []
    assert (await got(server.client, "/api/conversations", 400, cursor="nonsense"))["code"] == "usage"
    assert (await got(server.client, "/api/conversations", 422, limit=201))["code"] == "invalid"


async def test_an_etag_protects_against_concurrent_changes(server: LiveServer) -> None:
    made = await began(server, title="a")
    path = f"/api/conversations/{made['id']}"
    async with server.client.get(path) as answer:
        tag = answer.headers["etag"]
    async with server.client.get(path, headers={"if-none-match": tag}) as answer:
        assert answer.status == 304 and await answer.read() == b""
    await ended(server, await said(server, made["id"], "hello"))
    now = (await got(server.client, path))["head"]
    assert now is not None
    refused = await sent(server.client, "PATCH", path, {"title": "b"}, 412, headers={"if-match": tag})
    assert refused["code"] == "precondition_failed" and (await got(server.client, path))["title"] == "a"
    async with server.client.get(path) as answer:
        tag = answer.headers["etag"]
    assert (await sent(server.client, "PATCH", path, {"title": "b"}, headers={"if-match": tag}))["title"] == "b"
    assert (await sent(server.client, "DELETE", path, status=412, headers={"if-match": tag}))["code"] == "precondition_failed"


async def test_only_one_of_several_changes_with_the_same_etag_succeeds(server: LiveServer) -> None:
    made = await began(server, title="a")
    path = f"/api/conversations/{made['id']}"
    async with server.client.get(path) as answer:
        tag = answer.headers["etag"]
    statuses: list[int] = []

    async def change(number: int) -> None:
        async with server.client.patch(path, json={"title": f"number {number}"}, headers={"if-match": tag}) as answer:
            statuses.append(answer.status)

    async def look() -> None:
        await got(server.client, path)

    async with anyio.create_task_group() as group:  # connections are open before the changes, so that these arrive at the same moment
        for _ in range(20):
            group.start_soon(look)
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(change, number)
    assert sorted(statuses) == [200, *[412] * 19]


async def test_a_conversation_is_found_by_its_exact_id_only(server: LiveServer) -> None:
    made = await began(server, title="precious")
    for name in ("precious", made["id"][:20], made["id"].upper()):
        assert (await sent(server.client, "DELETE", f"/api/conversations/{name}", status=404))["code"] == "not_found"


async def test_invalid_changes_are_rejected_before_anything_changes(server: LiveServer) -> None:
    made = await began(server, title="as it is")
    path = f"/api/conversations/{made['id']}"
    unknown: list[tuple[Json, int]] = [({"agent": "nobody"}, 400), ({"model": "a@b"}, 400), ({"project": "x"}, 404), ({"head": "x"}, 404)]
    for wrong, status in unknown:
        assert (await sent(server.client, "PATCH", path, {"archived": True, "title": "other", **wrong}, status))["detail"]
    assert (await sent(server.client, "PATCH", path, {"colour": "red"}, 422))["code"] == "invalid"
    assert await got(server.client, path) == made
    for wrong in ({"directory": "relative"}, {"directory": "/no/such/folder"}, {"agent": "nobody"}):
        await sent(server.client, "POST", "/api/conversations", wrong, 400)
    await sent(server.client, "POST", "/api/conversations", {"project": "nowhere"}, 404)
    await began(server, client_id="twice")
    assert (await sent(server.client, "POST", "/api/conversations", {"client_id": "twice"}, 409))["code"] == "busy"
    assert len((await got(server.client, "/api/conversations"))["data"]) == 2


async def test_directories_and_permissive_modes_require_the_scope_tools(server: LiveServer) -> None:
    async with server.caller(scopes=["chat"]) as chat:
        refused = await sent(chat, "POST", "/api/conversations", {"directory": str(server.directory)}, 403)
        assert "tools" in refused["detail"]
        made = await sent(chat, "POST", "/api/conversations", {}, 201)
        await sent(chat, "PATCH", f"/api/conversations/{made['id']}", {"settings": {"mode": "auto"}}, 403)
        await sent(chat, "POST", f"/api/conversations/{made['id']}/messages", {"text": "go", "mode": "auto"}, 403)
        await sent(chat, "POST", "/api/projects", {"name": "etc", "root_path": "/etc"}, 403)
        await sent(chat, "PATCH", "/api/projects/default", {"root_path": "/etc"}, 403)
    async with server.caller(scopes=["read"]) as reader:
        await sent(reader, "POST", "/api/conversations", {}, 403)
        assert len((await got(reader, "/api/conversations"))["data"]) == 1


# ── messages ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_new_conversations_have_the_folders_of_their_agent_however_they_are_created(
    open_server: Callable[..., Any], directory: Path, tmp_path: Path
) -> None:
    further = str(tmp_path / "further")
    agents = {"default": Agent(allowed_uris=(further,)), "other": Agent()}
    async with open_server(agents=agents) as server:
        made = await began(server, directory=str(directory))
        assert made["settings"]["allowed_uris"] == [str(directory), further]
        assert (await began(server, directory=str(directory), agent="other"))["settings"].get("allowed_uris") is None
        earlier = [{"id": f"m{role}", "role": role, "parts": [{"type": "text", "text": "hi"}]} for role in ("user", "assistant")]
        for id, messages in (("new", []), ("history", earlier)):
            await post(server, {**say("go", chat=id), "messages": [*messages, *say("go")["messages"]], "directory": str(directory)})
            found = (await got(server.client, "/api/conversations", limit=1))["data"][0]
            assert (found["client_id"], found["settings"]["allowed_uris"]) == (id, [str(directory), further])
        async with server.caller(scopes=["tools"], owner="other") as client, client.post("/api/conversations", json={}) as answer:
            assert (await answer.json())["settings"].get("allowed_uris") is None


async def test_a_prompt_is_answered_and_its_messages_are_paginated(server: LiveServer) -> None:
    made = await began(server)
    path = f"/api/conversations/{made['id']}"
    for number in range(3):
        run = await ended(server, await said(server, made["id"], f"number {number}", client_id=f"m-{number}"))
        assert (run["status"], run["trigger"]) == ("finished", "api")
    last = await got(server.client, f"{path}/messages", limit=4)
    assert [text_of(message["parts"]) for message in last["data"]] == ["number 1", "Hello there.", "number 2", "Hello there."]
    older = await got(server.client, f"{path}/messages", limit=4, cursor=last["next_cursor"])
    assert [text_of(message["parts"]) for message in older["data"]] == ["number 0", "Hello there."] and older["next_cursor"] is None
    first = await got(server.client, f"{path}/messages", start="oldest", limit=4)
    assert [text_of(message["parts"]) for message in first["data"]] == ["number 0", "Hello there.", "number 1", "Hello there."]
    newer = await got(server.client, f"{path}/messages", start="oldest", limit=4, cursor=first["next_cursor"])
    assert newer["data"] == last["data"][2:] and newer["next_cursor"] is None
    await got(server.client, f"{path}/messages", 404, start="oldest", cursor="elsewhere")
    one = await got(server.client, f"{path}/messages/m-1")
    assert one == last["data"][0] and one["client_id"] == "m-1"
    found = await got(server.client, path)
    assert found["message_count"] == 6 and found["last_seq"] == await server.engine.store.log.last_seq(made["id"])


async def test_messages_are_edited_regenerated_and_forked(server: LiveServer) -> None:
    made = await began(server, title="tree")
    path = f"/api/conversations/{made['id']}"
    await ended(server, await said(server, made["id"], "first", client_id="m"))
    before = await got(server.client, path)
    await ended(server, await said(server, made["id"], "other words", edits="m"))
    shown = (await got(server.client, f"{path}/messages"))["data"]
    assert text_of(shown[0]["parts"]) == "other words"
    edited = await sent(server.client, "PUT", f"{path}/messages/{shown[1]['id']}", {"parts": [{"type": "text", "text": "mine"}]}, 201)
    tree = await got(server.client, f"{path}/tree")
    assert [node["line"] for node in tree["data"]] == ["first", "Hello there.", "other words", "Hello there.", "mine"]
    assert tree["head"] == edited["id"]
    back = await sent(server.client, "POST", f"{path}/head", {"message": "m"})
    assert back["head"] == before["head"]
    copy = await sent(server.client, "POST", f"{path}/fork", {"message": "m"}, 201)
    assert (copy["forked_from"], copy["message_count"], copy["title"]) == (made["id"], 1, "tree (fork)")
    hidden = await sent(server.client, "DELETE", f"{path}/messages/m")
    assert [message["role"] for message in (await got(server.client, f"{path}/messages"))["data"]] == ["assistant"]
    await sent(server.client, "POST", f"{path}/messages/{hidden['id']}/restore")
    assert len((await got(server.client, f"{path}/messages"))["data"]) == 2
    again = await ended(server, await sent(server.client, "POST", f"{path}/messages", {"answers": before["head"]}, 202))
    assert again["status"] == "finished" and again["message"] != before["head"]
    for wrong in (
        {"text": "x", "parts": [{"type": "text", "text": "y"}]},
        {"parts": [{"type": "file", "url": "file:///etc/passwd", "mediaType": "a/b"}]},
    ):
        await sent(server.client, "POST", f"{path}/messages", wrong, 400)


async def test_the_vendors_raw_bytes_can_be_read(server: LiveServer) -> None:
    made = await began(server)
    path = f"/api/conversations/{made['id']}"
    submitted = await said(server, made["id"], "hello", client_id="mine")
    run = await ended(server, submitted)
    raw = await got(server.client, f"{path}/raw", message=run["message"], limit=200)
    bodies = "".join(event.get("raw", "") for event in raw["data"])
    assert "data: " in bodies and "[DONE]" in bodies and {event["run"] for event in raw["data"]} == {run["id"]}
    first = await got(server.client, f"{path}/raw", limit=2)
    rest = await got(server.client, f"{path}/raw", limit=200, cursor=first["next_cursor"])
    seqs = [event["seq"] for event in (*first["data"], *rest["data"])]
    assert seqs == list(range(1, await server.engine.store.log.last_seq(made["id"]) + 1))
    (mine,) = (await got(server.client, f"{path}/raw", message="mine"))["data"]
    assert mine["kind"] == "message"
    assert (await got(server.client, f"{path}/raw", run=run["id"], limit=200))["data"] == raw["data"]


# ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_unread_prompts_are_listed_and_can_all_be_taken_back(open_server: Callable[..., Any]) -> None:
    async with open_server(lambda _: Reply(text="never ends", hang_at=3)) as server:
        made = await began(server)
        path = f"/api/conversations/{made['id']}"
        first = await said(server, made["id"], "one")
        await called(server)
        for _ in range(2):  # sent again after a lost answer
            await said(server, made["id"], "queued", on_busy="queue", client_id="q1")
            await said(server, made["id"], "steered", on_busy="steer", client_id="s1")
        await said(server, made["id"], "also queued", on_busy="queue")
        await said(server, made["id"], "also steered", on_busy="steer")
        queue = await got(server.client, f"{path}/queue")
        assert [text_of(run["prompt"]["parts"]) for run in queue["data"]] == ["queued", "also queued"]
        assert [(one["client_id"], text_of(one["parts"])) for one in queue["steered"]] == [("s1", "steered"), (None, "also steered")]
        one = f"{path}/queue/steered/{queue['steered'][1]['id']}"
        assert text_of((await sent(server.client, "DELETE", one))["parts"]) == "also steered"
        await sent(server.client, "DELETE", one, status=404)
        back = await sent(server.client, "DELETE", f"{path}/queue")
        assert [text_of(run["prompt"]["parts"]) for run in back["data"]] == ["queued", "also queued"]
        assert [text_of(one["parts"]) for one in back["steered"]] == ["steered"]
        assert await got(server.client, f"{path}/queue") == {"data": [], "next_cursor": None, "steered": []}
        await sent(server.client, "POST", f"/api/runs/{first['run']['id']}/cancel", status=202)
        await ended(server, first)
        shown = (await got(server.client, f"{path}/messages"))["data"]
        assert not any("steered" in text_of(message["parts"]) for message in shown)  # the page has the words in its composer


async def test_queued_prompts_are_listed_edited_and_removed(open_server: Callable[..., Any]) -> None:
    async with open_server(lambda _: Reply(text="never ends", hang_at=3)) as server:
        made = await began(server)
        path = f"/api/conversations/{made['id']}"
        first = await said(server, made["id"], "one")
        assert (await sent(server.client, "POST", f"{path}/messages", {"text": "two"}, 409))["code"] == "busy"
        second = await said(server, made["id"], "two", on_busy="queue")
        third = await said(server, made["id"], "three", on_busy="queue")
        queue = (await got(server.client, f"{path}/queue"))["data"]
        assert [(run["id"], text_of(run["prompt"]["parts"])) for run in queue] == [
            (second["run"]["id"], "two"),
            (third["run"]["id"], "three"),
        ]
        other = {"parts": [{"type": "text", "text": "3"}]}
        await sent(server.client, "PUT", f"{path}/queue/{second['run']['id']}", other, 409)
        await sent(server.client, "PUT", f"{path}/queue/{first['run']['id']}", other, 409)
        await sent(server.client, "PUT", f"{path}/queue/{third['run']['id']}", other, 202)
        removed = await sent(server.client, "DELETE", f"{path}/queue/{second['run']['id']}")
        assert removed["status"] == "cancelled"
        queue = (await got(server.client, f"{path}/queue"))["data"]
        assert [text_of(run["prompt"]["parts"]) for run in queue] == ["3"]
        await sent(server.client, "DELETE", f"{path}/queue/{first['run']['id']}", status=409)
        live = await got(server.client, "/api/runs", live="true")
        assert [run["status"] for run in live["data"]] == ["queued", "running"]
        assert live["data"][1]["process"]["pid"]
        assert (await got(server.client, "/api/conversations"))["data"][0]["status"] == "running"
        await sent(server.client, "POST", f"/api/runs/{queue[0]['id']}/cancel", status=202)
        await sent(server.client, "POST", f"/api/runs/{first['run']['id']}/cancel", status=202)
        assert (await ended(server, first))["status"] == "cancelled"
        page = await got(server.client, "/api/runs", limit=2, conversation=made["id"])
        rest = await got(server.client, "/api/runs", limit=9, conversation=made["id"], cursor=page["next_cursor"])
        assert [run["status"] for run in (*page["data"], *rest["data"])] == ["cancelled"] * 4
        assert (await got(server.client, "/api/runs", status="finished"))["data"] == []
        assert (await got(server.client, "/api/runs", 400, cursor="c1-2"))["code"] == "usage"
        assert (await sent(server.client, "POST", f"/api/runs/{first['run']['id']}/resume", status=400))["code"] == "usage"


async def test_a_run_whose_process_has_died_is_not_reported_as_running(server: LiveServer) -> None:
    accepted = await server.engine.store.records.submit(prompt(owner="a process that is gone"))
    run = accepted.run.id
    assert (await server.engine.store.records.run(run)).status == "running"
    assert (await got(server.client, "/api/runs", live="true"))["data"][0]["status"] == "interrupted"
    other = await server.engine.store.records.submit(prompt(owner="another"))
    assert (await got(server.client, f"/api/conversations/{other.conversation.id}"))["status"] == "interrupted"
    await sent(server.client, "POST", f"/api/runs/{run}/resume", status=202)
    assert (await ended(server, {"run": {"id": run}}))["status"] == "finished"


async def test_a_conversation_is_purged_only_with_the_flag(server: LiveServer) -> None:
    made = await sent(server.client, "POST", "/api/conversations", {"title": "a"}, status=201)
    path = f"/api/conversations/{made['id']}"
    receipt = await sent(server.client, "DELETE", f"{path}?purge=true")
    assert receipt["kind"] == "purge" and receipt["conversations"] == [made["id"]] and receipt["done_at"] and not receipt["left"]
    assert (await sent(server.client, "DELETE", f"{path}?purge=true", status=404))["code"] == "not_found"
    assert (await got(server.client, "/api/conversations", deleted="true"))["data"] == []


ODD = ["a/b", "/a", "a/", "a//b", "a?b=c", "a#b", "a b", "%2F", "a%", "..a", "../a", "a;b", "a\\b", "messages", "é☃", "/" * 128]


async def test_every_route_accepts_a_clients_id(server: LiveServer) -> None:
    for id in ODD:
        await use_every_route(server, id)


async def use_every_route(server: LiveServer, id: str) -> None:
    def at(path: str) -> URL:
        return URL(server.url + path.replace("ID", quote(id, safe="")), encoded=True)

    await post(server, say("hi", chat=id, id=id))
    paths = ["", "/messages", "/messages/ID", "/tree", "/raw", "/queue", "/export?format=json", "/replay"]
    for path in (*(f"/api/conversations/ID{path}" for path in paths), "/api/chat/ID/messages"):
        async with server.client.get(at(path)) as answer:
            assert answer.status == 200, (path, await answer.text())
    async with server.client.get(at("/api/chat/ID/stream")) as answer:
        assert answer.status in (200, 204), id
    async with server.client.get(at("/api/conversations/ID/events")) as answer:
        assert answer.status == 200, id
    changed = await server.client.patch(at("/api/conversations/ID"), json={"title": "x"})
    assert (await changed.json())["client_id"] == id
    for method, path, body in (
        ("POST", "/api/chat/ID/stop", None),
        ("POST", "/api/conversations/ID/fork", {"message": id}),
        ("DELETE", "/api/conversations/ID/messages/ID", None),
        ("POST", "/api/conversations/ID/messages/ID/restore", None),
        ("DELETE", "/api/conversations/ID", None),
        ("POST", "/api/conversations/ID/restore", None),
    ):
        async with server.client.request(method, at(path), json=body) as answer:
            assert answer.status in (200, 201), (path, await answer.text())


async def test_the_ids_that_clients_resolve_as_paths_are_rejected(server: LiveServer) -> None:
    for id in (".", ".."):
        assert (await server.client.post("/api/chat", json=say("hi", chat=id))).status == 422
        assert (await server.client.post("/api/chat", json=say("hi", id=id))).status == 422
        assert (await server.client.post("/api/conversations", json={"client_id": id})).status == 422


async def test_a_run_that_ends_while_its_status_is_read_is_not_shown(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await (await server.client.post("/api/conversations", json={})).json()

    async def just_ended(*_: object) -> list[Run]:
        return [Run("run", made["id"], "message", status="cancelled")]

    monkeypatch.setattr("moot.server.resources.current_runs", just_ended)
    answer = await server.client.get(f"/api/conversations/{made['id']}")
    assert (answer.status, (await answer.json())["status"]) == (200, "standby")
