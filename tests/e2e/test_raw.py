"""The vendor's raw bytes for users and scripts."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import PtyScreen
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

FRAMES = (
    b": \x1b[2J\xff \xe2\x80\xae hidden\r\n\r\n",
    b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
)


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess([Reply(when="bytes", raw=b"".join(FRAMES), times=0), Reply(text="Plain.", times=0)]) as server:
        yield server


@pytest.fixture
def moot(tmp_path: Path, model: ScriptedProcess) -> Iterator[MootProcess]:
    process = make(tmp_path, model.config())
    yield process
    process.close()


def test_in_a_pipe_raw_prints_the_received_bytes(moot: MootProcess) -> None:
    assert moot.run("run", "--no-tools", "bytes").stdout == b"Hello\n"
    shown = moot.run("chat", "show", "1", "--raw")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, b"".join(FRAMES), b"")


def test_as_json_each_frame_has_its_place_and_every_byte(moot: MootProcess) -> None:
    moot.run("run", "--no-tools", "bytes")
    document = json.loads(moot.run("chat", "show", "1", "--raw", "--json").stdout)
    found = [frame["raw"].encode() if "raw" in frame else b64decode(frame["raw_base64"]) for frame in document["data"]]
    assert b"".join(found) == b"".join(FRAMES)
    assert [frame["dir"] for frame in document["data"]] == ["in"] * len(found)
    seqs = [frame["seq"] for frame in document["data"]]
    assert seqs == sorted(set(seqs)) and all(frame["at"] > 10**15 for frame in document["data"])


def test_raw_of_the_last_messages_omits_earlier_ones(moot: MootProcess) -> None:
    moot.run("run", "--no-tools", "bytes")
    moot.run("run", "--no-tools", "-c", "other")
    last = moot.run("chat", "show", "1", "--raw", "--limit", "1").stdout
    assert b"Plain." in last and FRAMES[1] not in last
    assert FRAMES[1] in moot.run("chat", "show", "1", "--raw").stdout


def test_on_a_terminal_raw_is_escaped(moot: MootProcess) -> None:
    moot.run("run", "--no-tools", "bytes")
    screen = PtyScreen(moot, "chat", "show", "1", "--raw")
    screen.wait_for("[DONE]")
    assert b"\x1b[2J" not in screen.raw and "\u202e" not in screen.text
    assert r": \x1b[2J\xff <U+202E> hidden\x0d" in screen.text
    assert "answer · 1.0 · openai-chat/" in screen.text and "· eof" in screen.text
