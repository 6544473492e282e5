"""`moot chat` as users run it: references, settings that persist, and numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.cli.commands.chat.show import tree_lines
from moot.cli.console.output import Output
from moot.cli.console.results import ShowText
from moot.config.settings import Settings
from moot.store import open_store
from moot.types.canonical import JsonObject
from moot.types.chunk import Chunk
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id
from moot.types.tree import Node

Moot = Callable[..., Any]
DEMO = ("-m", "demo", "--no-tools")


def begin(moot: Moot, *texts: str) -> list[str]:
    """Return the conversations' ids, in that order."""
    return [moot("chat", "new", *DEMO, "--json", text).json["conversation"] for text in texts]


def listed(moot: Moot, *words: str) -> list[str]:
    return [item["title"] for item in moot("chat", "list", *words, "--json").json["data"]]


def tree(moot: Moot, id: str, *flags: str) -> list[tuple[int, str, bool]]:
    return [(node["no"], node["role"], node["shown"]) for node in moot("chat", "tree", id, "--json", *flags).json["data"]]


# ── references ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_number_refers_to_the_list_printed_last(moot: Moot) -> None:
    first, second = begin(moot, "one", "two")
    assert [line.split()[0] for line in moot("chat", "list").out.splitlines()] == ["NO", "1", "2"]
    begin(moot, "three")
    assert moot("chat", "show", "1", "--json").json["conversation"]["id"] == second
    assert moot("chat", "list", "one").out.splitlines()[1].startswith("1 ")
    assert moot("chat", "show", "1", "--json").json["conversation"]["id"] == first
    ended = moot("chat", "show", "2")
    assert (ended.code, "the last list had 1" in ended.err) == (2, True)


def test_each_page_has_its_own_numbers(moot: Moot) -> None:
    first, _ = begin(moot, "one", "two")
    cursor = moot("chat", "list", "--limit", "1", "--json").json["next_cursor"]
    moot("chat", "list", "--limit", "1", "--cursor", cursor)
    assert moot("chat", "show", "1", "--json").json["conversation"]["id"] == first


def test_json_lists_do_not_change_the_numbers_and_an_invalid_file_is_ignored(moot: Moot, home: Path) -> None:
    first, second = begin(moot, "one", "two")
    moot("chat", "list", "one")
    moot("chat", "list", "--json")
    assert moot("chat", "show", "1", "--json").json["conversation"]["id"] == first
    (home / "state" / "last-list.json").write_text("{")
    assert moot("chat", "show", "1", "--json").json["conversation"]["id"] == second
    assert not list((home / "state").glob("last-list.json.*"))


def test_an_id_takes_precedence_over_a_number_and_a_number_over_a_title(moot: Moot) -> None:
    one, _ = begin(moot, "one", "1")
    moot("chat", "list", "one")
    assert moot("chat", "show", "1", "--json").json["conversation"]["id"] == one
    assert moot("chat", "show", one, "--json").json["conversation"]["id"] == one


def test_a_client_id_takes_precedence_over_a_number(moot: Moot, home: Path) -> None:
    begin(moot, "one")

    async def make() -> None:
        store = await open_store(Settings(home))
        await store.conversations.create(Conversation(new_id(), client_id="1", title="a client's"))
        await store.close()

    anyio.run(make)
    moot("chat", "list", "one")
    assert moot("chat", "show", "1", "--json").json["conversation"]["title"] == "a client's"


def test_an_ambiguous_prefix_lists_the_candidates(moot: Moot) -> None:
    ids = begin(moot, "one", "two")
    ended = moot("chat", "show", ids[0][:4])
    assert ended.code == 2 and all(id in ended.err for id in ids) and "'one'" in ended.err


def test_unknown_messages_are_reported_with_a_fix(moot: Moot) -> None:
    (id,) = begin(moot, "one")
    for message, words in (
        ("9", "There is no message number 9: the conversation has 2"),
        ("zzzz", "No message matches 'zzzz'"),
        ("0", "No message matches '0'"),
    ):
        ended = moot("chat", "fork", id, message)
        assert (ended.code, words in ended.err, "moot chat tree" in ended.err) == (2, True, True)
    messages = [node["id"] for node in moot("chat", "tree", id, "--json").json["data"]]
    several = moot("chat", "fork", id, messages[0][:4])
    assert several.code == 2 and all(message in several.err for message in messages)


