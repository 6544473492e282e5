"""`moot serve --workers`: several processes share a port and a home, and the death of any of them loses nothing."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import urllib.error
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest

from e2e.server.conftest import ServedHome
from e2e.server.test_other_processes import HELLO, SLOWLY, WORDS, lines, run, shown
from e2e.server.test_serve import ask, eventually
from moot.server.processes.leader import Forwarding, connected, is_for_leader

pytestmark = pytest.mark.slow

STARTED = ("running", "queued")


@pytest.fixture
def home(serve_home: Callable[..., ServedHome]) -> ServedHome:
    return serve_home([SLOWLY, HELLO]).start("--workers", "3")


def workers(home: ServedHome) -> set[int]:
    """Return the process ids of the workers."""
    assert home.process is not None
    pid = home.process.pid
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split() if is_worker(int(child))}


def is_worker(pid: int) -> bool:
    return b"-P" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def leader(home: ServedHome) -> int:
    """Return the process id of the worker that listens on the leader's socket."""
    rows = [row.split() for row in Path("/proc/net/unix").read_text().splitlines() if row.endswith("/leader.sock")]
    inodes = {f"socket:[{row[6]}]" for row in rows if row[3] == "00010000"}  # listens

    def listens(pid: int) -> bool:
        return any(str(link.readlink()) in inodes for link in Path(f"/proc/{pid}/fd").iterdir())

    return next(pid for pid in workers(home) if listens(pid))


def prompt(chat: str, text: str) -> dict[str, Any]:
    message = {"id": f"{chat}-1", "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"id": chat, "message": message, "trigger": "submit-message"}


def say(home: ServedHome, chat: str, text: str, **more: str) -> str:
    """Send a prompt over a new connection and return the text of the streamed answer."""
    return text_of(lines(home, "/api/chat", method="POST", body={**prompt(chat, text), **more}))


def text_of(stream: Iterator[tuple[float, str]]) -> str:
    chunks = [json.loads(line[6:]) for _, line in stream if line.startswith("data: {")]
    return "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")


def counted(home: ServedHome, name: str) -> float:
    """Return a metric, summed over its labels."""
    text = "\n".join(line for _, line in lines(home, "/metrics"))
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{")))


def test_all_workers_answer_and_every_stream_is_complete_from_each(home: ServedHome) -> None:
    assert len(workers(home)) == 3
    with ThreadPoolExecutor(12) as pool:
        said = list(pool.map(lambda number: say(home, f"chat-{number}", "hi"), range(12)))
    assert said == ["Hello there."] * 12
    # each connection goes to a worker chosen by the kernel
    with ThreadPoolExecutor(12) as pool:
        sent = pool.submit(say, home, "slow", "slowly")
        assert eventually(lambda: ask(f"{home.url}/api/conversations/slow")[0] == 200)
        followed = list(pool.map(lambda _: text_of(lines(home, "/api/chat/slow/stream")), range(9)))
        assert sent.result() == WORDS
    assert followed == [WORDS] * 9
    assert counted(home, "moot_requests_total") >= 22 and counted(home, "moot_events_appended_total") >= 13 * 3
    found = ask(f"{home.url}/api/conversations?limit=100")[1]["data"]
    assert {one["id"] for one in found} >= {one["id"] for one in [ask(f"{home.url}/api/conversations/slow")[1]]} and len(found) == 13


def test_runs_of_other_workers_are_cancelled_and_every_worker_forwards_what_it_can_not_answer(home: ServedHome) -> None:
    with ThreadPoolExecutor(4) as pool:
        sent = [pool.submit(say, home, f"long-{number}", "slowly") for number in range(4)]
        assert eventually(lambda: len(live(home)) == 4)
        for one in live(home):
            assert ask(f"{home.url}/api/runs/{one['id']}/cancel", data={})[0] in (200, 202)
        assert eventually(lambda: not live(home))
        assert all(WORDS.startswith(one.result()) and one.result() != WORDS for one in sent)
    made = ask(f"{home.url}/api/conversations", data={"title": "Zoë & co"})[1]
    for _ in range(9):
        status, found = ask(f"{home.url}/api/conversations/{made['id']}?fields=a%2Fb")
        assert status == 200 and found["title"] == "Zoë & co"
        assert ask(f"{home.url}/api/conversations/none")[0] == 404
        assert ask(f"{home.url}/api/conversations", token="moot_wrong")[0] == 401


def answers(home: ServedHome) -> bool:
    try:
        return ask(f"{home.url}/api/session")[0] == 200
    except (ConnectionError, http.client.HTTPException, urllib.error.URLError):
        return False


def conversations(home: ServedHome) -> list[dict[str, Any]]:
    """Return all conversations, or none if the connection went to a worker that was just killed."""
    try:
        return ask(f"{home.url}/api/conversations?limit=100")[1]["data"]
    except (ConnectionError, http.client.HTTPException, urllib.error.URLError):
        return []


def live(home: ServedHome) -> list[dict[str, Any]]:
    return [one for one in ask(f"{home.url}/api/runs?live=true")[1]["data"] if one["status"] in STARTED]


def test_killing_any_worker_loses_nothing_and_it_is_replaced(home: ServedHome) -> None:
    first = workers(home)
    with ThreadPoolExecutor(6) as pool:
        sent = [pool.submit(say, home, f"kept-{number}", "slowly") for number in range(6)]
        assert eventually(lambda: len(live(home)) == 6)
        runs = [one["id"] for one in live(home)]
        for pid in sorted(first, key=lambda pid: pid == leader(home)):
            os.kill(pid, signal.SIGKILL)
            assert eventually(lambda: len(conversations(home)) == 6)
        for one in sent:
            one.exception()  # the connection to a killed worker breaks
        assert eventually(lambda: len(conversations(home)) == 6 and all(run(home, id)["status"] == "finished" for id in runs))
        assert eventually(lambda: len(workers(home)) == 3) and not workers(home) & first
        for number in range(6):
            assert shown(home, f"kept-{number}").endswith(WORDS)  # after the part that was streamed before the kill
    assert say(home, "later", "hi") == "Hello there."
    assert "it starts again" in home.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_all_workers(home: ServedHome, number: signal.Signals) -> None:
    first = workers(home)
    said = home.stop(number)
    assert home.process is not None and home.process.returncode == 0
    assert said.count("moot: stopped") == 1 and said.count("serving at") == 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in first)


