from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import DummyCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.utils import get_cwidth

from moot.cli.repl.composer import CommandCompletion, Composer, PromptHistory
from moot.cli.repl.drafts import Draft, Drafts
from moot.cli.repl.programs import notification_text
from moot.cli.repl.scrollback import Scrollback
from moot.cli.repl.status import Status, branch_of, current_status, status_line
from moot.cli.terminal.look import Look
from moot.commands import CommandContext, RunOverrides
from moot.commands.catalogue import built_in
from moot.config.settings import Models, Settings
from moot.types.conversation import Conversation
from moot.types.usage import Usage

TEXT = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=40)


def line(status: Status, width: int) -> str:
    """Return the text of the status line."""
    return "".join(text for _, text in status_line(status, width))


@given(TEXT, TEXT, st.integers(0, 120), st.integers(0, 10**13) | st.none())
def test_a_status_line_is_never_wider_than_the_terminal(model: str, directory: str, width: int, cost: int | None) -> None:
    status = Status(model=model, directory=directory, context=0.34, usage=Usage(68_000, 100), cost=cost, unpriced=1, queued=2)
    assert get_cwidth(line(status, width)) <= width


def test_the_last_column_of_a_table_is_wrapped_below_itself() -> None:
    scrollback = Scrollback(Look(30, colour=False))
    scrollback.say("Ctrl+X N   Start a new conversation here\na long sentence that the terminal wraps itself, as it may be copied")
    first, second, third, _ = scrollback.take().split("\n")
    assert (first, second) == ("Ctrl+X N   Start a new", "           conversation here") and third.startswith(
        "a long sentence that the terminal wraps"
    )


def test_a_narrow_status_line_keeps_the_most_important_fields() -> None:
    status = Status(model="big@mine", mode="plan", directory="/srv/app", branch="main", context=0.34, usage=Usage(68_000, 100), queued=2)
    assert line(status, 100) == "big@mine · ctx 34% · 68.1k tokens · plan · /srv/app (main) · 2 queued"
    assert line(status, 40) == "big@mine · ctx 34% · plan · 2 queued"
    assert line(status, 12) == "big@mine"
    waiting = replace(status, directory="/srv/shops/app", elsewhere=3, queued=0)
    assert line(waiting, 100) == "big@mine · ctx 34% · 68.1k tokens · plan · /srv/shops/app (main) · 3 waiting elsewhere"
    assert line(waiting, 80) == "big@mine · ctx 34% · 68.1k tokens · plan · …/app (main) · 3 waiting elsewhere"
    assert line(waiting, 50) == "big@mine · ctx 34% · plan · 3 waiting elsewhere"
    assert ("class:note", "3 waiting elsewhere") in status_line(waiting, 80) and waiting.to_json()["waiting_elsewhere"] == 3


def test_a_nearly_used_budget_is_among_the_most_important_fields() -> None:
    status = Status(model="big@mine", directory="/srv/app", context=0.34, usage=Usage(68_000, 100), budget="budget daily 84%")
    assert line(status, 40) == "big@mine · budget daily 84% · ask"
    assert status.to_json()["budget"] == "budget daily 84%"
    assert line(status, 3) == "big"


def test_the_mode_auto_has_the_colour_of_warnings() -> None:
    status = Status(agent="auto", model="auto", mode="auto")
    assert status_line(status, 80)[:5] == [
        ("class:status", "auto"),
        ("class:status", " · "),
        ("class:status", "auto"),
        ("class:status", " · "),
        ("class:note", "auto"),
    ]
    assert {style for style, _ in status_line(Status(model="m", mode="plan"), 80)} == {"class:status"}


def test_the_status_line_names_the_agent_and_its_model() -> None:
    chosen = CommandContext(None, "/srv", overrides=RunOverrides(agent="claude-code"))  # type: ignore[arg-type]
    runtime = SimpleNamespace(settings=Settings(Path("home"), models=Models(main="big@mine")), budget_status="")
    chosen.engine = SimpleNamespace(runtime=runtime)  # type: ignore[assignment]
    known = Conversation("c", agent="default", model="other@mine", settings={"model": "other@mine"})
    status = current_status(chosen, known, queued=0)
    assert (status.agent, status.model) == ("claude-code", "")
    assert line(status, 100).startswith("claude-code · ask")
    chosen.overrides.agent = None
    assert current_status(chosen, known, queued=0).model == "other@mine"
    assert current_status(chosen, None, queued=0).model == "big@mine"


def test_the_last_model_is_shown_for_an_agent_that_chooses_its_own() -> None:
    runtime = SimpleNamespace(settings=Settings(Path("home"), models=Models(main="big@mine")), budget_status="")
    context = CommandContext(SimpleNamespace(runtime=runtime), "/srv")  # type: ignore[arg-type]
    known = Conversation("c", agent="claude-code", agent_type="claude-code", last_model="opus@anthropic")
    assert current_status(context, known, queued=0).model == "opus@anthropic"
    assert current_status(context, replace(known, model="haiku"), queued=0).model == "haiku"
    assert current_status(context, replace(known, origin={"format": "claude"}), queued=0).model == ""
    context.overrides.agent = "codex"
    assert current_status(context, known, queued=0).model == ""


