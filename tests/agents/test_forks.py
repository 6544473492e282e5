"""A session started by the real agent, imported, and continued in a fork."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.agent_runs import Driven, driven, texts
from agents.models import Script, ScriptedModels, Step
from agents.programs import claude, claude_environment, codex, codex_environment
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import local_sources
from moot.types.agent import Agent
from moot.types.conversation import Conversation
from moot.types.message import text_of

pytestmark = pytest.mark.anyio

SCRIPT: Script = {
    "say hello": [Step(reasoning="They greet me.", text="Hello there.")],
    "say it again": [Step(text="Hello once more.")],
    "go another way": [Step(text="Another way.")],
    "and further": [Step(text="Further still.")],
}


@pytest.fixture(scope="module")
def models(serve_models: Callable[[Script], ScriptedModels]) -> ScriptedModels:
    return serve_models(SCRIPT)


@dataclass(frozen=True)
class Program:
    """One of the agents, as run by a user in a folder and by moot."""

    type: str
    format: str
    command: tuple[str, ...]
    again: tuple[str, ...]
    """`command` is for a further prompt in the next session."""
    environment: Mapping[str, str]
    work: Path

    def says(self, prompt: str, session: str = "") -> None:
        words = [*self.again, session, prompt] if session else [*self.command, prompt]
        done = subprocess.run(
            words, cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=50, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def agent(self) -> Agent:
        environment = {name: value for name, value in self.environment.items() if name != "PATH"}
        more = {} if self.type == "claude-code" else {"command": [self.command[0]], "sandbox": "danger-full-access"}
        return Agent(self.format, agent_type=self.type, model="", options={"env": environment, **more})


@pytest.fixture(params=["claude", "codex"])
def program(request: pytest.FixtureRequest, models: ScriptedModels, tmp_path: Path) -> Program:
    work = tmp_path / "work"
    work.mkdir()
    home = {"HOME": str(tmp_path)}
    if request.param == "claude":
        again = (claude(), "-p", "--resume")
        environment = {**claude_environment(models.url), **home, "CLAUDE_CODE_MAX_RETRIES": "1", "IS_SANDBOX": "1"}
        return Program("claude-code", "claude", (claude(), "-p"), again, environment, work)
    command = (codex(), "exec", "--skip-git-repo-check")
    again = (codex(), "exec", "resume", "--skip-git-repo-check")
    return Program("codex", "codex", command, again, {**codex_environment(models.url, tmp_path, work), **home}, work)


async def bring_in(on: Driven, program: Program, home: Path) -> list[Conversation]:
    """Import all of the agent's histories. Return the resulting conversations, oldest first."""
    report = Report()
    await import_sources(
        on.engine.store, local_sources(home, program.environment, home / "moot", program.format), ImportOptions(home=home), report
    )
    assert not report.problems and not report.failed
    found = (await on.engine.store.conversations.list()).items
    return sorted((one for one in found if one.came_from), key=lambda one: one.no)


def files(program: Program, home: Path) -> dict[str, Path]:
    """The agent's sessions, by file name."""
    return {source.path.name: source.path for source in local_sources(home, program.environment, home / "moot", program.format)}


def heard(models: ScriptedModels) -> str:
    return json.dumps(models.asked()[-1]["messages"])


async def said(on: Driven, conversation: str) -> list[str]:
    branch = await on.engine.store.conversations.branch(conversation)
    return [text_of([part for part in message.parts if part["type"] == "text"]) for message in branch]


async def test_the_imported_session_is_forked_and_its_file_is_unchanged(program: Program, models: ScriptedModels, tmp_path: Path) -> None:
    program.says("say hello")
    [(name, file)] = files(program, tmp_path).items()
    before = file.read_bytes()
    async with driven(tmp_path / "moot", program.work, {"own": program.agent()}) as on:
        (whole,) = await bring_in(on, program, tmp_path)
        run, answer = await on.ask("go another way", agent="own", conversation=whole.id)
        assert (run.status, texts(answer)) == ("finished", "Another way."), run.error
        assert whole.origin is not None and run.agent_session_id != whole.origin["source_id"] and run.conversation != whole.id
        asked = heard(models)
        assert asked.index("say hello") < asked.index("Hello there.") < asked.index("go another way")
        assert asked.count("say hello") == 1, "it knows by its session, not by being told"
        assert file.read_bytes() == before and len(files(program, tmp_path)) == 2

        second, answer = await on.ask("and further", agent="own", conversation=run.conversation)
        assert (second.agent_session_id, texts(answer)) == (run.agent_session_id, "Further still.")
        assert "Another way." in heard(models) and file.read_bytes() == before
        assert [one.id for one in await bring_in(on, program, tmp_path)] == [whole.id], "the fork is here already"
        assert name in files(program, tmp_path)


async def test_messages_added_after_the_import_are_in_neither_copy_nor_fork(
    program: Program, models: ScriptedModels, tmp_path: Path
) -> None:
    program.says("say hello")
    async with driven(tmp_path / "moot", program.work, {"own": program.agent()}) as on:
        (whole,) = await bring_in(on, program, tmp_path)
        assert whole.origin is not None
        session = str(whole.origin["source_id"])
        program.says("say it again", session)
        [file] = files(program, tmp_path).values()
        grown = file.read_bytes()
        run, answer = await on.ask("go another way", agent="own", conversation=whole.id)
        assert texts(answer) == "Another way."
        asked = heard(models)
        assert asked.index("say hello") < asked.index("go another way") and "say it again" not in asked
        assert file.read_bytes() == grown

        assert [one.id for one in await bring_in(on, program, tmp_path)] == [whole.id]
        assert await said(on, whole.id) == ["say hello", "Hello there.", "say it again", "Hello once more."]
        assert await said(on, run.conversation) == ["say hello", "Hello there.", "go another way", "Another way."]
        later, _ = await on.ask("and further", agent="own", conversation=whole.id)
        asked = heard(models)
        assert "Hello once more." in asked and "Another way." not in asked and later.conversation != run.conversation
        program.says("go another way", session)
        assert file.read_bytes().startswith(grown)


async def test_a_missing_position_starts_a_new_session_with_the_history(program: Program, models: ScriptedModels, tmp_path: Path) -> None:
    program.says("say hello")
    [file] = files(program, tmp_path).values()
    before = file.read_bytes()
    async with driven(tmp_path / "moot", program.work, {"own": program.agent()}) as on:
        (early,) = await bring_in(on, program, tmp_path)
        assert early.origin is not None
        program.says("say it again", str(early.origin["source_id"]))
        (whole,) = await bring_in(on, program, tmp_path)
        file.write_bytes(before)  # withdrawn there
        run, answer = await on.ask("go another way", agent="own", conversation=whole.id)
        assert (run.status, texts(answer)) == ("finished", "Another way."), run.error
        asked = heard(models)
        assert asked.index("say hello") < asked.index("say it again") < asked.index("Hello once more.") < asked.index("go another way")
        assert file.read_bytes() == before
