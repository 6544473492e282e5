"""`moot --url`: commands use a server and print the same as on the server's own machine."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.cli_process import MootProcess
from e2e.pty_screen import PtyScreen
from e2e.server.conftest import FIXED, ServedHome
from moot.cli.approvals.prompts import QUIET
from moot.testing.script import Reply, ToolCall


def away(tmp_path: Path, url: str, *, token: str = FIXED) -> MootProcess:
    """Return `moot` on another machine: with an empty home, another folder, and the server's address."""
    home, work = tmp_path / "away" / "home", tmp_path / "away" / "work"
    home.mkdir(parents=True, exist_ok=True)
    work.mkdir(exist_ok=True)
    return MootProcess(home, work, {"MOOT_URL": url, "MOOT_TOKEN": token})


@pytest.fixture
def served(serve_home: Callable[..., ServedHome]) -> ServedHome:
    """A server with three conversations, one of them with a tool call."""
    served = serve_home(
        [
            Reply(text="There is **flour**."),
            Reply(tool_calls=(ToolCall("list_files", {"path": "."}),)),
            Reply(text="The folder has one file."),
            Reply(text="Salt is missing."),
        ]
    )
    (served.moot.work / "pantry.txt").write_text("flour\n")
    for prompt in ("What is in the pantry?", "List the folder", "What is missing?"):
        assert served.moot.run("run", "--tools", prompt).returncode == 0
    return served.start()


SAME = [
    ("chat", "list", "--plain"),
    ("chat", "list", "--json"),
    ("chat", "list", "pantry", "--limit", "1", "--json"),
    ("chat", "show", "1"),
    ("chat", "show", "2", "--json"),
    ("chat", "show", "2", "--call", "1"),
    ("chat", "show", "2", "--at", "2"),
    ("chat", "show", "1", "--raw"),
    ("chat", "show", "1", "--raw", "--json"),
    ("chat", "show", "2", "--first", "--limit", "1"),
    ("chat", "tree", "2"),
    ("chat", "tree", "2", "--json"),
    ("ps",),
    ("ps", "--json"),
    ("approvals", "list"),
    ("approvals", "list", "--json"),
    ("agents", "tree", "2"),
    ("search", "flour"),
    ("search", "flour", "--json", "--best"),
    ("search", "missing", "-c", "1", "--context", "1"),
    ("search", "nothing-like-this"),
    ("search", "role:nobody"),
    ("chat", "show", "no-such-conversation"),
    ("chat", "show", "no-such-conversation", "--json"),
    ("chat", "list", "--cursor", "wrong", "--json"),
    ("approvals", "show", "no-such-approval"),
]


def test_commands_print_the_same_as_on_the_server(served: ServedHome, tmp_path: Path) -> None:
    other = away(tmp_path, served.url)
    for words in SAME:
        here, there = served.moot.run(*words), other.run(*words)
        assert there.returncode == here.returncode, (words, there.stderr)
        assert _ageless(there.stdout) == _ageless(here.stdout), words
        assert there.stderr == here.stderr, words


def _ageless(text: bytes) -> str:
    """Replace ages in lists, which grow between two commands."""
    return re.sub(r"(AGE|\d+ s)  +", "AGE  ", text.decode())


def _without_ids(document: Any) -> Any:
    return {name: value for name, value in document.items() if name not in ("conversation", "run", "message")}


def test_a_prompt_runs_on_the_server_and_its_answer_is_the_same(serve_home: Callable[..., ServedHome], tmp_path: Path) -> None:
    served = serve_home([Reply(text="There is **flour**.", times=0)]).start()
    other = away(tmp_path, served.url)
    assert other.run("run", "What is there?").stdout == served.moot.run("run", "What is there?").stdout == b"There is **flour**.\n"
    here, there = (json.loads(moot.run("run", "--json", "What is there?").stdout) for moot in (served.moot, other))
    assert _without_ids(there) == _without_ids(here)
    assert there["ok"]
    listed = json.loads(served.moot.run("chat", "list", "--json").stdout)["data"]
    assert listed[0]["id"] == there["conversation"]
    more = json.loads(other.run("run", "-c", "--json", "And now?").stdout)
    assert more["conversation"] == there["conversation"]
    bare = other.run("What is there?")
    assert bare.stdout == b"There is **flour**.\n", bare.stderr
    lines = other.run("run", "--jsonl", "again").stdout.splitlines()
    assert [json.loads(line)["kind"] for line in lines][-1] == "result"
    assert other.run("run", "--ui", "again").stdout.count(b"text-delta") >= 1