# ── continuing ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_words_after_the_conversation_are_the_prompt(moot: Moot) -> None:
    begin(moot, "one")
    ended = moot("chat", "continue", "1", "--no-tools", "and", "now", "the tests")
    assert "You said: and now the tests" in ended.out
    assert "You said: more\n\nfrom stdin" in moot("chat", "continue", "1", "more", "--no-tools", stdin=b"from stdin").out
    assert "You said: begin with --this" in moot("chat", "new", *DEMO, "--", "begin", "with", "--this").out


def test_a_conversation_keeps_its_agent_and_model_until_another_is_named(moot: Moot, home: Path) -> None:
    (home / "config.yaml").write_text(
        "models: {main: demo@demo}\n"
        "providers: {other: {dialect: openai-chat, base_url: 'http://127.0.0.1:9', api_key: x, models: {m: {}}}}\n"
        "agents: {reviewer: {model: demo@demo, tools: []}}\n"
    )
    first = moot("chat", "new", "-a", "reviewer", "--json", "one").json
    id = first["conversation"]

    def stands() -> tuple[str, str]:
        found = moot("chat", "show", id, "--json").json["conversation"]
        return found["agent"], found["model"]

    assert stands() == ("reviewer", "demo@demo")
    moot("chat", "continue", id, "--json", "two")
    assert stands() == ("reviewer", "demo@demo")
    assert moot("chat", "continue", id, "-m", "m@other", "--json", "--timeout", "1s", "three").code != 0
    assert stands() == ("reviewer", "m@other")
    moot("chat", "continue", id, "-a", "default", "--json", "four")
    assert stands() == ("default", "demo@demo")
    assert moot("chat", "continue", id, "-a", "nobody", "five").code == 2
    assert stands() == ("default", "demo@demo")


def test_reply_continues_the_conversation_used_last(moot: Moot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here,) = begin(moot, "here")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with monkeypatch.context() as patch:
        patch.chdir(elsewhere)
        # the fixture uses the process's own folder
        (there,) = begin(moot, "there")
    assert moot("run", "--reply", "--no-tools", "--json", "more").json["conversation"] == there
    assert moot("run", "--reply", "-c", "--no-tools", "--json", "more").json["conversation"] == here
    assert moot("run", "--reply", "--no-tools", "--json", "more").json["conversation"] == here
    ended = moot("run", "--reply", "-c", there, "more")
    assert (ended.code, "cannot be used together" in ended.err) == (2, True)


def test_reply_requires_an_earlier_conversation(moot: Moot) -> None:
    ended = moot("run", "--reply", "more")
    assert (ended.code, "No conversation yet" in ended.err) == (2, True)


def test_without_a_prompt_the_last_message_must_be_a_user_message(moot: Moot) -> None:
    (id,) = begin(moot, "one")
    ended = moot("chat", "continue", id)
    assert (ended.code, "--again" in ended.err) == (2, True)
    first = moot("chat", "tree", id, "--json").json["data"][0]["id"]
    moot("chat", "switch", id, first, "--exactly")
    assert "You said: one" in moot("chat", "continue", id, "--no-tools").out
    assert tree(moot, id) == [(1, "user", True), (2, "assistant", False), (3, "assistant", True)]


def test_another_answer_gets_its_own_branch(moot: Moot) -> None:
    (id,) = begin(moot, "one")
    assert "You said: one" in moot("chat", "continue", id, "--again", "--no-tools").out
    assert tree(moot, id) == [(1, "user", True), (2, "assistant", False), (3, "assistant", True)]
    assert moot("chat", "continue", id, "--again", "and a prompt").code == 2


# ── changing ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_messages_are_deleted_shown_with_all_and_restored(moot: Moot) -> None:
    (id,) = begin(moot, "a needle")
    moot("chat", "continue", id, "--no-tools", "more")
    deleted = moot("chat", "delete", id, "--message", "1", "--message", "2", "--json").json
    assert len(deleted["messages"]) == 2
    assert [message["role"] for message in moot("chat", "show", id, "--json").json["data"]] == ["user", "assistant"]
    assert moot("search", "needle", "--json").json["data"] == []
    assert tree(moot, id) == [(3, "user", True), (4, "assistant", True)]
    assert len(tree(moot, id, "--all")) == 4
    assert "1 user (deleted): a needle" in moot("chat", "tree", id, "--all").out
    assert "restore it with" in moot("chat", "delete", id, "--message", "3").err
    assert moot("chat", "restore", id, "--message", "1", "--json").json["ok"]
    assert "needle" in moot("chat", "show", id).out
    assert moot("search", "needle", "--json").json["data"] != []


