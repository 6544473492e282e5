from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make
from moot.cli.commands.maintenance import logs
from moot.cli.commands.maintenance.logs import FileHandler, file_of
from moot.guard.secrets import redact
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply

SECRET = "sk-canary-0123456789abcdef"


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    process = make(tmp_path, "limits: {steps: 20}\n")
    (process.home / "state").mkdir()
    yield process
    process.close()


def sink(home: Path, level: int = logging.INFO) -> logging.Logger:
    logger = logging.Logger("moot.test", logging.DEBUG)
    logger.addHandler(FileHandler(file_of(home), level, lambda text: redact(text, ["hunter2-hunter2"])))
    return logger


def lines(home: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file_of(home).read_text().splitlines()]


def test_a_record_is_one_line_without_secrets(moot: MootProcess) -> None:
    sink(moot.home).warning("key %s and\nhunter2-hunter2", SECRET, extra={"run": "r1", "conversation": "c1"})
    (entry,) = lines(moot.home)
    assert entry.keys() == {"time", "level", "logger", "message", "process", "run", "conversation"}
    assert (entry["level"], entry["logger"], entry["run"], entry["process"]) == ("warning", "moot.test", "r1", os.getpid())
    assert SECRET not in str(entry)
    assert "hunter2" not in str(entry)
    assert file_of(moot.home).stat().st_mode & 0o777 == 0o600
    assert file_of(moot.home).parent.stat().st_mode & 0o777 == 0o700


def test_a_full_log_file_is_rotated_once(moot: MootProcess) -> None:
    first = sink(moot.home)
    first.info("before")
    with file_of(moot.home).open("ab") as file:
        file.truncate(logs.LARGEST)
    second = sink(moot.home)
    second.info("after")
    first.info("also after")
    assert [entry["message"] for entry in lines(moot.home)] == ["after", "also after"]
    assert file_of(moot.home).with_suffix(".jsonl.1").stat().st_size == logs.LARGEST


def test_many_processes_write_complete_lines(moot: MootProcess) -> None:
    program = (
        "import logging, sys; from pathlib import Path; from moot.cli.commands.maintenance.logs import FileHandler\n"
        "h = FileHandler(Path(sys.argv[1]), 20, str); l = logging.Logger('moot.x'); l.addHandler(h)\n"
        "for n in range(200): l.info('%s %d %s', sys.argv[2], n, 'x' * 500)"
    )
    processes = [subprocess.Popen([sys.executable, "-c", program, str(file_of(moot.home)), str(number)]) for number in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(lines(moot.home)) == 600


@pytest.mark.parametrize("hindrance", ["folder", "file"])
def test_an_unwritable_log_does_not_fail_a_run(moot: MootProcess, hindrance: str) -> None:
    folder = moot.home / "state" / "logs"
    if hindrance == "folder":
        folder.write_text("in the way")
    else:
        (folder / "moot.jsonl").mkdir(parents=True)
    ended = moot.run("run", "-m", "demo", "--no-tools", "hi")
    assert (ended.returncode, b"You said: hi" in ended.stdout) == (0, True)


def test_logs_are_shown_as_json_lines_and_chosen(moot: MootProcess) -> None:
    logger = sink(moot.home, logging.DEBUG)
    logger.debug("small")
    logger.error("large", extra={"run": "r2-long"})
    with file_of(moot.home).open("ab") as file:
        file.write(b"{broken\n\xff\xfe\n")
    shown = [json.loads(line) for line in moot.run("logs").stdout.splitlines()]
    assert [entry["message"] for entry in shown] == ["small", "large"]
    assert [json.loads(line)["message"] for line in moot.run("logs", "--level", "warning").stdout.splitlines()] == ["large"]
    assert [json.loads(line)["message"] for line in moot.run("logs", "--run", "r2-l").stdout.splitlines()] == ["large"]
    assert [json.loads(line)["message"] for line in moot.run("logs", "-n", "1").stdout.splitlines()] == ["large"]
    assert moot.run("logs", "--since", "1h").stdout.count(b"\n") == 2
    assert moot.run("logs", "--since", "2100-01-01").stdout == b""
    assert moot.run("logs", "--since", "soon").returncode == 2


def test_a_terminal_gets_readable_lines(moot: MootProcess) -> None:
    sink(moot.home).warning("something\x1b[2J odd")
    terminal = moot.terminal("logs")
    terminal.expect(rb"warning\s+moot\.test\s+something odd")


def test_following_prints_new_records(moot: MootProcess) -> None:
    logger = sink(moot.home)
    logger.info("old")
    process = moot.start("logs", "--follow")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["message"] == "old"
    logger.info("new")
    assert json.loads(process.stdout.readline())["message"] == "new"


def test_a_missing_home_is_not_created(tmp_path: Path) -> None:
    sink(tmp_path / "nowhere").error("x")
    assert not (tmp_path / "nowhere").exists()


def test_log_records_of_a_run_are_found_by_its_id(moot: MootProcess) -> None:
    script = [Reply(when="pears", text="Two.", times=1), Reply(status=401, error="no titles today", times=0)]
    with ScriptedProcess(script, models=("scripted", "little")) as server:
        (moot.home / "config.yaml").write_text(server.config().replace('"scripted@mine"}', '"scripted@mine", small: "little@mine"}'))
        ended = json.loads(moot.run("run", "--no-tools", "--json", "how many pears?").stdout)
        again = json.loads(moot.run("run", "--no-tools", "--json", "-m", "demo", "hello").stdout)
    [entry] = [json.loads(line) for line in moot.run("logs", "--run", ended["run"], "--level", "warning").stdout.splitlines()]
    assert (entry["run"], entry["conversation"]) == (ended["run"], ended["conversation"])
    assert "could not generate a title" in entry["message"]
    assert again["run"] != ended["run"]
