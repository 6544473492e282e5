"""Undo and redo of prompts: their messages, and the files that tools, commands and sub-agents changed."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from moot.engine.undo import Undo
from moot.errors import Busy, UsageError
from moot.testing.script import Reply, ToolCall
from moot.types.message import text_of

pytestmark = pytest.mark.anyio


def calls(*made: ToolCall) -> list[Reply]:
    """Return the answers of a run that makes these calls one by one."""
    return [*(Reply(tool_calls=[call]) for call in made), Reply(text="Done.")]


def shell(command: str) -> ToolCall:
    return ToolCall("shell", {"command": command})


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
        with pytest.raises(UsageError, match="shows no prompt"):
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
        with pytest.raises(Busy, match="has not ended"):
            await (await undo_of(on, run)).undo()


async def test_a_run_of_plain_text_records_nothing(stage: Any) -> None:
    async with stage([Reply(text="Hello.")]) as on:
        await on.ask("Hi")
        assert not (on.engine.settings.database.parent / "checkpoints.db").exists()
