"""A small agent that speaks the Agent Client Protocol. It echoes prompts or follows a script, which may violate the protocol.

Usage: `python acp_agent.py echo`, `python acp_agent.py slow`, or `python acp_agent.py SCRIPT.json`. It runs as a separate program and
imports nothing from moot. A script is an object:

| field | meaning |
|---|---|
| `begin` | steps before reading anything |
| `initialize`, `session` | fields that override those in the responses to `initialize` and to opening a session |
| `opening` | steps before opening a session; `loading`: steps after the response to `session/load` |
| `refuse` | method → error to return |
| `prompt` | steps of an answer; `$TEXT` is replaced by the prompt, `$ANSWER` by the response to the last request |
| `after` | steps after an answer |
| `ids` | `text`: response ids are strings, whatever the type of the request ids |
| `heard` | a file to which every received line is appended |
| `deaf` | cancel requests are ignored |
| `sessions` | a file for sessions, so that another process can continue them |

A step is an object with one of: `say`, `think` (text), `update` (of the session), `request` ({method, params}), `raw` (a literal line),
`stderr`, `sleep` (seconds), `exit` (an exit code), `close` (its stdout), `repeat` (a count, with `steps`), `stop` (ends the answer, with
`usage`).
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Object = dict[str, Any]

OPTIONS = [{"optionId": "y", "name": "Allow", "kind": "allow_once"}, {"optionId": "n", "name": "Reject", "kind": "reject_once"}]
CALL = {"toolCallId": "call_1", "title": "echo", "kind": "execute"}
SAID = [{"type": "content", "content": {"type": "text", "text": "$TEXT"}}]
ECHO: Object = {
    "prompt": [
        {"think": "thinking about it"},
        {"update": {"sessionUpdate": "tool_call", **CALL, "status": "pending", "rawInput": {"command": "echo"}}},
        {"request": {"method": "session/request_permission", "params": {"toolCall": CALL, "options": OPTIONS}}},
        {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed", "content": SAID}},
        {"say": "You said: "},
        {"say": "$TEXT"},
    ]
}
SLOW: Object = {"prompt": [{"say": "working on it"}, {"sleep": 60}]}


class Cancelled(Exception):
    """The answer was cancelled."""


class Agent:
    def __init__(self, script: Object) -> None:
        self.script = script
        self.inbox: queue.Queue[Object | None] = queue.Queue()
        self.kinds: dict[str, Callable[[Any, Object], object]] = {
            "say": lambda text, _: self._chunk("agent_message_chunk", text),
            "think": lambda text, _: self._chunk("agent_thought_chunk", text),
            "update": lambda update, _: self._update(update),
            "request": lambda request, _: self._request(request),
            "raw": lambda line, _: self._line(line),
            "stderr": lambda text, _: (sys.stderr.write(text), sys.stderr.flush()),
            "sleep": lambda seconds, _: self._wait(None, seconds),
            "exit": lambda code, _: os._exit(code),
            "close": lambda _value, _: os.close(1),
            "repeat": lambda times, step: [self._steps(step["steps"]) for _ in range(times)],
        }
        self.requests = 0
        self.text = ""
        self.answer = ""
        self.session = "session-1"
        self.waiting: list[Object] = []

    def _read(self) -> None:
        for line in sys.stdin:
            if heard := self.script.get("heard"):
                with Path(heard).open("a", encoding="utf-8") as file:
                    file.write(line)
            self.inbox.put(json.loads(line))
        self.inbox.put(None)

    def _send(self, message: Object) -> None:
        self._line(json.dumps({"jsonrpc": "2.0", **message}))

    def _line(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def serve(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()
        self._steps(self.script.get("begin", []))
        while True:
            message = self.waiting.pop(0) if self.waiting else self.inbox.get()
            if message is None:
                return
            if "method" in message and "id" in message:
                self._handle(message)

    def _handle(self, message: Object) -> None:
        method: str = message["method"]
        params: Object = message.get("params") or {}
        if method in self.script.get("refuse", {}):
            self._send({"id": message["id"], "error": self.script["refuse"][method]})
        elif method == "initialize":
            nothing: Object = {}
            session, prompt = {"resume": nothing}, {"image": True, "embeddedContext": True}
            can: Object = {"loadSession": True, "sessionCapabilities": session, "promptCapabilities": prompt}
            answer: Object = {"protocolVersion": 1, "agentCapabilities": can, "agentInfo": {"name": "double", "version": "1"}}
            self._reply(message, {**answer, **self.script.get("initialize", {})})
        elif method.startswith("session/") and method != "session/prompt":
            self._open(message, method, params)
        elif method == "session/prompt":
            self._prompt(message, params)
        else:
            self._reply(message, {})

    def _open(self, message: Object, method: str, params: Object) -> None:
        path = Path(self.script.get("sessions", ""))
        known: list[str] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
        if method == "session/new":
            self.session = f"session-{len(known) + 1}"
            if self.script.get("sessions"):
                path.write_text(json.dumps([*known, self.session]), encoding="utf-8")
            self._steps(self.script.get("opening", []))
            self._reply(message, {"sessionId": self.session, **self.script.get("session", {})})
        elif method in ("session/load", "session/resume") and known and params.get("sessionId") not in known:
            self._send({"id": message["id"], "error": {"code": -32002, "message": "no such session"}})
        else:
            self.session = params.get("sessionId", self.session)
            self._reply(message, self.script.get("session", {}))
            if method == "session/load":
                self._steps(self.script.get("loading", []))

    def _prompt(self, message: Object, params: Object) -> None:
        self.text = "".join(block.get("text", f"[{block.get('type')}]") for block in params.get("prompt", []))
        end: Object = {"stopReason": "end_turn"}
        try:
            end = self._steps(self.script["prompt"]) or end
        except Cancelled:
            end = {"stopReason": "cancelled"}
        self._reply(message, end)
        self._steps(self.script.get("after", []))

    def _reply(self, message: Object, result: Object) -> None:
        id = message["id"]
        self._send({"id": str(id) if self.script.get("ids") == "text" else id, "result": result})

    def _steps(self, steps: list[Object]) -> Object | None:
        for step in steps:
            if "stop" in step:
                return {"stopReason": step["stop"], **({"usage": step["usage"]} if "usage" in step else {})}
            kind = next(kind for kind in step if kind in self.kinds)
            self.kinds[kind](step[kind], step)
        return None

    def _chunk(self, kind: str, text: str) -> None:
        self._update({"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    def _update(self, update: Object) -> None:
        params = {"sessionId": update.get("sessionId", self.session), "update": self._filled(update)}
        self._send({"method": "session/update", "params": params})

    def _request(self, request: Object) -> None:
        self.requests += 1
        id = request.get("id", self.requests)
        self._send(
            {"id": id, "method": request["method"], "params": {"sessionId": self.session, **self._filled(request.get("params", {}))}}
        )
        found = self._wait(id, None)
        self.answer = json.dumps(found.get("result", found.get("error")))

    def _filled(self, value: Any) -> Any:
        """Replace the placeholders in a value."""
        text = json.dumps(value)
        terminal = json.loads(self.answer).get("terminalId", "") if self.answer.startswith("{") else ""
        for mark, known in (("$TEXT", self.text), ("$ANSWER", self.answer), ("$TERMINAL", str(terminal))):
            text = text.replace(mark, json.dumps(known)[1:-1])
        return json.loads(text)

    def _wait(self, id: int | str | None, seconds: float | None) -> Object:
        """Return the response to our request, or an empty one after the given time."""
        until = None if seconds is None else time.monotonic() + seconds
        while until is None or time.monotonic() < until:
            try:
                message = self.inbox.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            if message is None:
                if not self.script.get("deaf"):
                    os._exit(0)
                time.sleep(seconds or 60)
            elif message.get("method") == "session/cancel":
                if not self.script.get("deaf"):
                    raise Cancelled
            elif "method" in message:
                self.waiting.append(message)
            elif id is not None and message.get("id") == id:
                return message
        return {}


def main() -> None:
    mode = sys.argv[1] if len(sys.argv) > 1 else "echo"
    if mode in ("echo", "slow"):
        script = {"echo": ECHO, "slow": SLOW}[mode]
    else:
        script = json.loads(Path(mode).read_text(encoding="utf-8"))
    Agent(script).serve()


if __name__ == "__main__":
    main()
