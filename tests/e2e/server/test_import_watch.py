"""A server that continuously imports conversations of the agents on its machine."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.server.conftest import ServedHome
from e2e.test_import import record, session, talk


def asked(served: ServedHome, path: str) -> Any:
    with urllib.request.urlopen(urllib.request.Request(served.url + path, headers=served.headers), timeout=60) as answer:
        return json.loads(answer.read())


def until(claim: Callable[[], bool]) -> None:
    """Wait for a condition, long enough for a busy machine."""
    ends = time.monotonic() + 60
    while not claim():
        assert time.monotonic() < ends
        time.sleep(0.1)


def hits(served: ServedHome, words: str) -> int:
    return len(asked(served, f"/api/search?q={urllib.parse.quote(words)}")["data"])


@pytest.mark.slow
def test_a_watched_agents_messages_are_found_over_http_and_only_the_server_imports_them(
    serve_home: Callable[..., ServedHome],
) -> None:
    served = serve_home(config="imports: {watch: true}\n")
    file = session(served.moot)
    file.write_bytes(talk(0, 2))
    served.start()
    until(lambda: hits(served, "word1") == 1)
    with file.open("ab") as writing:
        writing.write(record(2, "wherever the heron stands"))
    until(lambda: hits(served, "heron") == 1)
    until(lambda: asked(served, "/api/imports/watch")["messages"] == 3)
    second = served.moot.run("import", "--all", "-f", "claude", "--watch")
    assert (second.returncode, f"the server at {served.url} already imports" in second.stderr.decode()) == (0, True)
    turn(served, "false")
    until(lambda: asked(served, "/api/imports/watch")["since"] is None)
    watching = served.moot.start("import", "--all", "-f", "claude", "--watch")
    assert watching.stderr is not None
    until(lambda: b"watching" in watching.stderr.readline() if watching.stderr else False)
    said = served.stop()
    assert "importing from the agents on this machine" in said


def turn(served: ServedHome, word: str) -> None:
    """Rewrite the setting in the configuration file."""
    file: Path = served.moot.home / "config.yaml"
    file.write_text(file.read_text().replace("watch: true", f"watch: {word}"))


@pytest.mark.slow
def test_nothing_is_imported_automatically_unless_it_is_enabled(serve_home: Callable[..., ServedHome]) -> None:
    served = serve_home()
    session(served.moot).write_bytes(talk(0, 2))
    served.start()
    assert asked(served, "/api/imports/watch") == {
        "wanted": False,
        "since": None,
        "sources": 0,
        "messages": 0,
        "last_at": None,
        "problem": "",
    }
    assert asked(served, "/api/conversations")["data"] == []
    assert "importing from the agents" not in served.stop()
