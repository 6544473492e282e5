"""Histories of all programs of a machine, imported at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_machine import COMING, GIVEN, assemble
from e2e.cli_process import MootProcess, make


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    (tmp_path / "user").mkdir()
    process = make(tmp_path / "user", "models: {}\n")
    process.more = assemble(tmp_path / "user")
    yield process
    process.close()


def asked(moot: MootProcess, *arguments: str, code: int = 0) -> Any:
    ended = moot.run(*arguments, "--json")
    assert ended.returncode == code, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.slow
def test_histories_of_every_program_are_imported_once_searchable_and_counted(moot: MootProcess) -> None:
    downloads = str(moot.home.parent / "Downloads")
    report = asked(moot, "import", "--all", downloads, code=1)
    assert Counter(one["format"] for one in report["data"]) == {**COMING, **GIVEN}
    assert report["failed"] == []
    assert [one["notes"] for one in report["data"] if one["problems"]] == [
        ["answer 'm7' is empty, probably because TalkCody crashed while streaming"]
    ]
    assert report["index"]["done"] == report["index"]["total"] == report["added"]
    again = asked(moot, "import", "--all", downloads)
    assert (again["added"], again["records"], again["sources"]["unchanged"]) == (0, 0, report["sources"]["total"])
    assert asked(moot, "verify", "--all")["damages"] == []
    for words in ("会议", "dejeuner", "протокол", "übersichten"):
        assert [hit["title"] for hit in asked(moot, "search", words)["data"]] == ["Lunch"], words
    assert len(asked(moot, "search", "in:tools", "hello.py", "agent:codex")["data"]) == 2
    assert asked(moot, "search", "notes", "agent:gemini")["data"]
    sums = asked(moot, "stats")
    assert (sums["conversations"], sums["messages"]) == (sum({**COMING, **GIVEN}.values()), report["added"])
    agents = {one["name"]: one["runs"] for one in asked(moot, "stats", "--by", "agent")["agents"]}
    own_names = {"claude": "claude-code", "clai": "cody", "mtm": "implementer", "talkcody": "planner"}
    assert agents.keys() == {own_names.get(format, format) for format in {*COMING, *GIVEN}}
    assert sum(agents.values()) == sums["total"]["runs"]
    assert moot.run("redact", "--yes", stdin=b"ship on Friday\nrun_shell_command\n").returncode == 0
    assert asked(moot, "search", '"ship on Friday"')["data"] == []
    tools = {one["name"] for one in asked(moot, "stats", "--by", "tool")["tools"]}
    assert "read_file" in tools and "run_shell_command" not in tools
    assert asked(moot, "verify", "--all")["damages"] == []


def test_the_report_counts_results_and_lists_unreadable_sources(moot: MootProcess) -> None:
    ended = moot.run("import", "--all")
    said = ended.stderr.decode()
    assert ended.returncode == 1
    assert f"{moot.home.parent}/.local/share/com.talkcody/talkcody.db: answer 'm7' is empty" in said
    assert "moot: 1 unreadable record kept unchanged\n" in said
    assert "1 picture, 1 record" in said
    assert moot.run("import", "--all").stderr.decode() == "moot: 31 sources unchanged\n"
