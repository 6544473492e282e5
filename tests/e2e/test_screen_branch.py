"""The transcript on the screen is the branch that the next request sends, whatever the user did before."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from aiohttp import web
from anyio.from_thread import start_blocking_portal

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import PtyScreen
from moot.cli.repl.screen import HINT
from moot.testing._server import Recorded
from moot.testing.script import Reply, ToolCall
from moot.testing.scripted import ScriptedServer

pytestmark = pytest.mark.slow

ESCAPE, ENTER, CTRL_C, CTRL_X = "\x1b", "\r", "\x03", "\x18"
TOKEN = re.compile(r"\b[prs]\d+\b")
"""Prompts, replies and steering messages, each with a number of its own."""
LIVE = "Esc to stop"
SECONDS = 60


class GatedServer(ScriptedServer):
    """A model whose answer to a prompt with the word `hold` does not end before `release`."""

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.held: dict[int, asyncio.Event] = {}

    def _reply(self, recorded: Recorded) -> Reply:
        number, last = len(self.requests), recorded.messages[-1]
        text = f"reply r{number} to that"
        if last["role"] == "user" and "call" in recorded.user_text:
            return Reply(tool_calls=[ToolCall("write_file", {"path": f"made{number}.txt", "content": "line one\nline two"})])
        if last["role"] == "user" and "hold" in recorded.user_text:
            self.held[number] = asyncio.Event()
            return Reply(text=text, model=f"held-{number}")
        return Reply(text=text)

    async def _writes(self, reply: Reply, made: list[bytes], recorded: Recorded, request: web.Request) -> AsyncIterator[bytes]:
        gate = self.held.get(int(reply.model.removeprefix("held-"))) if reply.model.startswith("held-") else None
        for data in made:
            while gate is not None and b'"finish_reason":"stop"' in data.replace(b" ", b"") and not gate.is_set():
                if request.transport is None or request.transport.is_closing():
                    recorded.hung_up = True
                    return
                await asyncio.sleep(0.01)
            yield data


class Viewer:
    """The screen of a terminal, as its user sees it."""

    def __init__(self, screen: PtyScreen) -> None:
        self.screen = screen
        self.done: list[str] = []

    def transcript(self) -> list[str]:
        """Return the tokens of the conversation on the screen."""
        tokens: list[str] = []
        for line in [*self.screen.history, *self.screen.lines]:
            if line.startswith(("New conversation", "Switched to “", "Back to the start")):
                tokens = []
            elif line.startswith("Back to “"):
                prompt = TOKEN.findall(line)[0]
                del tokens[len(tokens) - 1 - tokens[::-1].index(prompt) :]
            elif not line.startswith("Added to the running answer"):
                tokens += TOKEN.findall(line)
        return tokens

    @property
    def live(self) -> bool:
        return any(LIVE in line for line in self.screen.lines)

    @property
    def asked(self) -> bool:
        return "[y] yes, once" in "".join(self.screen.lines)

    @property
    def typed(self) -> str | None:
        """The text in the input line, or None if the screen is not drawn completely."""
        lines = [line for line in self.screen.lines if line]
        start = max((at for at, line in enumerate(lines) if line.startswith("›")), default=None)
        if start is None or not lines[-1].startswith("scripted@mine"):
            return None
        typed = "\n".join(lines[start:-1])[1:].strip()
        return "" if typed == HINT else typed

    @property
    def draft(self) -> list[str]:
        """The tokens in the input line."""
        return TOKEN.findall(self.typed or "")

    def wait(self, true: Callable[[], object], what: str) -> None:
        end = time.monotonic() + SECONDS
        while not true():
            self.screen.read(0.02)
            assert time.monotonic() < end, f"{what}, after {self.done}:\n{self.screen.text}"
            assert self.screen.child.isalive(), self.screen.text

    def sees(self, text: str) -> None:
        self.wait(lambda: text in self.screen.text, f"not on the screen: {text}")


class Player(Viewer):
    """A user of one terminal. Each action waits for what the screen shows, and each prompt checks what the model received."""

    def __init__(self, server: GatedServer, screen: PtyScreen, seed: int) -> None:
        super().__init__(screen)
        self.server, self.random = server, random.Random(seed)
        self.numbers = 0
        self.checked = 0
        self.waiting: list[str] = []
        """Tokens that were queued or steered, and are not in a request yet."""
        self.titles: list[str] = []
        """First prompts of the conversations, which are their titles."""
        self.title = ""
        self.left: set[str] = set()
        """Conversations whose question was left unanswered. It is asked again when they are opened."""

    def _token(self, kind: str) -> str:
        self.numbers += 1
        return f"{kind}{self.numbers}"

    def type(self, text: str) -> None:
        self.done.append(text)
        self.screen.send(text)
        self.wait(lambda: text.split()[0] in "".join(self.screen.lines), f"not typed: {text}")

    def _rest(self) -> None:
        """Wait until no answer is written or waited for, and empty the input line."""
        self.wait(lambda: self.typed is not None and not self.live and "queued" not in "".join(self.screen.lines), "still busy")
        if self.typed:
            self.screen.send(CTRL_C)
            self.wait(lambda: self.typed == "", "the draft is still there")

    def prompt(self, word: str = "", *, until: str = "answered") -> None:
        """Send a prompt from rest, and compare the request with what was on the screen before it."""
        self._rest()
        before, count, token = self.transcript(), len(self.server.requests), self._token("p")
        self.type(f"{token} {word}".strip())
        if not self.title:
            self.title = f"{token} {word}".strip()
            self.titles.append(self.title)
        self.left.discard(self.title)
        self.screen.send(ENTER)
        self.wait(lambda: len(self.server.requests) > count, "no request")
        self._compare(self.server.requests[count], [*before, token])
        if until == "answered":
            self.sees(f"r{count + 1} to that")
            self._rest()
        elif until == "live":
            self.sees(f"r{count + 1} to that")
            self.wait(lambda: self.live, "not live")
        else:
            self.wait(lambda: self.asked, "not asked")

    def _compare(self, recorded: Recorded, wanted: list[str]) -> None:
        texts = [json.dumps(message.get("content")) for message in recorded.messages if message["role"] != "system"]
        sent = TOKEN.findall("\n".join(texts).replace("\\n", " "))
        assert sent == wanted, f"sent {sent}, shown {wanted}, after {self.done}:\n{self.screen.text}"
        self.checked += 1

    def queue(self) -> None:
        token = self._token("p")
        self.type(token)
        self.screen.send(ENTER)
        self.wait(lambda: any("queued" in line and token in line for line in self.screen.lines), "not queued")
        self.waiting.append(token)

    def steer(self) -> None:
        token = self._token("s")
        self.type(token)
        self.screen.send(CTRL_X + "s")
        self.wait(lambda: token not in self.draft and token in self.screen.text, "not steered")
        self.waiting.append(token)

    def escape(self) -> None:
        self.done.append("Esc")
        stopped = self.screen.text.count("stopped: cancelled")
        self.screen.send(ESCAPE)
        self.wait(lambda: self.screen.text.count("stopped: cancelled") > stopped, "not stopped")
        self.wait(lambda: sorted(self.draft) == sorted(self.waiting), "the words did not return")
        self.waiting.clear()
        self._rest()

    def _release(self) -> None:
        """Let all held answers end."""
        self.done.append("release")
        for gate in self.server.held.values():
            gate.set()

    def finish(self) -> None:
        """Let all answers end, including those to queued and steered prompts."""
        self._release()
        bodies = self.server.requests
        self.wait(lambda: all(any(token in TOKEN.findall(one.user_text) for one in bodies) for token in self.waiting), "not sent")
        self.waiting.clear()
        self._rest()

    def retry(self) -> None:
        self._rest()
        count, before = len(self.server.requests), self.transcript()
        if not before:
            return
        self.type("/retry")
        self.screen.send(ENTER)
        if self.title not in self.left:
            self.wait(lambda: len(self.server.requests) > count, "no request")
        self.wait(lambda: f"r{count + 1} to that" in self.screen.text or self.asked, "no answer")
        if self.asked:
            self.decide("y")
        self.finish()

    def new(self) -> None:
        self.type("/new")
        self.screen.send(ENTER)
        self.wait(lambda: not self.transcript(), "no new conversation")
        self.title = ""
        self._rest()

    def back(self) -> None:
        """Continue another conversation, and let its answer end."""
        others = [title for title in self.titles if title != self.title]
        if others:
            self._rest()
            self.title = self.random.choice(others)
            shown = self.screen.text.count("Switched to “")
            self.type(f"/continue {self.title}")
            self.screen.send(ENTER)
            self.wait(lambda: self.screen.text.count("Switched to “") > shown, "not continued")
            if self.title in self.left:
                self.wait(lambda: self.asked, "not asked again")
                self.decide(self.random.choice(("y", "n", ESCAPE)))

    def decide(self, key: str) -> None:
        self.done.append(key)
        (self.left.add if key == ESCAPE else self.left.discard)(self.title)
        answer = f"r{len(self.server.requests) + 1} to that"
        while self.asked:  # a key pressed too early does not count
            self.screen.send(key)
            self.screen.read(1.0)
        self.sees("Waiting for your approval" if key == ESCAPE else answer)
        self._rest()

    def _resize(self) -> None:
        columns = self.random.choice((60, 80, 100))
        self.done.append(f"{columns} columns")
        self.screen.resize(24, columns)

    def play(self, steps: int) -> None:
        for _ in range(steps):
            action = self.random.choice(("prompt", "busy", "busy", "busy", "call", "retry", "new", "leave", "back", "_resize"))
            match action:
                case "busy":
                    self.prompt("hold", until="live")
                    for _ in range(self.random.randint(0, 3)):
                        self.random.choice((self.queue, self.steer))()
                    self.random.choice((self.escape, self.finish))()
                case "call":
                    self.prompt("call", until="asked")
                    self.decide(self.random.choice(("y", "n", ESCAPE)))
                case "leave":
                    self.prompt("hold", until="live")
                    self.new()
                    self.finish()
                case "back":
                    self.back()
                    self.finish()
                case _:
                    getattr(self, action)()
        self.finish()
        self.prompt()


@pytest.fixture(scope="module")
def server() -> Iterator[GatedServer]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(GatedServer()) as server:
        yield server


@pytest.fixture
def player(tmp_path: Any, server: GatedServer, request: pytest.FixtureRequest) -> Iterator[Player]:
    server.requests.clear()
    server.held.clear()
    entry = {"dialect": "openai-chat", "base_url": server.openai_url, "api_key": "k", "models": {"scripted": {"context": 100000}}}
    moot: MootProcess = make(tmp_path, json.dumps({"models": {"main": "scripted@mine"}, "providers": {"mine": entry}}))
    screen = PtyScreen(moot)
    screen.wait_for("scripted@mine · ask", SECONDS)
    yield Player(server, screen, getattr(request, "param", 0))
    screen.close()
    moot.close()


def test_after_queue_steer_and_escape_the_screen_shows_what_the_next_request_sends(player: Player) -> None:
    player.prompt("hold", until="live")
    player.queue()
    player.steer()
    player.screen.send(ESCAPE)
    player.wait(lambda: player.draft == ["s3", "p2"], "the words did not return")
    player.waiting.clear()
    player.prompt()
    player.prompt()
    player.retry()
    player.sees("Back to “p5”")
    player.prompt()
    assert player.checked == 4


def test_leaving_a_live_answer_says_so_and_prints_nothing_of_it_later(player: Player) -> None:
    player.prompt("hold", until="live")
    player.new()
    player.sees("Still running: moot chat attach")
    player.prompt()
    assert not player.live
    player.back()
    player.wait(lambda: player.live, "the answer is not live again")
    player.finish()
    player.prompt()
    assert player.checked == 3


def test_retry_after_an_approval_was_left_shows_the_change(player: Player) -> None:
    player.prompt("call", until="asked")
    player.decide(ESCAPE)
    player.type("/retry")
    player.screen.send(ENTER)
    player.wait(lambda: player.asked, "not asked again")
    player.decide("y")
    player.sees("✓ Write made1.txt")
    assert player.screen.text.rindex("+line two") > player.screen.text.rindex("✓ Write made1.txt")
    player.type("/effort low")
    player.screen.send(ENTER)
    player.sees("· effort low")
    player.type("/effort default")
    player.screen.send(ENTER)
    player.wait(lambda: "effort low" not in player.screen.lines[-1] and "Effort set to default" in player.screen.text, "still low")
    player.prompt()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("player", range(1, 5), indirect=True)
def test_the_screen_shows_what_the_next_request_sends_under_random_sequences(player: Player) -> None:
    player.play(12)
    assert player.checked