def test_a_fork_is_a_separate_conversation_that_can_be_continued(moot: Moot) -> None:
    (id,) = begin(moot, "one")
    moot("chat", "continue", id, "--no-tools", "two")
    made = moot("chat", "fork", id, "2", "--json").json
    assert (made["source"], made["conversation"] != id) == (id, True)
    moot("chat", "continue", made["conversation"], "--no-tools", "other")
    assert "other" not in moot("chat", "show", id).out and "two" not in moot("chat", "show", made["conversation"]).out
    assert listed(moot) == ["one (fork)", "one"]
    assert moot("chat", "fork", id, "--title", "mine").err.count("mine") == 1
    assert listed(moot, "mine") == ["mine"]


def test_a_title_set_by_the_user_is_kept(moot: Moot) -> None:
    (id,) = begin(moot, "one")
    assert "release plans" in moot("chat", "rename", id, "release", "plans").err
    assert moot("chat", "show", "release plans", "--json").json["conversation"]["title_source"] == "user"
    assert moot("chat", "rename", id, " ").code == 2
    assert moot("chat", "rename", id).code == 2


def test_conversations_are_pinned_tagged_and_filtered(moot: Moot) -> None:
    id, _, _ = begin(moot, "one", "two", "three")
    assert "pinned one" in moot("chat", "pin", id).err
    assert "one: draft, release" in moot("chat", "tag", id, "release", "draft").err
    assert listed(moot) == ["one", "three", "two"]
    assert listed(moot, "--tag", "draft") == ["one"]
    assert re.search(r"\(pinned\) draft release +one", moot("chat", "list").out)
    ended = moot("chat", "list", "--tag", "drafts")
    assert ended.code != 0 and "No conversation has the tag 'drafts'. Did you mean 'draft'?" in ended.err
    ended = moot("chat", "tag", id, "Bad")
    assert ended.code == 2 and "Invalid tag 'Bad'" in ended.err
    ended = moot("chat", "tag", id, "other", "--remove")
    assert ended.code == 2 and "doesn't have the tag 'other'" in ended.err
    assert moot("chat", "tag", id, "draft", "--remove", "--json").json["tags"] == ["release"]
    assert "one: no tags" in moot("chat", "tag", id, "--remove").err
    assert moot("chat", "unpin", id).code == 0 and listed(moot) == ["three", "two", "one"]


def test_an_archived_conversation_is_hidden_from_the_list_but_kept(moot: Moot) -> None:
    id, _ = begin(moot, "one", "two")
    moot("chat", "archive", id)
    assert listed(moot) == ["two"] and listed(moot, "--archived") == ["one"]
    assert moot("chat", "show", id).code == 0
    moot("chat", "archive", id, "--undo")
    assert sorted(listed(moot)) == ["one", "two"]
    moot("chat", "delete", id)
    assert listed(moot) == ["two"] and listed(moot, "--deleted") == ["one"]
    assert moot("chat", "continue", id, "more").code == 2


def test_the_list_is_filtered_by_words(moot: Moot) -> None:
    begin(moot, "Release plans", "lunch")
    assert listed(moot, "PLANS", "demo") == ["Release plans"]
    assert listed(moot, "nothing") == []


def test_switching_goes_to_a_branch_by_its_number(moot: Moot) -> None:
    (id,) = begin(moot, "one")
    moot("chat", "continue", id, "--again", "--no-tools")
    assert "now ends with message 2" in moot("chat", "switch", id, "2").err
    assert tree(moot, id) == [(1, "user", True), (2, "assistant", True), (3, "assistant", False)]


def test_a_conversation_is_shown_page_by_page_from_its_end(moot: Moot) -> None:
    (id,) = begin(moot, "one")
    for text in ("two", "three"):
        moot("chat", "continue", id, "--no-tools", text)
    pages: list[list[str]] = []
    cursor: list[str] = []
    while True:
        page = moot("chat", "show", id, "--limit", "4", "--json", *cursor).json
        pages.append([message["id"] for message in page["data"]])
        if page["next_cursor"] is None:
            break
        cursor = ["--cursor", page["next_cursor"]]
    whole = [message["id"] for message in moot("chat", "show", id, "--json").json["data"]]
    assert pages == [whole[2:], whole[:2]]
    assert "--cursor" in moot("chat", "show", id, "--limit", "4").err


def test_attach_requires_a_live_run(moot: Moot) -> None:
    (id,) = begin(moot, "one")
    assert (moot("ps").err, moot("ps", "--json").json["data"]) == ("moot: no active runs\n", [])
    ended = moot("chat", "attach", id)
    assert (ended.code, "has no active run" in ended.err) == (2, True)


