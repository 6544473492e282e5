"""The real `moot serve` with two scripted models, for browser tests, which have no event loop."""

from __future__ import annotations

import json
import secrets
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from e2e.cli_process import MootProcess, make
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall

_TO_ITSELF = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_SECONDS = 30.0

SLOWLY = "word " * 120
"""The answer of `scripted@told` to a prompt with "slowly" in it. It stops in the middle until `told.release()`."""

SCRIPT: Sequence[Reply] = (
    Reply(when="without end", text="word " * 8_000, chunk_size=5, delay=0.05, times=0),
    Reply(when="count to the end", tool_calls=[ToolCall("shell", {"command": "seq 1 6600000"})]),
    Reply(when="count to the end", text="counted " * 300, chunk_size=8, delay=0.01),
    Reply(when="slowly", text=SLOWLY, chunk_size=5, hang_at=40, times=0),
    Reply(when="too often", status=429, retry_after=50, times=0),
    Reply(when="silence", text="word", hang_at=0, times=0),
    Reply(when="long", text="A paragraph of an answer. " * 400, chunk_size=13, times=0),
    Reply(when="hostile", text=(Path(__file__).parent / "hostile.txt").read_text(encoding="utf-8"), chunk_size=400, times=0),
    Reply(when="", text="Hello from **the model**.", times=0),
)

CONFIG = """
models: {{main: obedient@mine}}
providers:
  mine: {{dialect: openai-chat, base_url: "{mine}", api_key: scripted-key, models: {{obedient: {{context: 100000}}}}}}
  told: {{dialect: openai-chat, base_url: "{told}", api_key: scripted-key, models: {{scripted: {{context: 100000}}}}}}
agents:
  reviewer: {{description: Reads and says what is wrong., instructions: Be brief., model: scripted@told}}
permissions: {{mode: ask, rules: [{{tool: shell, match: "git status*", action: allow}}]}}
"""


@dataclass
class Served:
    """A running server."""

    url: str
    token: str
    moot: MootProcess
    model: ScriptedProcess
    """Obeys the prompt: `say TEXT`, `call NAME {json}`."""
    told: ScriptedProcess
    """Answers from the script."""
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, on the same port as before if it has run already."""
        port = self.url.rpartition(":")[2] if self.url else "0"
        self.process = self.moot.start("serve", "--port", port, "--json")
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"moot serve said {self.process.communicate()[1].decode()}")
        self.url = str(json.loads(line)["url"])

    def kill(self) -> None:
        """Kill the server without warning."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the API's JSON response."""
        with self._send(method, path, body) as answer:
            content = answer.read()
        return json.loads(content) if content else None

    def ended(self, conversation: str) -> bool:
        """Return True if no run of the conversation is open."""
        return self.call("GET", f"/api/conversations/{conversation}")["status"] == "standby"

    def stop_runs(self) -> None:
        """Stop what still runs or is queued, and wait for that: the next prompt would wait behind it. Questions stay open."""
        for _ in range(600):
            live = [run for run in self.call("GET", "/api/runs?live=true")["data"] if run["status"] in ("queued", "running")]
            if not live:
                return
            for run in live:
                self.call("POST", f"/api/runs/{run['id']}/cancel")
            time.sleep(0.05)
        raise AssertionError(f"these runs don't end: {[run['id'] for run in live]}")

    def say(self, text: str, *, conversation: str = "", model: str = "", wait: bool = True, **more: str) -> str:
        """Send a prompt and, by default, read the answer's stream to its end. Return the conversation's id."""
        id = conversation or f"test-{uuid4().hex[:12]}"
        message = {"id": uuid4().hex, "role": "user", "parts": [{"type": "text", "text": text}]}
        body = {"id": id, "message": message, "trigger": "submit-message", **({"model": model} if model else {}), **more}
        with self._send("POST", "/api/chat", body) as answer:
            if wait:
                answer.read()
        return str(self.call("GET", f"/api/conversations/{id}")["id"])

    def login(self) -> str:
        """Return a one-time address that signs a browser in."""
        shown = self.moot.run("web", "--no-open", "--json")
        return f"{self.url}/#{str(json.loads(shown.stdout)['url']).partition('#')[2]}"

    def _send(self, method: str, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        return _TO_ITSELF.open(request, timeout=_SECONDS)


@contextmanager
def served(folder: Path, config: str = CONFIG, script: Sequence[Reply] = SCRIPT) -> Iterator[Served]:
    """Run a server with its own home in that folder for the duration of a block."""
    with ScriptedProcess(obey=True, models=("obedient",)) as model, ScriptedProcess(script) as told:
        moot = make(folder, config.format(mine=model.openai_url, told=told.openai_url))
        token = f"moot_{secrets.token_urlsafe(32)}"
        moot.more["MOOT_TOKEN"] = token
        try:
            one = Served("", token, moot, model, told)
            one.start()
            yield one
        finally:
            moot.close()
