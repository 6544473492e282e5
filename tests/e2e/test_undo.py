"""Undo and redo of prompts: their messages, and the files that tools, commands and sub-agents changed."""

from __future__ import annotations

import json
import os
import shlex
import stat
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.acp_stage import DOUBLE
from e2e.cli_process import make
from moot.commands import Choose, CommandContext, Compose, Notice, OpenConversation, built_in
from moot.config.settings import Settings
from moot.engine.undo import Undo
from moot.errors import Busy, UsageError
from moot.store.content.checkpoints import damaged, opened
from moot.store.database.connection import checkpoints_path
from moot.store.maintenance.backup import restore
from moot.testing.process import ScriptedProcess
from moot.testing.script import Reply, ToolCall
from moot.tools import snapshots
from moot.types.agent import Agent
from moot.types.approval import Answer
from moot.types.maintenance import Secret
from moot.types.message import text_of
from verification import verify

pytestmark = pytest.mark.anyio


def calls(*made: ToolCall) -> list[Reply]:
    """Return the answers of a run that makes these calls one by one."""
    return [*(Reply(tool_calls=[call]) for call in made), Reply(text="Done.")]


def shell(command: str) -> ToolCall:
    return ToolCall("shell", {"command": command})


async def open_approval(on: Any, run: str) -> str | None:
    """Return the approval that a parked run waits for."""
    if (await on.engine.store.records.run(run)).status != "waiting":
        return None
    return next((approval.id for approval in await on.engine.store.records.approvals(run=run) if approval.answer is None), None)


async def undo_of(on: Any, run: Any) -> Undo:
    return Undo(on.engine.runtime, await on.engine.store.conversations.get(run.conversation))


def tree_of(folder: Path) -> dict[str, tuple[int, str]]:
    """Return the files and links of a folder, with their permissions and content."""
    found: dict[str, tuple[int, str]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(folder))] = (0, str(path.readlink()))
        elif path.is_file():
            found[str(path.relative_to(folder))] = (stat.S_IMODE(path.stat().st_mode), path.read_bytes().hex())
    return found


async def test_files_changed_by_tools_and_commands_are_restored_and_redone(stage: Any, directory: Path) -> None:
    (directory / "notes.txt").write_text("one\n")
    (directory / "binary").write_bytes(bytes(range(256)))
    (directory / "run.sh").write_text("echo\n")
    (directory / "old name").write_text("kept content")
    (directory / "link").symlink_to("notes.txt")
    (directory / "folder").mkdir()
    (directory / "folder" / "inner").write_text("inner")
    before = tree_of(directory)
    script = calls(
        ToolCall("edit_file", {"path": "notes.txt", "edits": [{"old_text": "one", "new_text": "two"}]}),
        ToolCall("write_file", {"path": "new/deep/file.txt", "content": "new"}),
        shell("printf 'x\\0y' > binary; chmod 755 run.sh; mv 'old name' moved; ln -sfn run.sh link; rm -r folder; echo flat > folder"),
    )
    async with stage(script) as on:
        run, _ = await on.ask("Change everything")
        after = tree_of(directory)
        assert after != before
        undo = await undo_of(on, run)
        preview = await undo.undo("files", dry_run=True)
        assert tree_of(directory) == after and not preview.done
        plan = await undo.undo("files")
        assert tree_of(directory) == before and not (directory / "new").exists()
        assert plan.done and plan.files == preview.files and not plan.kept
        with pytest.raises(UsageError, match="no prompt of this conversation has changed files"):
            await undo.undo("files")
        await undo.redo()
        assert tree_of(directory) == after
        with pytest.raises(UsageError, match="nothing to redo"):
            await undo.redo()