def test_workers_stop_when_their_supervisor_is_killed_and_the_home_can_be_served_again(home: ServedHome) -> None:
    first = workers(home)
    assert home.process is not None
    home.process.kill()
    assert eventually(lambda: not any(Path(f"/proc/{pid}").exists() and is_worker(pid) for pid in first))
    home.start("--workers", "2")
    assert say(home, "again", "hi") == "Hello there." and len(workers(home)) == 2


def test_a_prompt_that_is_sent_again_to_another_worker_is_answered_once(home: ServedHome) -> None:
    with ThreadPoolExecutor(9) as pool:
        said = list(pool.map(lambda _: say(home, "once", "slowly"), range(9)))
    assert said == [WORDS] * 9
    assert len(ask(f"{home.url}/api/runs")[1]["data"]) == 1 and len(conversations(home)) == 1


def test_moot_web_starts_workers_and_replaces_them(home: ServedHome) -> None:
    home.stop()
    home.moot.more["MOOT_SERVER__WORKERS"] = "2"
    process: Any = home.moot.start("web", "--no-open", "--json", "--port", str(home.port))
    home.process = process
    assert f"{home.url}/#code=" in process.stdout.readline().decode()
    first = workers(home)
    assert len(first) == 2
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: len(workers(home) - first) == 2)
    assert eventually(lambda: conversations(home) == [] and answers(home))
    process.send_signal(signal.SIGTERM)
    printed, _ = process.communicate(timeout=60)
    assert printed == b""  # the new workers printed no link


def test_a_change_of_the_configuration_reaches_all_workers(home: ServedHome) -> None:
    path = home.moot.home / "config.yaml"
    path.write_text(path.read_text() + "\nagents:\n  herald: {description: New., instructions: Answer.}\n")

    def known() -> bool:
        with ThreadPoolExecutor(9) as pool:
            return set(pool.map(answers_as_herald, range(9))) == {True}

    def answers_as_herald(number: int) -> bool:
        try:
            return say(home, f"to-{number}-{uuid4()}", "hi", agent="herald") == "Hello there."
        except AssertionError:  # 400: unknown agent
            return False

    assert eventually(known)