@pytest.mark.parametrize("command", ["delete", "restore", "rename", "archive", "fork", "tree", "show", "switch", "stop", "attach"])
@pytest.mark.slow
def test_errors_are_json_documents_for_scripts(moot: Moot, command: str) -> None:
    begin(moot, "one")
    ended = moot("chat", command, "nothing-like-it", *(["1"] if command in ("rename", "switch") else []), "--json")
    assert ended.code == 2
    assert json.loads(ended.out)["error"]["code"] == "not_found"


# ── rendering ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def grown(parents: list[int], **fields: Any) -> list[Node]:
    """Create nodes 1 … n, each after an earlier one (0 = a root)."""
    deleted = fields.get("deleted", ())
    return [
        Node(no, f"m{no}", f"m{parent}" if parent else None, "user", "finished", f"line {no}", 0, None, shown=False, deleted=no in deleted)
        for no, parent in enumerate(parents, 1)
    ]


def test_only_branches_are_indented() -> None:
    assert list(tree_lines(grown([0, 1, 2, 3, 2, 5, 2]))) == [
        "  1 user: line 1",
        "  2 user: line 2",
        "  |-3 user: line 3",
        "  | 4 user: line 4",
        "  |-5 user: line 5",
        "  | 6 user: line 6",
        "  `-7 user: line 7",
    ]


def test_children_of_a_deleted_message_are_attached_to_its_parent() -> None:
    nodes = grown([0, 1, 2, 2], deleted=(2,))
    assert list(tree_lines(nodes)) == ["  1 user: line 1", "  |-3 user: line 3", "  `-4 user: line 4"]
    assert list(tree_lines(nodes, deleted=True))[1] == "  2 user (deleted): line 2"


def test_a_very_long_conversation_is_drawn() -> None:
    assert sum(1 for _ in tree_lines(grown(list(range(10_000))))) == 10_000


@given(st.lists(st.integers(0, 30), max_size=30), st.sets(st.integers(1, 30)))
def test_every_message_is_drawn_once_after_its_parent(wished: list[int], deleted: set[int]) -> None:
    nodes = grown([parent % no for no, parent in enumerate(wished, 1)], deleted=deleted)
    lines = list(tree_lines(nodes))
    numbers = [int(line.split(" user")[0].split("-")[-1].split()[-1]) for line in lines]
    assert sorted(numbers) == [node.no for node in nodes if not node.deleted]
    assert all(
        numbers.index(int(node.parent[1:])) < numbers.index(node.no)
        for node in nodes
        if node.parent and not node.deleted and int(node.parent[1:]) not in deleted
    )


# ── sub-agents ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

RECORDED = Path(__file__).parents[2] / "recorded" / "agents"


@pytest.mark.parametrize(
    ("recording", "shown"),
    [
        (
            "claude-code",
            ['→ Task {"description"', "  [general-purpose: Looking.]", "  → Bash", "  [general-purpose: Found", "The sub"],
        ),
        ("codex", ["→ spawnAgent", "  [sub-agent 1: I run it.]", "  → shell", "  [sub-agent 1: It ran.]", "→ shell", "It was done."]),
    ],
)
def test_calls_of_a_sub_agent_are_shown_below_the_call_that_started_it(moot: Moot, recording: str, shown: list[str]) -> None:
    assert moot("import", str(RECORDED / recording / "sub-agent.wire.jsonl")).code == 0
    [conversation] = moot("chat", "list", "--json").json["data"]
    lines = moot("chat", "show", conversation["id"]).out.partition("── assistant")[2].splitlines()[2:]
    assert [line[: len(words)] for line, words in zip(lines, shown, strict=False)] == shown


def test_the_calls_of_a_sub_agent_are_indented_while_a_prompt_runs(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    def chunk(kind: str, id: str, **more: Any) -> Chunk:
        return {"type": kind, "toolCallId": id, **more}

    inside: JsonObject = {"toolMetadata": {"moot": {"parentToolCallId": "a"}}}
    chunks: tuple[Chunk, ...] = (
        chunk("tool-input-available", "a", toolName="Task", input={}),
        chunk("tool-input-available", "b", toolName="Bash", input={}, **inside),
        {"type": "data-subagent", "data": {"parentToolCallId": "a", "agent": "scout", "kind": "text", "text": "I look."}},
        chunk("tool-output-error", "b", errorText="no", **inside),
        chunk("tool-output-error", "a", errorText="failed too"),
    )
    anyio.run(ShowText(Output()).event, Event("chunks", chunks))
    told = capfdbinary.readouterr().err.decode().splitlines()
    assert told == ["→ Task ", "  → Bash ", "  scout: I look.", "    Bash failed: no", "  Task failed: failed too"]