async def test_prompts_are_undone_one_by_one_and_their_messages_shown_again(stage: Any, directory: Path) -> None:
    script = [*calls(shell("echo 1 > a")), *calls(ToolCall("write_file", {"path": "a", "content": "2\n"})), Reply(text="Hello.")]
    async with stage(script) as on:
        run, _ = await on.ask("First")
        for text in ("Second", "Third"):
            await on.ask(text, conversation=run.conversation)
        undo = await undo_of(on, run)
        assert (await undo.undo()).text == "Third" and (directory / "a").read_text() == "2\n"
        second = await undo.undo()
        assert second.text == "Second" and second.messages == 2 and (directory / "a").read_text() == "1\n"
        await undo.undo()
        assert not (directory / "a").exists() and await on.engine.store.conversations.branch(run.conversation) == []
        with pytest.raises(UsageError, match="current branch has no prompt"):
            await undo.undo()
        await undo.redo()
        assert (directory / "a").read_text() == "1\n"
        await undo.redo()
        branch = await on.engine.store.conversations.branch(run.conversation)
        assert (directory / "a").read_text() == "2\n"
        assert [text_of(message.parts) for message in branch if message.role == "user"] == ["First", "Second"]


async def test_a_new_prompt_ends_redo(stage: Any, directory: Path) -> None:
    async with stage([*calls(shell("echo 1 > a")), Reply(text="Hello.")]) as on:
        run, _ = await on.ask("First")
        undo = await undo_of(on, run)
        await undo.undo()
        _, message = await on.ask("Another", conversation=run.conversation)
        assert (await on.engine.store.conversations.message(message.parent)).parent is None
        with pytest.raises(UsageError, match="nothing to redo"):
            await undo.redo()


async def test_files_edited_later_are_kept_until_they_may_be_overwritten(stage: Any, directory: Path) -> None:
    for name in ("mine", "theirs"):
        (directory / name).write_text("before")
    async with stage(calls(shell("echo agent > mine; echo agent > theirs"))) as on:
        run, _ = await on.ask("Write")
        (directory / "mine").write_text("by hand")
        undo = await undo_of(on, run)
        plan = await undo.undo("files")
        assert [kept.path for kept in plan.kept] == ["mine"]
        assert ((directory / "mine").read_text(), (directory / "theirs").read_text()) == ("by hand", "before")
        await undo.redo()
        await undo.undo("files", overwrite=True)
        assert (directory / "mine").read_text() == "before"
        await undo.redo()
        assert (directory / "mine").read_text() == "by hand", "redo brings back what was overwritten"


async def test_files_that_were_ignored_before_are_not_taken_for_new_ones(stage: Any, directory: Path) -> None:
    (directory / ".gitignore").write_text("*.secret\nbuild/\n")
    (directory / "build").mkdir()
    for name in ("key.secret", "build/out"):
        (directory / name).write_text("mine")
    (directory / "large").write_bytes(bytes(11 << 20))
    async with stage(calls(shell("rm .gitignore; truncate -s 3 large; echo more >> key.secret"))) as on:
        run, _ = await on.ask("Write")
        plan = await (await undo_of(on, run)).undo("files")
        assert [effect.path for effect in plan.files] == [".gitignore"]
        assert any(path.endswith("/large") for path, _ in plan.left_out)
        assert (directory / "key.secret").read_text() == "minemore\n" and (directory / "build/out").exists()