def test_the_branch_is_read_also_in_a_worktree(tmp_path: Path) -> None:
    (tmp_path / "main" / ".git" / "worktrees" / "w").mkdir(parents=True)
    (tmp_path / "main" / ".git" / "HEAD").write_text("ref: refs/heads/feature/x\n")
    (tmp_path / "main" / ".git" / "worktrees" / "w" / "HEAD").write_text("0123456789abcdef\n")
    (tmp_path / "w" / "deep").mkdir(parents=True)
    (tmp_path / "w" / ".git").write_text(f"gitdir: {tmp_path}/main/.git/worktrees/w\n")
    assert (branch_of(str(tmp_path / "main")), branch_of(str(tmp_path / "w" / "deep"))) == ("feature/x", "01234567")


def test_a_draft_is_saved_privately_and_restored_by_the_next_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "drafts"
    drafts = Drafts(folder, "/srv/app")
    draft = Draft("half", {"[pasted 2 lines]": "a\nb"}, "aside", [{"type": "text", "text": "out"}])
    drafts.save(None, draft)
    drafts.save("../../../evil", Draft("x"))
    assert all(path.parent == folder for path in tmp_path.rglob("*.json"))
    (written,) = folder.glob("new-*.json")
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert Drafts(folder, "/srv/other").restore(None) == Draft()
    written.rename(written.with_name(written.name.replace(str(os.getpid()), "4194305")))  # no process has this id
    later = Drafts(folder, "/srv/app")
    assert later.restore(None) == draft
    later.save(None, Draft())
    assert not list(folder.glob("new-*.json"))
    (folder / "broken.json").write_text("[1")
    assert later.restore("broken") == Draft()


def test_the_history_is_saved_privately_and_invalid_lines_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history.jsonl"
    history = PromptHistory(path)
    for text in ("one", "two\nlines", "one", "x" * 30_000, " "):
        history.store_string(text)
    with path.open("ab") as file:
        file.write(b'{"a": 1}\n"half')
    assert list(PromptHistory(path).load_history_strings()) == ["one", "two\nlines"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.anyio
async def test_large_pastes_are_placeholders_that_are_sent_in_full() -> None:
    composer = Composer(history=InMemoryHistory(), completer=DummyCompleter())
    composer.paste("short\r\nlines")
    assert composer.text == "short\nlines"
    composer.replace("see ")
    composer.paste("line\n" * 1000)
    composer.paste("x" * 5000)
    assert composer.text == "see [pasted 1,001 lines][pasted 5,000 characters #2]"
    assert composer.full_text() == "see " + "line\n" * 1000 + "x" * 5000
    composer.delete_before_cursor()
    assert composer.text == "see [pasted 1,001 lines]"
    again = Composer(history=InMemoryHistory(), completer=DummyCompleter())
    again.replace(composer.text, composer.pastes())
    assert again.full_text() == composer.full_text()
    composer.cursor_position = len("see [pasted 1,0")
    composer.insert_text("!")  # inside the placeholder
    assert composer.full_text() == "see " + "line\n" * 1000 + "!"
    composer.cursor_position -= 5
    composer.save_to_undo_stack()
    composer.delete_before_cursor()
    assert composer.text == "see !"
    composer.undo()
    assert composer.full_text() == "see " + "line\n" * 1000 + "!"
    composer.cursor_position = len("see [")
    composer.delete()
    assert composer.text == "see !"
    composer.give_back(["first", "line\n" * 1000])
    assert composer.text == "first\n[pasted 1,001 lines #3]\nsee !"
    composer.replace("a\udcffb")
    assert composer.full_text() == "a\ufffdb"
    await anyio.sleep(0.05)  # the completion it started ends


@pytest.mark.anyio
async def test_enter_takes_a_highlighted_command_only_with_the_cursor_at_the_end() -> None:
    composer = Composer(history=InMemoryHistory(), completer=DummyCompleter())
    composer.replace("/model gpt")
    model = CommandCompletion("model", -4, display="/model", about="", is_name=True)
    menu = CompletionState(Document("/mod", 4), [model])
    composer.complete_state = menu
    assert composer.highlighted() is model
    composer.cursor_position = len("/mod")
    composer.complete_state = menu
    assert composer.highlighted() is None
    menu.go_to_index(0)  # chosen with the arrow keys
    assert composer.highlighted() is model


@pytest.mark.parametrize(
    ("typed", "expected"), [("q", ["exit"]), ("clear", ["new"]), ("mo", ["model", "mode"]), ("resume", ["continue"]), ("hepl", [])]
)
def test_the_best_match_is_the_first_command_of_the_menu(typed: str, expected: list[str]) -> None:
    assert [one.name for one in built_in().starting_with(typed)][:2] == expected


@given(st.text(max_size=300))
def test_a_notification_is_one_line_without_control_characters(title: str) -> None:
    said = notification_text("done", title)
    assert len(said) <= 200
    assert not set(said) & set("\x07\x1b\x9c;\n")
