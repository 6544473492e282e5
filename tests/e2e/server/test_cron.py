"""The routes of cron jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from e2e.server.http_calls import got, sent
from moot.testing.script import Reply

pytestmark = pytest.mark.anyio

DAILY = {"name": "daily", "prompt": "What changed?", "cron": "0 9 * * *", "tz": "Europe/Berlin"}


async def test_a_job_is_added_run_paused_and_removed(server: Any) -> None:
    added = await sent(server.client, "POST", "/api/cron", DAILY, 201)
    assert (added["name"], added["cron"], added["every"], added["paused"], added["last"]) == ("daily", "0 9 * * *", 0, False, None)
    started = await sent(server.client, "POST", "/api/cron/daily/run", status=202)
    assert started["run"] and started["conversation"]
    with anyio.fail_after(60):
        while (entries := (await got(server.client, "/api/cron/daily/history"))["data"])[0]["status"] != "finished":
            await anyio.sleep(0.01)
    assert entries[0]["run"] == started["run"] and len(entries) == 1
    (listed,) = (await got(server.client, "/api/cron"))["data"]
    assert listed["last"]["status"] == "finished" and listed["next"] == added["next"]
    assert (await sent(server.client, "POST", "/api/cron/daily/pause"))["next"] is None
    assert (await sent(server.client, "POST", "/api/cron/daily/resume"))["next"]
    await sent(server.client, "DELETE", "/api/cron/daily")
    await got(server.client, "/api/cron/daily", 404)
    assert len((await got(server.client, "/api/cron/daily/history"))["data"]) == 1


@pytest.mark.parametrize(
    ("changes", "status", "problem"),
    [
        ({"cron": "61 * * * *"}, 422, "bad minute"),
        ({"every": "1h"}, 422, "exactly one"),
        ({"tz": "Mars/Olympus"}, 422, "Unknown time zone"),
        ({"deliver": "pigeon:coo"}, 422, "Available: log"),
        ({"agent": "nobody"}, 422, "nobody"),
        ({"conversation": "nowhere"}, 404, "nowhere"),
        ({"name": "../x"}, 422, "name"),
        ({"directory": "relative"}, 422, "absolute"),
        ({"surprise": 1}, 422, "surprise"),
    ],
)
@pytest.mark.slow
async def test_a_mistake_is_explained(server: Any, changes: dict[str, Any], status: int, problem: str) -> None:
    async with server.client.post("/api/cron", json={**DAILY, **changes}) as answer:
        assert problem in await answer.text() and answer.status in (status, 400)
    assert (await got(server.client, "/api/cron"))["data"] == []


async def test_reading_needs_the_scope_chat_and_changes_need_tools(server: Any) -> None:
    await sent(server.client, "POST", "/api/cron", DAILY, 201)
    async with server.caller(scopes=("read",)) as reader:
        await got(reader, "/api/cron", 403)
    async with server.caller(scopes=("chat",)) as chatter:
        assert len((await got(chatter, "/api/cron"))["data"]) == 1
        for path in ("/api/cron", "/api/cron/daily/run", "/api/cron/daily/pause", "/api/cron/daily/resume"):
            await sent(chatter, "POST", path, DAILY if path == "/api/cron" else None, 403)
        await sent(chatter, "DELETE", "/api/cron/daily", status=403)


async def test_jobs_of_other_users_do_not_exist(server: Any) -> None:
    await sent(server.client, "POST", "/api/cron", DAILY, 201)
    mara = (await server.engine.store.tokens.user("mara")).id
    async with server.caller(scopes=("tools",), owner=mara) as hers:
        assert (await got(hers, "/api/cron"))["data"] == []
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/run"), ("POST", "/pause"), ("GET", "/history")):
            await sent(hers, method, f"/api/cron/daily{path}", status=404)
        await sent(hers, "POST", "/api/cron", {**DAILY, "directory": str(server.directory)}, 403)
        assert (await sent(hers, "POST", "/api/cron", DAILY, 201))["directory"] == ""
    assert len((await got(server.client, "/api/cron"))["data"]) == 1


async def test_a_job_that_is_due_runs_in_a_server(open_server: Callable[..., Any]) -> None:
    async with open_server([Reply(text="Tock.", times=0)]) as server:
        await sent(server.client, "POST", "/api/cron", {"name": "tick", "prompt": "tick", "every": "1s"}, 201)
        with anyio.fail_after(60):
            while not [one for one in (await got(server.client, "/api/cron/tick/history"))["data"] if one["status"] == "finished"]:
                await anyio.sleep(0.05)
        await sent(server.client, "DELETE", "/api/cron/tick")
