"""`moot tasks`, and watchers in a real server, also when it is killed while it starts a run."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.cli_process import MootProcess
from e2e.test_cron_commands import Served, until
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess([Reply(text="Looked at it.", times=0)]) as server:
        yield server


@pytest.fixture
def served(moot: MootProcess) -> Iterator[Served]:
    server = Served(moot)
    yield server
    server.stop(signal.SIGKILL)


def tasks(moot: MootProcess, *arguments: str, code: int = 0) -> tuple[str, str]:
    """Run a command and return its output and messages."""
    done = moot.run("tasks", *arguments)
    assert done.returncode == code, done.stderr
    return done.stdout.decode(), done.stderr.decode()


def shown(moot: MootProcess, *arguments: str) -> Any:
    return json.loads(tasks(moot, *arguments, "--json")[0])


def test_tasks_are_added_listed_changed_and_removed(moot: MootProcess) -> None:
    assert "no tasks in the project 'default'" in tasks(moot)[1]
    assert moot.run("projects", "add", "shop", "--root", str(moot.work)).returncode == 0
    assert "added #1 'Fix it' in the project 'shop'" in tasks(moot, "add", "Fix it", "--tag", "ui", "--due", "2020-01-01")[1]
    tasks(moot, "add", "Write\u200b docs", "--status", "in_review", "--assignee", "ann", "--project", "shop")
    tasks(moot, "add", "elsewhere", "--project", "default")
    lines = tasks(moot, "list")[0].splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["#1", "backlog"], ["#2", "in_review"]]
    assert "2020-01-01 overdue" in lines[1]
    assert lines[2].endswith("Write<U+200B> docs")
    assert len(tasks(moot, "list", "-A")[0].splitlines()) == 4
    assert [task["number"] for task in shown(moot, "list", "--tag", "ui", "--overdue")["data"]] == [1]
    assert shown(moot, "list", "docs")["data"][0]["assignee"] == "ann"
    assert moot.run("cron", "add", "sweep", "--every", "1h", "--prompt", "/tasks add Sweep").returncode == 0
    swept = json.loads(moot.run("cron", "run", "sweep", "--json").stdout)
    assert (swept["status"], swept["reason"]) == ("finished", "Added task #3: Sweep")
    assert [task["number"] for task in shown(moot, "list", "Sweep", "--project", "shop")["data"]] == [3], "in the folder's project"
    tasks(moot, "comment", "1", "Seen *it*.")
    tasks(moot, "edit", "#1", "--title", "Fix that", "--due", "", "--no-tags")
    tasks(moot, "move", "1", "2", "done")
    whole = shown(moot, "show", "1")
    assert (whole["title"], whole["status"], whole["due"], whole["tags"], whole["version"]) == ("Fix that", "done", None, [], 4)
    assert [change["event"] for change in whole["history"]] == ["status", "updated", "commented", "created"]
    text = tasks(moot, "show", "1")[0]
    assert "project: shop\nstatus: done\n" in text
    assert "Seen *it*." in text
    assert "status: backlog → done, by local" in text
    assert "removed #1" in tasks(moot, "remove", "1", "--yes")[1]
    assert [task["number"] for task in shown(moot, "list", "--status", "done")["data"]] == [2]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("show", "7"), 2, "no task '7'"),
        (("list", "--project", "nowhere"), 2, "No project has the id or name 'nowhere'"),
        (("list", "--project", "default", "-A"), 2, "cannot be used together"),
        (("add", " "), 2, "title of the task is empty"),
        (("add", "x", "--due", "soon"), 2, "Invalid due date 'soon'"),
        (("add", "x", "--status", "new"), 2, "in_review"),
        (("edit", "1"), 2, "No changes were specified"),
        (("edit", "1", "--tag", "a", "--no-tags"), 2, "cannot be used together"),
        (("move", "1"), 2, "Expected task numbers and a status"),
        (("move", "1", "2", "done"), 2, "no task '2'"),
        (("remove", "1"), 3, "This needs confirmation"),
    ],
)
def test_mistakes_are_reported(moot: MootProcess, arguments: tuple[str, ...], code: int, words: str) -> None:
    tasks(moot, "add", "one")
    assert words in tasks(moot, *arguments, code=code)[1]
    assert [task["status"] for task in shown(moot, "list")["data"]] == ["backlog"]


def test_removing_a_project_says_that_its_tasks_go_too(moot: MootProcess) -> None:
    assert moot.run("projects", "add", "shop").returncode == 0
    tasks(moot, "add", "one", "--project", "shop")
    refused = moot.run("projects", "remove", "shop")
    assert "and its 1 task?" in refused.stderr.decode()
    assert moot.run("projects", "remove", "shop", "--yes").returncode == 0
    assert shown(moot, "list", "-A")["data"] == []


WATCHER = '\ntask_watchers:\n  look: {prompt: "Look at {{task.title}}: {{changes}}", debounce: 100ms, statuses: [in_progress]}\n'


def watch(moot: MootProcess) -> None:
    config = moot.home / "config.yaml"
    config.write_text(config.read_text() + WATCHER)


def runs(moot: MootProcess, number: str = "1") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shown(moot, "show", number)["runs"]
    return found


def test_a_running_server_takes_up_a_watcher_and_changes_of_the_command_line(moot: MootProcess, served: Served) -> None:
    served.start()
    tasks(moot, "add", "before", "--status", "in_progress")  # not a change since the watcher exists
    watch(moot)
    tasks(moot, "add", "later")
    tasks(moot, "move", "2", "in_progress")

    def started() -> bool:
        tasks(moot, "comment", "2", "go on")
        return any(run["status"] == "finished" for run in runs(moot, "2"))

    until(started)
    shown_run = runs(moot, "2")[-1]
    chat = json.loads(moot.run("chat", "show", shown_run["conversation"], "--json").stdout)
    texts = [part["text"] for message in chat["data"] for part in message["parts"] if part["type"] == "text"]
    assert texts[0].startswith("Look at later: ")
    assert "Looked at it." in texts
    assert "watcher look started a run: " in tasks(moot, "show", "2")[0]
    assert runs(moot, "1") == []


@pytest.mark.parametrize("point", ["tasks.due", "run.started"])
def test_a_kill_while_a_watcher_starts_neither_loses_nor_repeats_a_change(moot: MootProcess, served: Served, point: str) -> None:
    watch(moot)
    killed = served.start(crash_at=point)
    tasks(moot, "add", "first")

    def is_over() -> bool:
        if killed.poll() is None:  # the watcher is in force from some moment on
            tasks(moot, "edit", "1", "--status", "in_progress", "--title", f"first {len(shown(moot, 'show', '1')['history'])}")
        return killed.poll() is not None

    until(is_over)
    assert killed.returncode == -signal.SIGKILL
    before = runs(moot)
    assert len(before) == (point == "run.started")
    served.start()
    until(lambda: (found := runs(moot)) and all(run["status"] == "finished" for run in found) and len(found) >= 1)
    after = runs(moot)
    assert [run["run"] for run in after][len(after) - len(before) :] == [run["run"] for run in before]
    chat = json.loads(moot.run("chat", "show", after[0]["conversation"], "--json").stdout)
    prompts = [message for message in chat["data"] if message["role"] == "user"]
    assert len(prompts) == len({run["run"] for run in after})