def test_a_port_of_another_server_is_never_shared(home: ServedHome, tmp_path_factory: pytest.TempPathFactory) -> None:
    ended = home.moot.run("serve", "--workers", "2", "--port", str(home.port))
    assert ended.returncode != 0 and "already running" in ended.stderr.decode()
    home.moot.more["MOOT_HOME"] = str(tmp_path_factory.mktemp("other"))
    ended = home.moot.run("serve", "--workers", "2", "--port", str(home.port))
    assert ended.returncode == 2 and f"Port {home.port} on 127.0.0.1 is already in use" in ended.stderr.decode()


def test_a_worker_that_can_not_start_ends_the_server(home: ServedHome) -> None:
    home.stop()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        ended = home.moot.run("serve", "--workers", "2", "--port", str(other.getsockname()[1]))
    assert ended.returncode == 2


@pytest.mark.parametrize(
    ("path", "forwarded"),
    [
        ("/api/chat", False),
        ("/api/chat/a/stream", False),
        ("/api/chat/a/stop", True),
        ("/api/runs/a/events", False),
        ("/api/runs/a", True),
        ("/api/conversations/a/messages", False),
        ("/api/conversations/a/messages/b", True),
        ("/api/webhooks/build", False),
        ("/v1/responses/a", False),
        ("/api/conversations", True),
        ("/share/secret", True),
        ("/openapi.json", True),
        ("/metrics", False),
        ("/", False),
        ("/c/an-id", False),
    ],
)
def test_only_requests_about_runs_are_answered_by_every_worker(path: str, forwarded: bool) -> None:
    assert is_for_leader(path) is forwarded


async def forwarded(folder: Path, answer: bytes, *, body: bytes = b"") -> tuple[bytes, list[dict[str, Any]]]:
    """Forward a request to a leader that sends these bytes and closes. Return what the leader received and the worker's response."""
    received, sent, arrived = list[bytes](), list[dict[str, Any]](), anyio.Event()

    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(len(body)))
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def receive() -> Any:
        if arrived.is_set():
            await anyio.sleep_forever()
        arrived.set()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    async def unused(*_: object) -> None:
        raise AssertionError("the worker answered itself")

    length = [(b"content-length", str(len(body)).encode())] if body else []
    scope: Any = {
        "type": "http",
        "method": "POST" if body else "GET",
        "path": "/api/projects/a b",
        "raw_path": b"/api/projects/a%20b",
        "query_string": b"x=%2F",
        "client": ("203.0.113.9", 1),
        "headers": [(b"host", b"here:1"), (b"x-moot-client", b"forged"), (b"connection", b"close"), *length],
    }
    async with await asyncio.start_unix_server(lead, folder / "leader.sock"), connected(str(folder / "leader.sock")) as leader:
        with anyio.fail_after(60):
            await Forwarding(unused, leader)(scope, receive, send)
    return received[0], sent


@pytest.mark.anyio
async def test_requests_are_forwarded_as_they_are_with_the_address_of_the_client(tmp_path: Path) -> None:
    whole = b"HTTP/1.1 201 Created\r\nx-one: 1\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
    asked, sent = await forwarded(tmp_path, whole, body=b"{}")
    head, _, body = asked.partition(b"\r\n\r\n")
    line, *headers = head.split(b"\r\n")
    assert line == b"POST /api/projects/a%20b?x=%2F HTTP/1.1" and body == b"{}"
    assert [one for one in headers if one.lower().startswith((b"host", b"x-moot", b"content-length"))] == [
        b"host: here:1",
        b"content-length: 2",
        b"x-moot-client: 203.0.113.9",
    ]
    assert sent[0] == {"type": "http.response.start", "status": 201, "headers": [(b"x-one", b"1"), (b"content-length", b"2")]}
    assert b"".join(message["body"] for message in sent[1:]) == b"ok" and "more_body" not in sent[-1]


@pytest.mark.anyio
async def test_a_leader_that_ends_before_or_in_the_middle_of_its_response_is_reported(tmp_path: Path) -> None:
    _, sent = await forwarded(tmp_path, b"")
    assert sent[0]["status"] == 503 and b"has ended" in sent[1]["body"]
    _, sent = await forwarded(tmp_path, b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
    assert sent[0]["status"] == 200 and all(message["more_body"] for message in sent[1:])  # incomplete, so the connection breaks