def test_files_are_read_on_this_machine_and_uploaded(serve_home: Callable[..., ServedHome], tmp_path: Path) -> None:
    served = serve_home([Reply(text="Read.", times=0)]).start()
    other = away(tmp_path, served.url)
    (other.work / "here.txt").write_text("only on this machine\n" * 100_000)
    (other.work / "there.txt").write_text("second file\n")
    ran = other.run("run", "-f", "here.txt", "compare with @there.txt and @missing.txt", stdin=b"piped text\n")
    assert ran.returncode == 0, ran.stderr
    assert b"'missing.txt' not found" in ran.stderr
    shown = json.loads(served.moot.run("chat", "show", "@latest", "--json").stdout)
    prompt = shown["data"][0]["parts"]
    assert [part.get("filename") for part in prompt if part["type"] == "file"] == ["here.txt", "there.txt"]
    assert "piped text" in prompt[-1]["text"]
    assert "only on this machine" in json.dumps(served.model.requests()[-1])


def _asking(serve_home: Callable[..., ServedHome]) -> ServedHome:
    writes = ToolCall("write_file", {"path": "made.txt", "content": "one\n"})
    served = serve_home([Reply(when="make", tool_calls=[writes]), Reply(text="All done.", times=0)], config="permissions: {mode: ask}\n")
    return served.start()


def test_approvals_of_a_remote_run_are_asked_and_answered_in_this_terminal(serve_home: Callable[..., ServedHome], tmp_path: Path) -> None:
    served = _asking(serve_home)
    other = away(tmp_path, served.url)
    screen = PtyScreen(other, "run", "--tools", "make it")
    try:
        screen.wait_for("made.txt")
        screen.wait_for("[y]")
        time.sleep(QUIET)  # keys that follow a change of the screen at once are ignored
        screen.send("y")
        screen.wait_for("All done.")
        assert screen.wait_exit() == 0
    finally:
        screen.close()
    assert (served.moot.work / "made.txt").read_text() == "one\n"
    assert not (other.work / "made.txt").exists()


def test_without_a_terminal_calls_that_need_approval_are_denied(serve_home: Callable[..., ServedHome], tmp_path: Path) -> None:
    served = _asking(serve_home)
    ran = away(tmp_path, served.url).run("run", "--tools", "make it")
    assert ran.returncode == 3, ran.stderr
    assert not (served.moot.work / "made.txt").exists()


def test_approvals_are_listed_shown_and_answered_from_another_machine(serve_home: Callable[..., ServedHome], tmp_path: Path) -> None:
    served = _asking(serve_home)
    other = away(tmp_path, served.url)
    screen = PtyScreen(other, "run", "--tools", "make it")
    try:
        screen.wait_for("[y]")
        for words in (("approvals", "list", "--json"), ("approvals", "show", "1"), ("approvals", "show", "1", "--json"), ("ps", "--json")):
            here, there = served.moot.run(*words), other.run(*words)
            assert there.stdout == here.stdout, (words, there.stderr)
            assert there.stdout.strip() not in (b"", b'{"data":[],"next_cursor":null}')
        wrong = other.run("approvals", "allow", "1", "--for", "ever")
        assert wrong.returncode == 2
        assert b"Invalid value 'ever' for '--for'" in wrong.stderr
        allowed = other.run("approvals", "allow", "1", "--json")
        assert json.loads(allowed.stdout)["continues"] is True
        screen.wait_for("All done.")
        assert screen.wait_exit() == 0
    finally:
        screen.close()
    again = other.run("approvals", "allow", json.loads(allowed.stdout)["approval"])
    assert again.returncode == 7, again.stderr


def test_ctrl_c_stops_the_remote_run(serve_home: Callable[..., ServedHome], tmp_path: Path) -> None:
    served = serve_home([Reply(text="word " * 9, hang_at=4)]).start()
    other = away(tmp_path, served.url)
    process = other.start("run", "count")
    assert process.stdout is not None
    assert process.stdout.read(4) == b"word"
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"stopping" in stderr
    assert b"cancelled; the output so far is kept" in stderr
    assert json.loads(other.run("ps", "--json").stdout)["data"] == []


