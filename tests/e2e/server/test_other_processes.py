"""A server next to other processes of its home: it streams their runs, finds interrupted ones, and survives its own restarts."""

from __future__ import annotations

import http.client
import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from e2e.server.conftest import FIXED, ServedHome
from e2e.server.test_serve import ask, eventually
from moot.testing.script import Reply

pytestmark = pytest.mark.slow

WORDS = "word " * 40
SLOWLY = Reply(when="slowly", text=WORDS, chunk_size=5, delay=0.03, times=0)
HELLO = Reply(text="Hello there.", times=0)


def lines(home: ServedHome, path: str, *, token: str = FIXED, method: str = "GET", body: Any = None) -> Iterator[tuple[float, str]]:
    """The lines of a stream with their arrival times."""
    with closing(http.client.HTTPConnection("127.0.0.1", home.port, timeout=60)) as connection:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"authorization": f"Bearer {token}", "content-type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        while line := answer.readline():
            yield time.time(), line.decode().rstrip("\n")


def events(home: ServedHome, conversation: str, after: int) -> Iterator[tuple[float, dict[str, Any]]]:
    for came, line in lines(home, f"/api/conversations/{conversation}/events?after={after}"):
        if line.startswith("data: {"):
            yield came, json.loads(line[6:])


def begun(home: ServedHome, text: str = "hi") -> tuple[str, int]:
    """Create a conversation with an answer. Return its id and last seq."""
    made = ask(f"{home.url}/api/conversations", data={"directory": str(home.moot.work)})[1]["id"]
    sent = ask(f"{home.url}/api/conversations/{made}/messages", data={"text": text})[1]
    assert eventually(lambda: run(home, sent["run"]["id"])["status"] == "finished")
    return made, run(home, sent["run"]["id"])["last_seq"]


def run(home: ServedHome, id: str) -> dict[str, Any]:
    return ask(f"{home.url}/api/runs/{id}")[1]


def shown(home: ServedHome, conversation: str) -> str:
    """Return the text of the last message."""
    last = ask(f"{home.url}/api/conversations/{conversation}/messages")[1]["data"][-1]
    return "".join(part.get("text", "") for part in last["parts"])


def test_events_of_another_process_are_streamed_while_it_runs(serve_home: Callable[..., ServedHome]) -> None:
    home = serve_home([SLOWLY, HELLO]).start()
    conversation, last = begun(home)
    watched = events(home, conversation, last)
    process = home.moot.start("run", "slowly", "-c", conversation, "--jsonl")
    times: list[tuple[float, float]] = []
    text, mine = "", ""
    for came, event in watched:
        last += 1
        assert event["seq"] == last
        mine = mine or event["run"] or ""
        times.append((event["at"] / 1_000_000, came))
        text += "".join(chunk["delta"] for chunk in event["chunks"] if chunk["type"] == "text-delta")
        if event.get("phase") == "end" and event.get("key") == "run":
            break
    assert text == WORDS and len(times) > 20
    assert process.wait(60) == 0
    assert process.stdout is not None
    told = [json.loads(line) for line in process.stdout.read().splitlines()]
    assert {event["run"] for event in told if event.get("run")} == {mine}
    ended = times[-1][0]
    assert sum(came < ended for _, came in times) > len(times) / 2


def test_a_running_server_finds_the_run_of_a_dead_terminal(serve_home: Callable[..., ServedHome]) -> None:
    home = serve_home([Reply(when="slowly", text="Half of an answer.", hang_at=2, times=0), HELLO]).start()
    conversation, last = begun(home)
    watched = events(home, conversation, last)
    process = home.moot.start("run", "slowly", "-c", conversation, "--jsonl")
    event = next(event for _, event in watched if any(chunk["type"] == "text-delta" for chunk in event["chunks"]))
    assert run(home, event["run"])["status"] == "running"
    process.kill()
    # nothing requests this run or writes to its conversation, so only the periodic sweep can find it
    assert eventually(
        lambda: "interrupted" in {one["status"] for one in ask(f"{home.url}/api/runs?conversation={conversation}")[1]["data"]}
    )
    sent = ask(f"{home.url}/api/conversations/{conversation}/messages", data={"text": "and now?"})
    assert sent[0] == 202, sent
    assert eventually(lambda: run(home, sent[1]["run"]["id"])["status"] == "finished")
    assert shown(home, conversation) == "Hello there."


