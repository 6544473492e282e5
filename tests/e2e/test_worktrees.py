"""Worktrees: agents that work in a git worktree of their own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.cli_process import make
from e2e.test_subagents import children, output_of
from moot.config.trust import trust_file
from moot.engine.isolation import remove_unused
from moot.errors import Busy, NotFound, Refused, UsageError
from moot.guard import worktrees
from moot.testing.script import Reply, ToolCall
from moot.types.agent import Agent
from moot.types.hooks import CommandHook
from moot.types.message import text_part
from moot.types.run import Prompt

pytestmark = pytest.mark.anyio

AGENTS = {"default": Agent(agents=("worker",)), "worker": Agent("worker", tools=("write_file",), isolation="worktree")}


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def writes(path: str) -> list[Reply]:
    """Return the replies of a parent that delegates, and of its child that writes a file."""
    return [
        Reply(when="go", tool_calls=[ToolCall("delegate", {"agent": "worker", "prompt": "work"})]),
        Reply(when="work", tool_calls=[ToolCall("write_file", {"path": path, "content": "new"})]),
        Reply(when="work", text="Written."),
        Reply(when="go", text="Done."),
    ]


def identify(folder: Path) -> None:
    git(folder, "init", "--quiet", "--initial-branch=main")
    for name, value in (("user.name", "me"), ("user.email", "me@example.org")):
        git(folder, "config", name, value)


@pytest.fixture
def repository(directory: Path) -> Path:
    identify(directory)
    (directory / "sub").mkdir()
    for name in ("a.txt", "sub/b.txt"):
        (directory / name).write_text("old\n")
    commit(directory)
    return directory


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")


def made(repository: Path) -> list[str]:
    folder = repository / ".worktrees"
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.exists() else []


async def test_a_sub_agent_works_in_its_own_worktree_which_its_parent_gets_to_know(stage: Any, repository: Path) -> None:
    async with stage(writes("a.txt"), agents=AGENTS) as on:
        run, message = await on.ask("go")
        (child,) = await children(on, run)
        folder = Path((await on.engine.store.conversations.get(child.conversation)).directory)
    (name,) = made(repository)
    assert folder == repository / ".worktrees" / name and name.startswith("auto-")
    assert (folder / "a.txt").read_text() == "new" and (repository / "a.txt").read_text() == "old\n"
    assert output_of(message) == f"Written.\n\nThe worktree {folder} on the branch moot/{name} has 1 uncommitted file."
    assert git(repository, "status", "--porcelain") == ""


async def test_a_worktree_in_which_nothing_is_left_is_removed_with_its_branch(stage: Any, repository: Path) -> None:
    replies = writes("a.txt")
    async with stage([replies[0], replies[2], replies[3]], agents=AGENTS) as on:
        _, message = await on.ask("go")
    assert output_of(message) == "Written." and made(repository) == []
    assert git(repository, "branch", "--list", "moot/*") == ""


async def test_a_conversation_gets_its_worktree_again_and_the_projects_agents_stay_known_in_it(stage: Any, repository: Path) -> None:
    file = repository / ".claude" / "agents" / "lone.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: lone\ndescription: Works alone.\ntools: Write\nisolation: worktree\n---\nWork.\n")
    replies = [Reply(text="one"), Reply(tool_calls=[ToolCall("write_file", {"path": "b.txt", "content": "new"})]), Reply(text="two")]
    async with stage(replies) as on:
        trust_file(on.engine.settings.home, file, file.read_text())
        parts = (text_part("first"),)
        submitted = await on.engine.runs.submit(Prompt(parts, directory=str(repository / "sub"), agent="lone"))
        assert (await on.follow(submitted)).status == "finished" and made(repository) == []
        run, _ = await on.ask("second", conversation=submitted.conversation.id)
        assert run.status == "finished"
    (name,) = made(repository)
    assert submitted.conversation.directory == str(repository / ".worktrees" / name / "sub")
    assert (repository / ".worktrees" / name / "sub" / "b.txt").exists()


async def test_a_worktree_stays_while_a_run_works_in_it(stage: Any, repository: Path) -> None:
    agents = {"boss": Agent("boss", agents=("helper",), isolation="worktree"), "helper": Agent("helper", tools=())}
    replies = [
        Reply(when="lead", tool_calls=[ToolCall("delegate", {"agent": "helper", "prompt": "slow", "background": True})]),
        Reply(when="slow", text="never ends", hang_at=3),
        Reply(when="lead", text="Done."),
    ]
    async with stage(replies, agents=agents) as on:
        run, _ = await on.ask("lead", agent="boss")
        assert run.status == "finished"
        (name,) = made(repository)
        with pytest.raises(Busy, match="is using this worktree"):
            await remove_unused(on.engine.store, str(repository), name, force=True)
        (child,) = await children(on, run)
        await on.engine.runs.cancel(child.id)
        await on.engine.runs.wait(child.id)
        with anyio.fail_after(30):
            while made(repository):
                await anyio.sleep(0.01)


async def test_the_projects_hooks_run_its_trusted_programs_and_not_those_of_the_worktree(
    stage: Any, repository: Path, tmp_path: Path
) -> None:
    file, trace = repository / ".moot" / "config.yaml", tmp_path / "trace"
    file.parent.mkdir()
    file.write_text("hooks: {PreToolUse: [{hooks: [{command: sh check.sh; sh $MOOT_PROJECT_DIR/check.sh}]}]}")
    (repository / "check.sh").write_text(f"echo trusted >>{trace}")
    commit(repository)
    replies = [Reply(tool_calls=[ToolCall("write_file", {"path": "check.sh", "content": f"echo changed >>{trace}"})]) for _ in range(2)]
    hooks = {"PreToolUse": (CommandHook("sh check.sh; sh $MOOT_PROJECT_DIR/check.sh", folder=str(repository)),)}
    async with stage([*replies, Reply(text="Done.")], agents=AGENTS, hooks=hooks) as on:
        trust_file(on.engine.settings.home, file, file.read_text())
        run, _ = await on.ask("go", agent="worker")
        assert run.status == "finished"
    assert trace.read_text().split() == ["trusted"] * 4


async def test_other_users_get_no_worktree(stage: Any, repository: Path) -> None:
    async with stage([], agents=AGENTS) as on:
        prompt = Prompt((text_part("go"),), directory=str(repository), agent="worker", user="mara")
        with pytest.raises(UsageError, match="worktree"):
            await on.engine.runs.submit(prompt)
    assert made(repository) == []


Plant = Callable[[Path, Path], None]


def hook(repository: Path, program: Path) -> None:
    (repository / ".git" / "hooks").mkdir(exist_ok=True)
    (repository / ".git" / "hooks" / "post-checkout").symlink_to(program)


def monitor(repository: Path, program: Path) -> None:
    git(repository, "config", "core.fsmonitor", str(program))


def content_filter(repository: Path, program: Path) -> None:
    (repository / ".gitattributes").write_text("*.txt filter=own\n")
    commit(repository)
    for name in ("smudge", "clean", "process"):
        git(repository, "config", f"filter.own.{name}", str(program))
    git(repository, "config", "filter.own.required", "true")


def external_diff(repository: Path, program: Path) -> None:
    (repository / ".gitattributes").write_text("*.txt diff=own\n")
    commit(repository)
    for name in ("command", "textconv"):
        git(repository, "config", f"diff.own.{name}", str(program))
    git(repository, "config", "diff.external", str(program))


@pytest.mark.parametrize("plant", [hook, monitor, content_filter, external_diff])
async def test_git_starts_no_programs_of_the_repository(repository: Path, tmp_path: Path, plant: Plant) -> None:
    program, trace = tmp_path / "program", tmp_path / "trace"
    program.write_text(f"#!/bin/sh\necho ran >>{trace}\ncat\n")
    program.chmod(0o755)
    plant(repository, program)
    trace.unlink(missing_ok=True)
    worktree = await worktrees.create(str(repository), "x")
    (Path(worktree.path) / "a.txt").write_text("new\n")
    diff, _ = await worktrees.difference(worktree)
    assert "+new" in diff
    await worktrees.remove(str(repository), "x", force=True)
    assert not trace.exists()


async def test_git_starts_no_program_of_a_repository_that_a_model_nested_in_its_worktree(repository: Path, tmp_path: Path) -> None:
    program, trace = tmp_path / "program", tmp_path / "trace"
    program.write_text(f"#!/bin/sh\necho ran >>{trace}\n")
    program.chmod(0o755)
    worktree = await worktrees.create(str(repository), worktrees.name_for("x"))
    nested = Path(worktree.path) / "nested"
    nested.mkdir()
    identify(nested)
    (nested / ".gitattributes").write_text("*.txt filter=own\n")
    (nested / "a.txt").write_text("old\n")
    commit(nested)
    git(Path(worktree.path), "-c", "advice.addEmbeddedRepo=false", "add", "nested")
    git(nested, "config", "filter.own.clean", str(program))
    (nested / "a.txt").write_text("new\n")
    assert "uncommitted" in await worktrees.settle(worktree.path)
    await worktrees.difference(worktree)
    await worktrees.remove(str(repository), worktree.name, force=True)
    assert not trace.exists() and made(repository) == []


async def test_uncommitted_work_is_removed_only_by_force_and_commits_stay_on_their_branch(repository: Path) -> None:
    worktree = await worktrees.create(str(repository / "sub"), "x")
    folder = Path(worktree.path)
    (folder / "new.txt").write_text("new\n")
    with pytest.raises(Busy, match="1 uncommitted file"):
        await worktrees.remove(str(repository), "x")
    commit(folder)
    (folder / "a.txt").write_text("more\n")
    (found,) = await worktrees.listed(str(folder))
    assert (found.changes, found.commits) == (1, 1)
    diff, untracked = await worktrees.difference(found)
    assert "+more" in diff and "+new" in diff and untracked == []
    assert await worktrees.remove(str(repository), "x", force=True)
    assert git(repository, "branch", "--list", "moot/*").split() == ["moot/x"]
    assert Path((await worktrees.create(str(repository), "x")).path, "new.txt").exists()
    git(repository, "merge", "--quiet", "moot/x")
    assert not await worktrees.remove(str(repository), "x")
    with pytest.raises(NotFound, match="Known worktrees: none"):
        await worktrees.remove(str(repository), "x")


async def test_a_worktree_that_git_did_not_finish_is_made_again_and_a_folder_that_git_does_not_know_is_made(repository: Path) -> None:
    worktree = await worktrees.create(str(repository), "x")
    (Path(worktree.path) / "a.txt").unlink()
    (repository / ".git" / "worktrees" / "x" / "locked").write_text("initializing")
    worktree = await worktrees.create(str(repository), "x")
    assert (Path(worktree.path) / "a.txt").exists()
    (repository / "empty").mkdir()
    assert Path(await worktrees.folder_in(worktree, str(repository / "empty"))).is_dir()
    assert not (await worktrees.listed(str(repository)))[0].kept


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "a..b", "auto-1", "new-1", "x.lock", "a b"])
def test_names_that_git_or_moot_can_not_use_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="not a valid name"):
        worktrees.check_name(name)


async def test_a_folder_without_a_commit_can_not_have_worktrees(directory: Path) -> None:
    with pytest.raises(UsageError, match="not in a git repository"):
        await worktrees.create(str(directory), "x")
    git(directory, "init", "--quiet")
    with pytest.raises(UsageError, match="has no commit yet"):
        await worktrees.create(str(directory), "x")
    with pytest.raises((UsageError, Refused)):
        await worktrees.listed("/")


# ── the commands ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_commands_make_list_and_remove_worktrees(tmp_path: Path) -> None:
    moot = make(tmp_path, "models: {main: demo@demo}")
    identify(moot.work)
    (moot.work / "a.txt").write_text("old\n")
    commit(moot.work)
    try:
        assert b"new-" in moot.run("run", "--worktree", "hello").stderr and made(moot.work) == []
        assert moot.run("run", "--worktree=x", "hello").returncode == 0
        (moot.work / ".worktrees" / "x" / "a.txt").write_text("new\n")
        (found,) = json.loads(moot.run("worktrees", "list", "--json").stdout)["data"]
        assert (found["name"], found["branch"], found["changes"]) == ("x", "moot/x", 1)
        assert b"+new" in moot.run("worktrees", "diff", "x").stdout
        refused = moot.run("worktrees", "remove", "x")
        assert refused.returncode == Busy.exit_code and b"--force" in refused.stderr
        assert moot.run("run", "--worktree", "-c", "hello").returncode == 2
        assert moot.run("worktrees", "remove", "x", "--force").returncode == 0 and made(moot.work) == []
    finally:
        moot.close()