def test_a_run_continues_after_detaching_and_can_be_stopped(serve_home: Callable[..., ServedHome], tmp_path: Path) -> None:
    served = serve_home([Reply(text="word " * 9, hang_at=4)]).start()
    other = away(tmp_path, served.url)
    first = other.start("run", "count")
    assert first.stdout is not None
    assert first.stdout.read(4) == b"word"
    first.send_signal(signal.SIGTERM)
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=30)
    attached = other.start("chat", "attach", "@latest")
    assert attached.stdout is not None
    assert attached.stdout.read(4) == b"word"
    attached.send_signal(signal.SIGINT)
    _, stderr = attached.communicate(timeout=30)
    assert b"detached; the run continues" in stderr
    stopped = other.run("chat", "stop", "@latest", "--json")
    assert json.loads(stopped.stdout)["status"] == "cancelled"


def test_conversations_are_changed_on_the_server(served: ServedHome, tmp_path: Path) -> None:
    other = away(tmp_path, served.url)
    id = json.loads(other.run("chat", "list", "--json").stdout)["data"][0]["id"]
    renamed = other.run("chat", "rename", id, "Salt and pepper")
    assert renamed.returncode == 0, renamed.stderr
    for words in (("pin", id), ("tag", id, "salt"), ("archive", id), ("archive", id, "--undo")):
        assert other.run("chat", *words).returncode == 0, words
    listed = json.loads(served.moot.run("chat", "list", "salt", "--json").stdout)["data"]
    assert [(one["title"], one["tags"], one["pinned_at"] is not None) for one in listed] == [("Salt and pepper", ["salt"], True)]
    forked = json.loads(other.run("chat", "fork", id, "--json").stdout)
    assert other.run("chat", "delete", forked["conversation"]).returncode == 0
    assert other.run("chat", "restore", forked["conversation"]).returncode == 0
    assert other.run("chat", "switch", forked["conversation"], "1", "--exactly").returncode == 0
    shown = json.loads(served.moot.run("chat", "show", forked["conversation"], "--json").stdout)
    assert [message["role"] for message in shown["data"]] == ["user"]


@pytest.mark.parametrize("words", [("doctor",), ("stats",), ("chat", "undo", "1"), ("serve",), ("config", "show")])
def test_other_commands_say_that_they_need_the_server_s_machine(words: tuple[str, ...], tmp_path: Path) -> None:
    other = away(tmp_path, "http://127.0.0.1:9")
    refused = other.run(*words)
    assert refused.returncode == 2
    assert f"--url is not supported by 'moot {' '.join(words[:2] if words[0] in ('chat', 'config') else words)}'" in refused.stderr.decode()
    other.more.clear()
    assert other.run("--url", "http://127.0.0.1:9", *words).stderr == refused.stderr
    assert other.run("version").returncode == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("chat", "list", "--here"), "--here can't be used with --url"),
        (("run", "--worktree", "hello"), "--worktree can't be used with --url"),
        (("run", 'now @[shell{"command": "ls"}]'), "can't be used with --url"),
        (("run", "--allow", "relative", "hello"), "is not the absolute path of a folder"),
    ],
)
def test_options_that_make_no_sense_on_a_server_are_refused(
    words: tuple[str, ...], why: str, server_process: ServedHome, tmp_path: Path
) -> None:
    refused = away(tmp_path, server_process.url).run(*words)
    assert refused.returncode == 2, refused.stderr
    assert why in refused.stderr.decode()


def test_a_temporary_conversation_is_deleted_on_the_server(server_process: ServedHome, tmp_path: Path) -> None:
    other = away(tmp_path, server_process.url)
    ran = other.run("run", "--temporary", "--json", "hello")
    assert b"the temporary conversation was deleted" in ran.stderr
    assert other.run("chat", "show", json.loads(ran.stdout)["conversation"]).returncode == 2


def test_a_token_for_reading_can_t_send_prompts(server_process: ServedHome, tmp_path: Path) -> None:
    made = server_process.moot.run("tokens", "create", "reader", "--scopes", "read", "--json")
    token = json.loads(made.stdout)["secret"]
    other = away(tmp_path, server_process.url, token=token)
    assert other.run("chat", "list", "--json").returncode == 0
    refused = other.run("run", "hello")
    assert b"requires a token with the scope 'chat'" in refused.stderr
    assert token.encode() not in refused.stderr
