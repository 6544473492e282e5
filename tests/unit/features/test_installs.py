from __future__ import annotations

import pytest

from moot.features.installs import resume_command
from moot.plugins import FORMATS
from moot.types.canonical import JsonObject
from moot.types.conversation import Conversation
from moot.types.format import HasResumeCommand

OURS = "moot chat continue c1"


def imported(format: str, **more: str | bool) -> Conversation:
    origin: JsonObject = {"format": format, "source_id": "s-1", "directory": "/code/shop", "placed": True, **more}
    return Conversation("c1", origin=origin)


@pytest.mark.parametrize(
    ("format", "command"),
    [
        ("claude", "claude --resume s-1"),
        ("codex", "codex resume s-1"),
        ("opencode", "opencode --session s-1"),
        ("gemini", "gemini --resume s-1"),
        ("qwen", "qwen --resume s-1"),
        ("pi", "pi --session s-1"),
        ("goose", "goose session --resume --session-id s-1"),
    ],
)
def test_an_imported_session_is_resumed_by_its_own_program_in_its_folder(format: str, command: str):
    assert resume_command(imported(format)) == f"cd /code/shop && {command}"


def test_every_resume_command_ends_with_the_session():
    named = {name for name in FORMATS.names() if isinstance(FORMATS.make(name), HasResumeCommand)}
    assert len(named) > 10
    for name in named:
        assert (resume_command(imported(name)) or "").endswith(" s-1")


def test_folders_and_ids_are_quoted_for_the_shell():
    found = resume_command(imported("claude", directory="/code/it's $HOME", source_id="a;b"))
    assert found == """cd '/code/it'"'"'s $HOME' && claude --resume 'a;b'"""


@pytest.mark.parametrize(
    "more",
    [
        {"source_id": "--dangerously-skip-permissions"},
        {"source_id": "a\nrm -rf ~"},
        {"directory": "/code\x1b[201~"},
        {"source_id": ""},
        {"placed": False},
        {"program": "openclaude"},
    ],
)
def test_a_session_that_its_program_may_not_find_or_that_is_not_safe_to_paste_continues_in_moot(more: dict[str, str | bool]):
    assert resume_command(imported("claude", **more)) == OURS


def test_without_a_folder_there_is_no_cd():
    assert resume_command(imported("cursor", directory="")) == "cursor-agent --resume s-1"


def test_conversations_of_moot_and_of_programs_without_such_a_command_continue_in_moot():
    assert [resume_command(one) for one in (Conversation("c1"), imported("chatgpt"), imported("no-such-format"))] == [OURS] * 3
    assert resume_command(Conversation("c1", origin={"format": "recording", "events": 5})) == OURS


def test_a_sub_agents_conversation_has_no_command():
    assert resume_command(Conversation("c1", parent="c0")) is None