async def test_links_never_lead_an_undo_out_of_the_folder(stage: Any, directory: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("untouched")
    (directory / "folder").mkdir()
    (directory / "folder" / "file").write_text("before")
    async with stage(calls(shell("echo agent > folder/file"))) as on:
        run, _ = await on.ask("Write")
        (directory / "folder" / "file").unlink()
        (directory / "folder").rmdir()
        (directory / "folder").symlink_to(outside)
        plan = await (await undo_of(on, run)).undo("files", overwrite=True)
        assert [kept.path for kept in plan.kept] == ["folder/file"] and not plan.files
        assert (outside / "file").read_text() == "untouched"


async def test_an_undo_is_refused_while_a_run_is_active(stage: Any, directory: Path) -> None:
    async with stage([Reply(tool_calls=[shell("true")])], mode="ask") as on:
        submitted = await on.submit("Ask me")
        run = await on.follow(submitted)
        with pytest.raises(Busy, match="unfinished run"):
            await (await undo_of(on, run)).undo()


async def test_what_a_person_changes_while_a_run_waits_is_not_taken_for_its_work(stage: Any, directory: Path) -> None:
    for name in ("mine", "both", "theirs"):
        (directory / name).write_text("before")
    script = calls(shell("echo agent > both; echo agent > theirs"), shell("echo agent >> both"))
    async with stage(script, mode="ask") as on:
        submitted = await on.submit("Go")
        await on.follow(submitted)
        (first,) = await on.engine.store.records.approvals(run=submitted.run.id)
        await on.engine.runs.answer(first.id, Answer(True))
        with anyio.fail_after(60):
            while (second := await open_approval(on, submitted.run.id)) in (None, first.id):
                await anyio.sleep(0.01)
        for name in ("mine", "both"):
            (directory / name).write_text("by hand")
        await on.engine.runs.answer(second, Answer(True))
        run = await on.engine.runs.wait(submitted.run.id)
        plan = await (await undo_of(on, run)).undo("files")
        assert run.status == "finished" and [effect.path for effect in plan.files] == ["theirs"]
        assert [(kept.path, kept.forced) for kept in plan.kept] == [("both", True)]
        assert (directory / "mine").read_text() == "by hand"


async def test_a_run_of_plain_text_records_nothing(stage: Any) -> None:
    async with stage([Reply(text="Hello.")]) as on:
        await on.ask("Hi")
        assert not (on.engine.settings.database.parent / "checkpoints.db").exists()


async def test_what_sub_agents_and_outside_agents_changed_belongs_to_the_prompt(stage: Any, directory: Path) -> None:
    program = f"echo outside > b; exec {shlex.join([*DOUBLE, 'echo'])}"
    agents = {
        "default": Agent(agents=("helper",)),
        "helper": Agent("helper", tools=("shell", "write_file")),
        "double": Agent("double", agent_type="acp:double", model="", options={"command": ["/bin/sh", "-c", program]}),
    }
    script = [
        Reply(when="delegate it", tool_calls=[ToolCall("delegate", {"agent": "helper", "prompt": "work"})]),
        *(Reply(when="work", tool_calls=[call]) for call in (shell("echo 1 > a"), ToolCall("write_file", {"path": "c", "content": "2"}))),
        Reply(when="work", text="Worked."),
        Reply(when="delegate it", text="Done."),
    ]
    async with stage(script, agents=agents) as on:
        run, _ = await on.ask("delegate it")
        assert set(tree_of(directory)) == {"a", "c"}
        other, _ = await on.ask("go", agent="double", conversation=run.conversation)
        assert other.status == "finished" and set(tree_of(directory)) == {"a", "b", "c"}
        undo = await undo_of(on, run)
        await undo.undo()
        assert set(tree_of(directory)) == {"a", "c"}
        await undo.undo()
        assert not tree_of(directory)


async def test_unchanged_files_are_not_read_again_and_huge_folders_are_named(
    stage: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "a").write_text("1")
    root = os.fsencode(os.path.realpath(directory))
    long_ago = time.time_ns() - 10**9
    os.utime(directory / "a", ns=(long_ago, long_ago))
    read: list[bytes] = []

    def put(data: bytes) -> bytes:
        read.append(data)
        return data

    monkeypatch.setattr(snapshots, "_RECENT_NS", -(10**12))  # the file may be as new as it likes
    first = snapshots.snapshot(root, {}, put)
    assert snapshots.snapshot(root, first.files, put).files == first.files and read == [b"1"]
    (directory / "a").write_text("2")
    snapshots.snapshot(root, first.files, put)
    assert read == [b"1", b"2"]
    monkeypatch.setattr(snapshots, "FILES", 1)
    (directory / "b").write_text("b")
    async with stage(calls(shell("echo 1 > c"), ToolCall("write_file", {"path": "d", "content": "d"}))) as on:
        run, _ = await on.ask("Write")
        plan = await (await undo_of(on, run)).undo("files")
        assert [effect.path for effect in plan.files] == ["d"] and (directory / "c").exists()
        assert "the folder has more than 1 files" in str(plan.left_out)


async def test_purge_redaction_backup_and_verification_know_the_kept_files(stage: Any, directory: Path, tmp_path: Path) -> None:
    (directory / "a").write_text("the password is swordfish")
    async with stage([*calls(shell("echo 1 > a")), *calls(shell("echo 2 > b"))]) as on:
        run, _ = await on.ask("First")
        other, _ = await on.ask("Second")
        erasure, path = on.engine.store.erasure, checkpoints_path(on.engine.settings.database)
        backup = await erasure.backups.back_up(tmp_path)
        restore(Path(backup.path), tmp_path / "restored")
        assert list(damaged(checkpoints_path(Settings(tmp_path / "restored").database))) == []
        wanted = await erasure.redact(Secret(("swordfish",)), dry_run=True)
        assert [(file.path, file.why) for file in wanted.files] == [(str(path), "1 match")]
        assert (await on.engine.store.upkeep.sizes()).checkpoints == path.stat().st_size
        await erasure.redact(Secret(("swordfish",)))
        kept = (await (await undo_of(on, run)).undo("files", dry_run=True)).kept
        assert [(file.path, file.reason) for file in kept] == [("a", "its content is no longer stored")]
        with opened(path) as connection:
            connection.execute("UPDATE content SET data = x'00' WHERE digest = (SELECT after_digest FROM change WHERE path = x'62')")
        assert len(list(damaged(path))) == 1
        receipt = await verify(on.engine.settings.home)
        assert [damage.where.partition(" ")[0] for damage in receipt.damages] == ["checkpoint"]
        both = [run.conversation, other.conversation]
        wanted = await erasure.purge(both, dry_run=True)
        assert [(file.path, file.why) for file in wanted.files] == [(str(path), "2 checkpoints of files")]
        await erasure.purge(both)
        with opened(path) as connection:
            for table in ("checkpoint", "change", "content", "seen", "folder"):
                assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


@pytest.mark.slow
@pytest.mark.parametrize("name", ["checkpoint.kept", "undo.file", "undo.files", "undo.talk"])
def test_a_killed_undo_can_be_repeated(tmp_path: Path, name: str) -> None:
    edits = [ToolCall("write_file", {"path": path, "content": "agent"}) for path in ("a", "b")]
    with ScriptedProcess(calls(*edits)) as server:
        moot = make(tmp_path, server.config())
        for path in ("a", "b"):
            (moot.work / path).write_text("before")
        if name == "checkpoint.kept":
            moot.more = {"MOOT_TESTING": "1", "MOOT_CRASH_AT": name}
        moot.run("run", "--mode", "auto", "Write")
        moot.more = {}
        if name == "checkpoint.kept":
            assert moot.run("chat", "stop", "1").returncode == 0
        else:
            moot.more = {"MOOT_TESTING": "1", "MOOT_CRASH_AT": name}
            assert moot.run("chat", "undo", "1", "--yes").returncode != 0
            moot.more = {}
        again = moot.run("chat", "undo", "1", "--yes")
        assert again.returncode == (2 if name == "undo.talk" else 0), again.stderr
        assert ((moot.work / "a").read_text(), (moot.work / "b").read_text()) == ("before", "before")
        moot.close()


@pytest.mark.slow
def test_changes_of_a_killed_run_are_kept_until_they_may_be_overwritten(tmp_path: Path) -> None:
    with ScriptedProcess(calls(shell("echo agent > a"))) as server:
        moot = make(tmp_path, server.config())
        (moot.work / "a").write_text("before")
        moot.more = {"MOOT_TESTING": "1", "MOOT_CRASH_AT": "tool.worked"}
        moot.run("run", "--mode", "auto", "Write")
        moot.more = {}
        assert b"unfinished run" in moot.run("chat", "undo", "1", "--yes").stderr
        moot.run("chat", "stop", "1")
        kept = moot.run("chat", "undo", "1", "--files", "--yes")
        assert b"a is kept: the run was interrupted" in kept.stderr and (moot.work / "a").read_text() == "agent\n"
        assert moot.run("chat", "undo", "1", "--files", "--yes", "--overwrite").returncode == 0
        assert (moot.work / "a").read_text() == "before"
        moot.close()


def test_the_command_line_shows_counts_and_needs_consent(tmp_path: Path) -> None:
    with ScriptedProcess(calls(ToolCall("write_file", {"path": "a", "content": "agent"}))) as server:
        moot = make(tmp_path, server.config())
        moot.run("run", "--mode", "auto", "Write it")
        refused = moot.run("chat", "undo", "1")
        assert refused.returncode == 3 and b"hide 2 messages, delete 1 file" in refused.stderr
        preview = json.loads(moot.run("chat", "undo", "1", "--dry-run", "--json").stdout)
        assert preview["files"] == [{"path": "a", "change": "delete"}] and (moot.work / "a").exists()
        assert moot.run("chat", "undo", "1", "--talk", "--files").returncode == 2
        assert moot.run("chat", "undo", "1", "--files", "--yes").stdout == b"delete a\n" and not (moot.work / "a").exists()
        assert moot.run("chat", "redo", "1", "--yes").returncode == 0 and (moot.work / "a").read_text() == "agent"
        moot.close()


async def test_rewind_goes_back_to_an_earlier_prompt_with_or_without_the_files(stage: Any, directory: Path) -> None:
    one = calls(ToolCall("write_file", {"path": "a", "content": "1"}))
    two = calls(shell("echo 2 > a; echo 2 > b"))
    three = calls(ToolCall("write_file", {"path": "c", "content": "3"}))
    async with stage([*one, *two, *three]) as on:
        run, _ = await on.ask("First")
        for text in ("Second", "Third"):
            await on.ask(text, conversation=run.conversation)
        context = CommandContext(on.engine, str(directory), run.conversation)
        rewind, redo = built_in().find("rewind"), built_in().find("redo")
        (prompts,) = await rewind.run(context, "")
        assert isinstance(prompts, Choose) and [choice.label for choice in prompts.choices] == ["5 Third", "3 Second", "1 First"]
        (parts,) = await rewind.run(context, prompts.choices[1].value)
        assert isinstance(parts, Choose)
        assert [(choice.value, choice.about) for choice in parts.choices] == [
            ("3 both", "hide 4 messages, restore 1 file, delete 2 files"),
            ("3 talk", "hide 4 messages"),
            ("3 files", "restore 1 file, delete 2 files"),
        ]
        await (await undo_of(on, run)).undo("files")  # the last prompt only: c
        before = tree_of(directory)
        notice, opened_again, compose = await rewind.run(context, "3 both")
        assert notice == Notice("Back to “Second”: hide 4 messages, restore 1 file, delete 1 file.", "dim")
        assert opened_again == OpenConversation(run.conversation) and compose == Compose("Second")
        assert (directory / "a").read_text() == "1" and not (directory / "b").exists()
        branch = await on.engine.store.conversations.branch(run.conversation)
        assert [text_of(message.parts) for message in branch if message.role == "user"] == ["First"]
        await redo.run(context, "")
        assert tree_of(directory) == before, "files that were undone before stay undone"
        await rewind.run(context, "1 talk")
        assert tree_of(directory) == before and await on.engine.store.conversations.branch(run.conversation) == []
        with pytest.raises(UsageError, match="not on the current branch"):
            await rewind.run(context, "3 talk")
        await redo.run(context, "")
        for wrong in ("2 talk", "3 everything"):
            with pytest.raises(UsageError):
                await rewind.run(context, wrong)


async def test_slash_commands_offer_what_there_is_to_undo(stage: Any, directory: Path) -> None:
    async with stage([*calls(ToolCall("write_file", {"path": "a", "content": "1"})), Reply(text="Hello.")]) as on:
        run, _ = await on.ask("Write")
        context = CommandContext(on.engine, str(directory), run.conversation)
        (directory / "a").write_text("by hand")
        (choose,) = await built_in().find("undo").run(context, "")
        assert isinstance(choose, Choose)
        assert [choice.value for choice in choose.choices] == ["both", "both overwrite", "talk", "files", "files overwrite"]
        notice, opened_again, compose = await built_in().find("undo").run(context, "both overwrite")
        assert isinstance(notice, Notice) and notice.text == "Undone “Write”: hide 2 messages, delete 1 file."
        assert opened_again == OpenConversation(run.conversation) and compose == Compose("Write")
        await built_in().find("redo").run(context, "")
        assert (directory / "a").read_text() == "by hand"
        with pytest.raises(UsageError, match="Cannot undo"):
            await built_in().find("undo").run(context, "everything")
