"""Connections go only to the configured provider: no telemetry, no update checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

pytestmark = pytest.mark.slow

WATCH = """
import os, sys
def watch(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        with open(os.environ["CALLED"], "a") as file:
            file.write(f"{event} {args[1:] if event == 'socket.connect' else args!r}\\n")
sys.addaudithook(watch)
"""

QUIET = [
    ("version",),
    ("--help",),
    ("chat", "list"),
    ("chat", "show", "1"),
    ("config", "check"),
    ("config", "show"),
    ("tools", "list"),
    ("agents", "list"),
    ("ps",),
    ("logs",),
    ("search", "hello"),
    ("completion", "words", "bash", "moot chat show "),
    ("completion", "show", "bash"),
]


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess([Reply(text="hello", times=0)]) as server:
        yield server


@pytest.fixture
def moot(tmp_path: Path, model: ScriptedProcess) -> Iterator[MootProcess]:
    process = make(tmp_path, model.config())
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    process.more = {"PYTHONPATH": str(tmp_path / "watch"), "CALLED": str(tmp_path / "called")}
    yield process
    process.close()


def called(moot: MootProcess) -> list[str]:
    file = Path(moot.more["CALLED"])
    return file.read_text().splitlines() if file.exists() else []


def test_a_run_connects_only_to_its_provider(moot: MootProcess, model: ScriptedProcess) -> None:
    assert moot.run("run", "hi").returncode == 0
    port = re.search(r"127\.0\.0\.1:(\d+)", model.config())
    assert port is not None
    said = called(moot)
    assert any(line.startswith("socket.connect") and port[1] in line for line in said)  # the check works
    assert [line for line in said if port[1] not in line] == []


def test_other_commands_make_no_connections(moot: MootProcess) -> None:
    assert moot.run("run", "-m", "demo@demo", "--no-tools", "hello").returncode == 0
    assert all("'127.0.0.1'" in line for line in called(moot))  # looks for local servers when resolving a model
    Path(moot.more["CALLED"]).unlink(missing_ok=True)
    for words in QUIET:
        ended = moot.run(*words)
        assert ended.returncode == 0, (words, ended.stderr)
    assert called(moot) == []
