"""`moot cron` and a real server, also when it is killed while a job is due."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from e2e.cli_process import COMMAND, MootProcess
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedProcess]:
    with ScriptedProcess([Reply(text="Nothing has changed.", times=0)]) as server:
        yield server


def cron(moot: MootProcess, *arguments: str, code: int = 0) -> tuple[str, str]:
    """Run a command and return its output and messages."""
    done = moot.run("cron", *arguments)
    assert done.returncode == code, done.stderr
    return done.stdout.decode(), done.stderr.decode()


def listed(moot: MootProcess, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(cron(moot, *arguments, "--json")[0])["data"]
    return found


def until(claim: Callable[[], Any]) -> Any:
    """Return the first true value of the function."""
    end = time.monotonic() + 120
    while not (found := claim()):
        assert time.monotonic() < end, "timed out"
        time.sleep(0.1)
    return found


class Served:
    """Real `moot serve` processes, one after the other."""

    def __init__(self, moot: MootProcess) -> None:
        self._moot = moot
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, crash_at: str = "") -> subprocess.Popen[bytes]:
        environ = {**self._moot.environ, "MOOT_TESTING": "1", "MOOT_CRASH_AT": crash_at}
        command = [*COMMAND, "serve", "--port", "0"]
        nowhere = subprocess.DEVNULL
        self._process = subprocess.Popen(command, cwd=self._moot.work, env=environ, stdin=nowhere, stdout=nowhere, stderr=nowhere)
        return self._process

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(60)


@pytest.fixture
def served(moot: MootProcess) -> Iterator[Served]:
    server = Served(moot)
    yield server
    server.stop(signal.SIGKILL)


def test_jobs_are_added_listed_run_paused_and_removed(moot: MootProcess) -> None:
    added = cron(moot, "add", "standup", "--cron", "0 9 * * 1-5", "--tz", "Europe/Berlin", "--prompt", "What changed?")
    assert "next run: " in added[1] and "09:00:00 CE" in added[1]
    (job,) = listed(moot, "list")
    assert (job["name"], job["prompt"], job["paused"], job["last"]) == ("standup", "What changed?", False, None) and job["next"]
    assert cron(moot, "next", "standup", "-n", "3")[0].count("09:00:00") == 3
    assert "0 9 * * 1-5 Europe/Berlin" in cron(moot, "list")[0]
    assert cron(moot, "run", "standup")[0].strip() == "Nothing has changed."
    (record,) = listed(moot, "history", "standup")
    assert (record["status"], record["job"], record["attempt"]) == ("finished", "standup", 1)
    assert record["at"] and record["conversation"][:13] in cron(moot, "history")[0]
    cron(moot, "pause", "standup")
    assert listed(moot, "list")[0]["next"] is None and "paused" in cron(moot, "list")[0]
    cron(moot, "resume", "standup")
    assert listed(moot, "list")[0]["next"] == job["next"]
    cron(moot, "remove", "standup")
    assert listed(moot, "list") == [] and len(listed(moot, "history", "standup")) == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["add", "x", "--cron", "61 * * * *", "--prompt", "p"], "bad minute"),
        (["add", "x", "--prompt", "p"], "exactly one of `cron`, `every` and `at`"),
        (["add", "x", "--every", "1h", "--tz", "Mars/Olympus", "--prompt", "p"], "Unknown time zone"),
        (["add", "x", "--at", "2001-01-01", "--prompt", "p"], "in the past"),
        (["add", "x", "--every", "1h", "--deliver", "pigeon", "--prompt", "p"], "Available: log"),
        (["add", "../x", "--every", "1h", "--prompt", "p"], "../x"),
        (["add", "x", "--every", "1h", "--agent", "nobody", "--prompt", "p"], "'nobody' not found"),
        (["add", "x", "--every", "1h", "--model", "m@nowhere", "--prompt", "p"], "Provider 'nowhere' not found"),
        (["add", "x", "--every", "1h"], "Missing option '--prompt'"),
        (["add", "x", "--every", "1h", "--prompt", " "], "The prompt is empty"),
        (["add", "x", "--every", "1h", "--prompt", "/tasks", "--no-wake"], "A job that runs /tasks can't have"),
        (["add", "x", "--every", "1h", "--prompt", "/tasks add Sweep", "--retries", "2"], "A job that runs /tasks can't have"),
        (["add", "x", "--every", "1h", "--prompt", "/title", "--delivery", "tool"], "A job that runs /title can't have"),
        (["add", "x", "--at", "tomorrow", "--prompt", "p"], "such as 2026-12-24T18:00"),
        (["add", "x", "--every", "0", "--prompt", "p"], "exactly one of `cron`, `every` and `at`"),
        (["add", "x y", "--every", "1h", "--prompt", "p"], "a name of at most 64 letters"),
        (["show", "nothing"], "No job is named 'nothing'"),
        (["history", "nothing"], "No job is named 'nothing'"),
    ],
)
def test_a_mistake_is_explained(moot: MootProcess, arguments: list[str], problem: str) -> None:
    message = cron(moot, *arguments, code=2)[1]
    assert problem in message and "Traceback" not in message


def test_a_running_server_takes_up_jobs_of_the_command_line_and_of_the_configuration(moot: MootProcess, served: Served) -> None:
    served.start()
    cron(moot, "add", "tick", "--every", "1s", "--prompt", "tick")
    until(lambda: any(record["status"] == "finished" for record in listed(moot, "history")))
    cron(moot, "pause", "tick")
    config = moot.home / "config.yaml"
    config.write_text(config.read_text() + '\ncron:\n  from-file: {every: 1s, prompt: "From the file"}\n')
    until(lambda: any(record["job"] == "from-file" and record["status"] == "finished" for record in listed(moot, "history")))
    config.write_text(config.read_text().partition("\ncron:")[0] + "\n")
    until(lambda: [job["name"] for job in listed(moot, "list")] == ["tick"])
    times = [(record["job"], record["at"]) for record in listed(moot, "history", "-n", "1000")]
    assert len(times) == len(set(times))


@pytest.mark.parametrize("point", ["cron.due", "run.started", "cron.settled"])
def test_a_kill_while_a_job_is_due_neither_loses_nor_repeats_its_run(moot: MootProcess, served: Served, point: str) -> None:
    for seconds in (4, 60):  # on a busy machine, the command may start after the first time
        soon = datetime.now(UTC) + timedelta(seconds=seconds)
        added = moot.run("cron", "add", "once", "--at", soon.isoformat(), "--prompt", "only once", timeout=60)
        if added.returncode == 0:
            break
        assert b"is in the past" in added.stderr, added.stderr
    assert added.returncode == 0, added.stderr
    assert served.start(crash_at=point).wait(120) == -signal.SIGKILL
    before = listed(moot, "history")
    assert len(before) == (point != "cron.due")
    served.start()
    until(lambda: [one["status"] for one in listed(moot, "history")] == ["finished"])
    served.stop()
    (record,) = listed(moot, "history")
    assert [one["run"] for one in before] in ([], [record["run"]]) and record["at"] == int(soon.timestamp() * 1000)
    assert ("not delivered: moot was stopped" in record["reason"]) == (point == "cron.settled")
    shown = json.loads(moot.run("chat", "show", record["conversation"], "--json").stdout)
    assert [message["role"] for message in shown["data"]] == ["user", "assistant"]