def test_a_revoked_token_ends_every_stream_that_it_opened(serve_home: Callable[..., ServedHome]) -> None:
    home = serve_home([Reply(when="slowly", text="One two.", hang_at=2, times=0), HELLO]).start()
    conversation, last = begun(home)
    made = json.loads(home.moot.run("tokens", "create", "guest", "--scopes", "chat", "--json").stdout)
    chat = {"id": "revoked", "message": {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "slowly"}]}}
    streams = [
        lines(home, f"/api/conversations/{conversation}/events?after={last - 1}", token=made["secret"]),
        lines(home, "/api/chat", token=made["secret"], method="POST", body=chat),
    ]
    for stream in streams:
        next(stream)
    began = time.time()
    assert home.moot.run("tokens", "revoke", "guest").returncode == 0
    revoked = time.time()
    for stream in streams:
        ended = [(came, line) for came, line in stream if line.startswith(": cut: the token was revoked")]
        assert len(ended) == 1 and not list(stream)
        assert began < ended[0][0] < revoked + 30
    assert ask(f"{home.url}/api/session", token=made["secret"])[0] == 401


def test_a_signal_ends_streams_with_the_reason(serve_home: Callable[..., ServedHome]) -> None:
    home = serve_home().start()
    conversation, last = begun(home)
    watched = lines(home, f"/api/conversations/{conversation}/events?after={last - 1}")
    next(watched)
    assert home.process is not None
    home.process.send_signal(signal.SIGTERM)
    rest = [line for _, line in watched if line.startswith(": cut:")]
    assert rest == [f": cut: the server is stopping; resume with Last-Event-ID: {last}"]
    assert home.process.wait(60) == 0


def called(home: ServedHome, messages: list[dict[str, Any]], *, stream: bool = False, model: str = "agent:default") -> Any:
    body = {"model": model, "messages": messages, "stream": stream}
    if stream:
        return lines(home, "/v1/chat/completions", method="POST", body=body)
    return ask(f"{home.url}/v1/chat/completions", data=body)


def test_a_call_survives_a_restart_in_the_middle_of_its_answer(serve_home: Callable[..., ServedHome]) -> None:
    script = [Reply(when="slowly", text="Half of it.", hang_at=2), Reply(when="slowly", text="All of it."), HELLO]
    home = serve_home(script).start()
    streaming = called(home, [{"role": "user", "content": "slowly"}], stream=True)
    assert any("content" in line and "Half" in line for _, line in streaming)
    home.stop(signal.SIGKILL)
    with pytest.raises((http.client.HTTPException, ConnectionError)):  # the program sees a broken connection, not a regular end
        if "[DONE]" not in "".join(line for _, line in streaming):
            raise ConnectionError
    home.start()
    assert eventually(lambda: {one["status"] for one in ask(f"{home.url}/api/runs")[1]["data"]} == {"finished"})
    (found,) = ask(f"{home.url}/api/runs")[1]["data"]
    assert "All of it." in shown(home, found["conversation"])


def test_a_caller_continues_its_conversation_after_a_restart(serve_home: Callable[..., ServedHome]) -> None:
    home = serve_home().start()
    first = [{"role": "user", "content": "remember me"}]
    status, answer = called(home, first)
    assert status == 200
    home.stop()
    home.start()
    said = answer["choices"][0]["message"]["content"]
    status, _ = called(home, [*first, {"role": "assistant", "content": said}, {"role": "user", "content": "and again"}])
    assert status == 200
    runs = ask(f"{home.url}/api/runs")[1]["data"]
    assert len(runs) == 2 and len({one["conversation"] for one in runs}) == 1
