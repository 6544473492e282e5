from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.cli_process import MootProcess, make
from e2e.pty_screen import PtyScreen
from moot.config.settings import Settings
from moot.store import open_store
from moot.store.database.connection import connect
from moot.types.conversation import Conversation
from moot.types.ids import new_id
from moot.types.message import Message, text_part
from small_weights import needs_real, put_real

UNMET = "import sys\n\nfor name in ('moot.engine', 'moot.runtime', 'asyncio'):\n    sys.modules[name] = None\n"
"""A `sitecustomize` that fails if one of these is imported."""


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A conversation of 30 messages with a hidden branch, and one with hostile text; all of it indexed."""
    home = tmp_path_factory.mktemp("seeded") / "home"

    async def seed() -> None:
        store = await open_store(Settings(home))
        made = await store.conversations.create(Conversation(new_id(), title="The walrus plan", title_source="user"))
        parent = None
        for number in range(30):
            text = f"step {number} walrus" if number == 4 else f"step {number}"
            role = "assistant" if number % 2 else "user"
            message = Message(new_id(), role, (text_part(text),), conversation=made.id, parent=parent)
            parent = (await store.conversations.add_message(message)).id
            if number == 10:
                aside = Message(new_id(), "assistant", (text_part("a narwhal aside"),), conversation=made.id, parent=parent)
                await store.conversations.add_message(aside, move_head=False)
        evil = await store.conversations.create(Conversation(new_id(), title="evil \x1b[2J\ntitle", title_source="user"))
        await store.conversations.add_message(
            Message(new_id(), "user", (text_part("evil \x1b]0;x\x07 walrus words"),), conversation=evil.id)
        )
        await store.search.index()
        await store.close()

    anyio.run(seed)
    return home


@pytest.fixture
def moot(tmp_path: Path, seeded: Path) -> Iterator[MootProcess]:
    process = make(tmp_path)
    shutil.copytree(seeded, process.home, dirs_exist_ok=True)
    yield process
    process.close()


def found(moot: MootProcess, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(moot.run("search", "--json", *arguments).stdout)
    return answer


def test_a_hit_shows_the_command_that_opens_it(moot: MootProcess) -> None:
    shown = moot.run("search", "walrus", "step").stdout.decode()
    assert shown.startswith(" 1  The walrus plan  you · ")
    command = next(line.split() for line in shown.splitlines() if "moot chat show" in line)
    opened = moot.run(*command[1:])
    assert [line for line in opened.stdout.decode().splitlines() if line.startswith("step")] == [
        f"step {n}{' walrus' * (n == 4)}" for n in range(1, 8)
    ]
    assert "▶ here" in opened.stderr.decode()
    aside = found(moot, "narwhal")["data"][0]
    there = json.loads(moot.run("chat", "show", aside["conversation"], "--at", aside["id"], "--limit", "2", "--json").stdout)
    assert [message["parts"][0]["text"] for message in there["data"]] == ["step 10", "a narwhal aside"]
    assert (there["at"], there["shown"]) == (aside["id"], False)


def test_the_json_of_a_hit_is_complete(moot: MootProcess) -> None:
    answer = found(moot, "walrus", "--best", "--limit", "1")
    (hit,) = answer["data"]
    assert set(hit) == {"id", "conversation", "title", "role", "at", "snippet", "column", "seq", "context"}
    assert (hit["column"], hit["snippet"]) == ("text", "step 4 \x02walrus\x03")
    assert answer["index"] == {"done": 32, "total": 32}
    rest = found(moot, "walrus", "--best", "--cursor", answer["next_cursor"])
    assert [one["title"] for one in rest["data"]] == ["evil \x1b[2J\ntitle"] and rest["next_cursor"] is None
    assert found(moot, "evil", "-c", "The walrus plan")["data"] == []
    assert [one["role"] for one in found(moot, "walrus -evil role:user")["data"]] == ["user"]


def test_a_regular_expression_is_shown_with_lines_of_context(moot: MootProcess) -> None:
    (hit,) = found(moot, "/step 4 w.lrus/", "--context", "1", "--limit", "1")["data"]
    assert "\x02step 4 walrus\x03" in hit["context"]
    shown = moot.run("search", "/step 4 w.lrus/", "--context", "1", "--limit", "1")
    assert b"    step 4 walrus\n" in shown.stdout
    refused = moot.run("search", "walrus", "--context", "101")
    assert (refused.returncode, refused.stdout) == (2, b"")


def test_an_invalid_query_is_a_usage_error(moot: MootProcess) -> None:
    for query, words in (
        ("role:bob", b"Known values: user, assistant, system"),
        ("agnet:x", b"Did you mean agent:"),
        (" ", b"query is empty"),
        ("/(/", b"Invalid regular expression /(/: missing )"),
    ):
        done = moot.run("search", query)
        assert (done.returncode, done.stdout) == (2, b"")
        assert words in done.stderr
    nothing = moot.run("search", "nowhere")
    assert (nothing.returncode, nothing.stdout) == (0, b"")
    assert b"no results" in nothing.stderr


def test_a_complete_index_is_read_without_the_engine_and_an_incomplete_one_is_completed(moot: MootProcess, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(UNMET)
    found(moot, "walrus")  # the configuration is cached from here on
    moot.more["PYTHONPATH"] = str(tmp_path)
    assert len(found(moot, "walrus")["data"]) == 2
    database = moot.home / "data" / "moot.db"
    with closing(connect(database, writing=True)) as connection:
        connection.execute("UPDATE message SET is_indexed = 0 WHERE no = 1")
    assert moot.run("search", "walrus").returncode == 1
    del moot.more["PYTHONPATH"]
    assert found(moot, "step")["index"] == {"done": 32, "total": 32}


def test_on_a_terminal_matches_are_highlighted_and_control_sequences_removed(moot: MootProcess) -> None:
    screen = PtyScreen(moot, "search", "walrus", columns=70)
    screen.wait_for("The walrus plan")
    screen.wait_for("--at")
    assert b"\x1b[2J" not in screen.raw and b"\x1b]0;" not in screen.raw
    assert b"\x1b[31m\x1b[1mwalrus" in screen.raw
    assert screen.wait_exit() == 0


def test_semantic_search_reports_missing_weights_and_unsupported_options(moot: MootProcess) -> None:
    ended = moot.run("search", "--meaning", "what", "was", "that")
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert "needs multilingual-e5-small" in ended.stderr.decode() and "moot models pull e5-small" in ended.stderr.decode()
    assert moot.run("search", "that", "--wait", "9").returncode == 2
    for more in (["--best"], ["--cursor", "w1"]):
        ended = moot.run("search", "--meaning", "that", *more)
        assert ended.returncode == 2 and "cannot be combined" in ended.stderr.decode()


@needs_real
@pytest.mark.slow
def test_semantic_search_finds_other_wordings_in_several_languages(tmp_path: Path) -> None:
    with closing(make(tmp_path)) as moot:
        put_real(moot.home)
        for name, asked, answered in (
            ("soup", "Die Soße zum Braten ist zu salzig", "Mit Sahne oder ungesalzener Brühe strecken."),
            ("clock", "容器里的时间比北京时间慢八个小时", "默认是 UTC。设 TZ=Asia/Shanghai。"),
            ("bike", "The chain of my bike slips", "It is worn: change it together with the cassette."),
        ):
            messages = [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
            (tmp_path / f"{name}.json").write_text(json.dumps({"messages": messages}))
            assert moot.run("import", str(tmp_path / f"{name}.json")).returncode == 0
        for question, said in (
            ("Essen mit zu viel Gewürz retten", "Mit Sahne oder ungesalzener Brühe strecken."),
            ("日志里的时刻不对", "默认是 UTC。设 TZ=Asia/Shanghai。"),
            ("trouble when pedalling hard", "It is worn: change it together with the cassette."),
        ):
            answer = found(moot, "--meaning", question, "--wait", "30")
            assert answer["data"][0]["snippet"] == said
            assert answer["index"] == {"done": 3, "total": 3}
        shown = moot.run("search", "--meaning", "日志里的时刻不对", "--limit", "1").stdout.decode()
        assert "Asia/Shanghai" in shown and "moot chat show" in shown
