"""A double of the Claude Code program, run as a script. It speaks Claude Code's line format and control protocol.

Its first argument determines how it answers each prompt, regardless of its text: `answer` says hello, `linger` does so slowly, `slow`
continues until it is interrupted, `hang` ignores interrupts, `limited` reports a used-up account after some work, `crash` dies in the
middle, `silent` exits without output, `noise` adds lines that are not JSON, `flood` writes a lot, `newer` sends unknown messages, `older`
does not support MCP servers, `ask` asks to run a command, `withdraw` asks and withdraws the request.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

_SESSION = "5e550000-0000-4000-8000-000000000000"
_LINES = 3000


class _Double:
    def __init__(self) -> None:
        self._answers: dict[str, Any] = {}
        self._changed = threading.Condition()
        self.interrupted = threading.Event()
        self.deaf = False

    def write(self, **message: Any) -> None:
        sys.stdout.write(json.dumps({**message, "session_id": _SESSION}) + "\n")
        sys.stdout.flush()

    def listen(self, behave: Callable[[_Double], None]) -> None:
        """Read input until it ends. Each prompt is answered in its own thread."""
        for line in sys.stdin:
            message = json.loads(line)
            kind, request = message.get("type"), message.get("request", {})
            if kind == "user":
                threading.Thread(target=behave, args=(self,), daemon=True).start()
            elif kind == "control_request" and not (self.deaf and request.get("subtype") == "interrupt"):
                if request.get("subtype") == "interrupt":
                    self.interrupted.set()
                if behave is older and request.get("subtype") == "mcp_set_servers":
                    refusal = {"subtype": "error", "request_id": message["request_id"], "error": "Unknown request"}
                    self.write(type="control_response", response=refusal)
                    continue
                self.write(type="control_response", response={"subtype": "success", "request_id": message["request_id"], "response": {}})
            elif kind == "control_response":
                with self._changed:
                    self._answers[message["response"]["request_id"]] = message["response"].get("response", {})
                    self._changed.notify_all()

    def asks(self, id: str, **request: Any) -> None:
        self.write(type="control_request", request_id=id, request=request)

    def answered(self, id: str) -> Any:
        with self._changed:
            self._changed.wait_for(lambda: id in self._answers)
            return self._answers[id]

    def begins(self) -> None:
        self.write(type="system", subtype="init", model="double-1", claude_code_version="0.0.0")

    def says(self, message: str, *blocks: dict[str, Any]) -> None:
        for block in blocks:
            self.write(type="assistant", message={"id": message, "model": "double-1", "content": [block]}, parent_tool_use_id=None)

    def ends(self, text: str = "", **more: Any) -> None:
        usage = {"input_tokens": 10, "output_tokens": 2}
        self.write(type="result", subtype="success", is_error=False, result=text, usage=usage, total_cost_usd=0.001, **more)


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def answer(double: _Double) -> None:
    double.begins()
    double.says("m1", _text("Hello."))
    double.ends("Hello.")


def linger(double: _Double) -> None:
    double.begins()
    double.says("m1", _text("I begin. "))
    double.interrupted.wait(0.5)
    double.ends()


def slow(double: _Double) -> None:
    double.begins()
    double.says("m1", _text("I begin. "))
    double.interrupted.wait(60)
    double.write(type="result", subtype="error_during_execution", is_error=True, terminal_reason="aborted_streaming")


def hang(double: _Double) -> None:
    double.deaf = True
    slow(double)


def crash(double: _Double) -> None:
    double.begins()
    double.says("m1", _text("I am about to"))
    sys.stderr.write("a \x1b[31mbad\x1b[0m thing happened\n")
    sys.stderr.flush()
    os._exit(7)


def noise(double: _Double) -> None:
    sys.stdout.write("[debug] starting\n\n\x1b[2J{not json}\n")
    sys.stderr.write("warning: something\n" * 50)
    answer(double)
    sys.stdout.write('"a tail without an end')
    sys.stdout.flush()


def flood(double: _Double) -> None:
    double.begins()
    sys.stderr.write("x" * (1 << 20))
    for number in range(_LINES):
        double.write(type="system", subtype="status", status="x" * 200, number=number)
    double.says("m1", _text("y" * (1 << 20)))
    double.ends()


def newer(double: _Double) -> None:
    double.begins()
    double.write(type="hologram", shape="unknown")
    double.asks("n1", subtype="read_mind", about="the person")
    double.answered("n1")
    double.says("m1", {"type": "hologram", "shape": "cube"}, _text("I am newer."))
    double.ends("I am newer.", aura="blue")


def older(double: _Double) -> None:
    answer(double)


def ask(double: _Double) -> None:
    double.begins()
    arguments = {"command": "ls", "n": 12345678901234567890123}
    double.says("m1", {"type": "tool_use", "id": "c1", "name": "Bash", "input": arguments})
    double.asks("a1", subtype="can_use_tool", tool_name="Bash", tool_use_id="c1", input=arguments)
    reply = double.answered("a1")
    content: Any = {"type": "tool_result", "tool_use_id": "c1", "content": json.dumps(reply), "is_error": reply.get("behavior") != "allow"}
    double.write(type="user", message={"content": [content]})
    double.says("m2", _text("So be it."))
    double.ends()


def withdraw(double: _Double) -> None:
    double.begins()
    double.says("m1", {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}})
    double.asks("a1", subtype="can_use_tool", tool_name="Bash", tool_use_id="c1", input={"command": "ls"})
    double.interrupted.wait(0.5)
    double.write(type="control_cancel_request", request_id="a1")
    double.write(
        type="user", message={"content": [{"type": "tool_result", "tool_use_id": "c1", "content": "never mind", "is_error": True}]}
    )
    double.says("m2", _text("I changed my mind."))
    double.ends()


def limited(double: _Double) -> None:
    double.begins()
    double.says("m1", _text("I have counted to two."))
    double.write(type="result", subtype="success", is_error=True, result="You have reached your usage limit.", usage={"input_tokens": 3})


_ALL = (answer, ask, crash, flood, hang, limited, linger, newer, noise, older, slow, withdraw)
BEHAVIOURS: dict[str, Callable[[_Double], None]] = {**{behave.__name__: behave for behave in _ALL}, "silent": lambda _: os._exit(0)}


if __name__ == "__main__":
    _Double().listen(BEHAVIOURS[sys.argv[1]])
