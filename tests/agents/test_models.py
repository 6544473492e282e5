from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from agents.models import Call, Script, ScriptedModels, Step
from agents.programs import claude, claude_environment, codex, codex_environment

SCRIPT: Script = {
    "list the files": [
        Step(reasoning="I will look.", text="Let me see.", calls=[Call("Bash", {"command": "ls", "description": "list"})]),
        Step(text="There is one file."),
    ],
    "list for codex": [
        Step(reasoning="I will look.", text="Let me see.", calls=[Call("exec_command", {"cmd": "ls"})]),
        Step(text="There is one file."),
    ],
    "list": [Step(text="The shorter key lost.")],
    "try again": [Step(text="After all.", status=529, error="Overloaded", refusals=1)],
}


@pytest.fixture(scope="module")
def models(serve_models: Callable[[Script], ScriptedModels]) -> ScriptedModels:
    return serve_models(SCRIPT)


def run(command: list[str], environment: dict[str, str], directory: Path) -> list[dict[str, Any]]:
    (directory / "notes.txt").write_text("a")
    given = {**environment, "HOME": str(directory.parent)}
    ended = subprocess.run(command, env=given, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, timeout=40)
    assert ended.returncode == 0, (ended.stdout[-2000:], ended.stderr[-2000:])
    return [json.loads(line) for line in ended.stdout.splitlines()]


def test_claude_code_walks_through_the_steps_of_a_script(models: ScriptedModels, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    sandbox = {"IS_SANDBOX": "1"} if os.geteuid() == 0 else {}
    command = [claude(), "-p", "please list the files", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash(ls:*)"]
    lines = run(command, claude_environment(models.url) | sandbox, work)
    assert lines[-1]["result"] == "There is one file." and not lines[-1]["is_error"]
    assert [block["type"] for line in lines if line["type"] == "assistant" for block in line["message"]["content"]] == [
        "thinking",
        "text",
        "tool_use",
        "text",
    ]
    assert models.requests("/v1/messages")


def test_codex_walks_through_the_steps_of_a_script(models: ScriptedModels, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    environment = codex_environment(models.url, tmp_path, work)
    command = [codex(), "exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access", "please list for codex"]
    lines = run(command, environment, work)
    items = [line["item"] for line in lines if line["type"] == "item.completed"]
    assert [item["text"] for item in items if item["type"] == "agent_message"] == ["Let me see.", "There is one file."]
    assert [item["aggregated_output"] for item in items if item["type"] == "command_execution"] == ["notes.txt\n"]


def test_a_step_can_fail_a_number_of_times_before_it_answers(models: ScriptedModels) -> None:
    def ask() -> int:
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "try again"}]}
        request = Request(f"{models.url}/v1/messages", json.dumps(body).encode(), {"content-type": "application/json", "x-api-key": "k"})
        try:
            with urlopen(request) as answer:
                assert json.load(answer)["content"][0]["text"] == "After all."
                return int(answer.status)
        except OSError as error:
            return int(getattr(error, "code", 0))

    assert [ask(), ask()] == [529, 200]
