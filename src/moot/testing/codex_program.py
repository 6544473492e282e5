"""A double of the Codex program, run as a script. It speaks the protocol of `codex app-server`.

Its first argument determines how it answers each prompt: `answer` says hello, `linger` does so slowly, `slow` continues until it is
interrupted, `hang` ignores interrupts, `crash` dies in the middle with an error, `silent` exits without output, `noise` adds lines that are
not JSON, `flood` writes a lot, `newer` sends unknown messages, `ask` asks to run a command, `patch` asks to change files, `withdraw` asks
and withdraws the request, `fail` reports a model error, `forget` has lost its sessions, `refuse` starts no session.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

THREAD = "01a20260-0000-7000-8000-000000000000"
_LINES = 3000
_COMMAND = {"command": "/bin/bash -lc 'ls -1'", "cwd": "/work"}
_CHANGES = [{"path": path, "kind": {"type": "add"}, "diff": "+x"} for path in ("/work/a.txt", "/work/b.txt")]


class _Double:
    def __init__(self) -> None:
        self._answers: dict[int, Any] = {}
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self.interrupted = threading.Event()
        self.behaviour = ""
        self.turn = ""
        self.prompts: list[str] = []

    def write(self, **message: Any) -> None:
        with self._writing:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def tell(self, method: str, **params: Any) -> None:
        self.write(method=method, params={"threadId": THREAD, "turnId": self.turn, **params}, emittedAtMs=0)

    def listen(self) -> None:
        """Read input until it ends. Each turn runs in its own thread."""
        for line in sys.stdin:
            message = json.loads(line)
            method, id = message.get("method"), message.get("id")
            if method is None:
                with self._changed:
                    self._answers[id] = message.get("result", {})
                    self._changed.notify_all()
            elif id is not None:
                self._request(method, id, message.get("params", {}))

    def _request(self, method: str, id: int, params: dict[str, Any]) -> None:
        if (self.behaviour, method) in (("forget", "thread/resume"), ("refuse", "thread/start")):
            self.write(id=id, error={"code": -32600, "message": f"no rollout found: {self.behaviour}"})
        elif method == "initialize":
            self.write(id=id, result={"userAgent": "double/0.0.0 (here)"})
        elif method.startswith("thread/"):
            self.write(id=id, result={"thread": {"id": THREAD}, "model": params.get("model", "double-1")})
            self.tell("thread/started", thread={"id": THREAD})
        elif method == "turn/start":
            self.turn = f"turn-{id}"
            self.prompts = [str(piece.get("text")) for piece in params["input"]]
            self.write(id=id, result={"turn": {"id": self.turn, "status": "inProgress"}})
            threading.Thread(target=BEHAVIOURS[self.behaviour], args=(self,), daemon=True).start()
        elif method == "turn/interrupt" and self.behaviour != "hang":
            self.interrupted.set()
            self.write(id=id, result={})

    def asks(self, id: int, method: str, **params: Any) -> None:
        self.write(id=id, method=method, params={"threadId": THREAD, "turnId": self.turn, **params})

    def answered(self, id: int) -> Any:
        with self._changed:
            self._changed.wait_for(lambda: id in self._answers)
            return self._answers[id]

    def says(self, text: str, item: str = "message", pause: float = 0) -> None:
        self.tell("item/started", item={"type": "agentMessage", "id": item, "text": ""})
        for word in text.split(" "):
            self.tell("item/agentMessage/delta", itemId=item, delta=f"{word} ")
            time.sleep(pause)
        self.tell("item/completed", item={"type": "agentMessage", "id": item, "text": f"{text} "})

    def speaks(self, text: str, pause: float = 0) -> None:
        """Write a whole turn."""
        self.begins()
        self.says(text, pause=pause)
        self.ends()

    def begins(self) -> None:
        self.tell("turn/started", turn={"id": self.turn, "status": "inProgress"})

    def ends(self, status: str = "completed", error: Any = None) -> None:
        count = {"inputTokens": 10, "outputTokens": 5, "cachedInputTokens": 0, "reasoningOutputTokens": 0, "totalTokens": 15}
        self.tell("thread/tokenUsage/updated", tokenUsage={"total": count, "last": count, "modelContextWindow": 100})
        self.tell("turn/completed", turn={"id": self.turn, "status": status, "error": error})


def answer(double: _Double) -> None:
    double.speaks(f"Hello: {double.prompts[0]}")


def linger(double: _Double) -> None:
    double.speaks("Hello from a double", pause=0.02)


def slow(double: _Double) -> None:
    double.begins()
    number = 0
    while not double.interrupted.wait(0.05) and number < _LINES:
        double.tell("item/agentMessage/delta", itemId="message", delta="on ")
        number += 1
    double.ends("interrupted")


def crash(double: _Double) -> None:
    double.begins()
    double.tell("item/agentMessage/delta", itemId="message", delta="Half an ans")
    double.tell("item/started", item={"type": "commandExecution", "id": "call", **_COMMAND})
    sys.stdout.write('{"method":"item/agentMess')
    sys.stdout.flush()
    sys.stderr.write("thread 'main' panicked: \x1b[31mout of luck\x1b[0m\n")
    sys.stderr.flush()
    _leave(101)


def noise(double: _Double) -> None:
    with double._writing:  # pyright: ignore[reportPrivateUsage]
        sys.stdout.write("Loading plugins...\n\n\x1b[2J{not json}\n[1, 2]\n")
        sys.stdout.buffer.write(b"\xff\xfe\n")
    answer(double)


def flood(double: _Double) -> None:
    double.begins()
    double.tell("item/started", item={"type": "commandExecution", "id": "call", **_COMMAND})
    for _ in range(_LINES):
        double.tell("item/commandExecution/outputDelta", itemId="call", delta="x" * 100 + "\n")
    double.tell(
        "item/completed", item={"type": "commandExecution", "id": "call", **_COMMAND, "status": "completed", "aggregatedOutput": "x"}
    )
    double.says("That was much")
    double.ends()


def newer(double: _Double) -> None:
    double.tell("turn/dreamt", dream={"of": "sheep"})
    double.asks(90, "item/mind/read", about="you")
    double.answered(90)
    double.tell("item/completed", item={"type": "dream", "id": "d", "pages": [1]})
    answer(double)


def ask(double: _Double) -> None:
    double.begins()
    double.says("May I?", "first")
    call = {"type": "commandExecution", "id": "call", **_COMMAND}
    double.tell("item/started", item={**call, "status": "inProgress"})
    decisions = ["accept", {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["ls", "-1"]}}, "cancel"]
    double.asks(0, "item/commandExecution/requestApproval", itemId="call", availableDecisions=decisions, **_COMMAND)
    decision = double.answered(0).get("decision")
    double.tell("serverRequest/resolved", requestId=0)
    if decision in ("decline", "cancel"):
        double.tell("item/completed", item={**call, "status": "declined"})
    else:
        double.tell("item/completed", item={**call, "status": "completed", "aggregatedOutput": "a\nb\n", "exitCode": 0})
    double.says(f"You said {json.dumps(decision)}", "second")
    double.ends("interrupted" if decision == "cancel" else "completed")


def patch(double: _Double) -> None:
    double.begins()
    call = {"type": "fileChange", "id": "call", "changes": _CHANGES}
    double.tell("item/started", item={**call, "status": "inProgress"})
    double.asks(0, "item/fileChange/requestApproval", itemId="call", reason=None, grantRoot=None)
    decision = double.answered(0).get("decision")
    double.tell("item/completed", item={**call, "status": "completed" if decision == "accept" else "declined"})
    double.says(f"You said {json.dumps(decision)}", "second")
    double.ends()


def withdraw(double: _Double) -> None:
    double.begins()
    double.tell("item/started", item={"type": "commandExecution", "id": "call", **_COMMAND})
    double.asks(0, "item/commandExecution/requestApproval", itemId="call", **_COMMAND)
    time.sleep(0.3)
    double.tell("serverRequest/resolved", requestId=0)
    double.tell("item/completed", item={"type": "commandExecution", "id": "call", **_COMMAND, "status": "declined"})
    double.says("Never mind")
    double.ends()


def fail(double: _Double) -> None:
    double.begins()
    double.tell("error", error={"message": "Reconnecting... 1/1"}, willRetry=True)
    double.tell("error", error={"message": "the model is overloaded", "codexErrorInfo": "serverOverloaded"}, willRetry=False)
    double.ends("failed", {"message": "the model is overloaded", "codexErrorInfo": "serverOverloaded"})


def _leave(code: int) -> None:
    sys.stdout.flush()
    os._exit(code)


_ALL = (answer, ask, crash, fail, flood, linger, newer, noise, patch, slow, withdraw)
BEHAVIOURS: dict[str, Callable[[_Double], None]] = {
    **{behave.__name__: behave for behave in _ALL},
    "forget": answer,
    "hang": slow,
    "refuse": answer,
    "silent": lambda _: _leave(0),
}


if __name__ == "__main__":
    program = _Double()
    program.behaviour = sys.argv[1]
    program.listen()
