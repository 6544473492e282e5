from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from moot.convert.fold import fold_parts
from moot.types.message import Part, is_tool
from moot.types.part_tree import Nested, linked, nest, parent_call

RECORDED = Path(__file__).parents[2] / "recorded" / "agents"


def call(id: str, **metadata: Any) -> Part:
    return {
        "type": "dynamic-tool",
        "toolName": "shell",
        "toolCallId": id,
        "state": "output-available",
        "input": {},
        "output": "",
        **metadata,
    }


def inside(parent: str) -> Any:
    return {"moot": {"parentToolCallId": parent}}


def drawn(nodes: list[Nested]) -> list[Any]:
    """Return the tree with a word for each part."""
    shown: list[Any] = []
    for node in nodes:
        if node.part["type"] != "step-start":
            data: Any = node.part.get("data")
            word = node.part.get("toolName") or (f"{data['kind']} {data['text']}" if data else node.part.get("text"))
            shown.append([word, drawn(node.inner)] if node.inner else word)
    return shown


@pytest.mark.parametrize(
    ("recording", "tree"),
    [
        (
            "claude-code/sub-agent.wire",
            [
                "I delegate.",
                ["Task", ["reasoning sub thinking", "text Looking.", "Bash", "text Found notes.txt"]],
                *["The sub-agent found notes.txt."] * 2,
            ],
        ),
        (
            "codex/sub-agent.wire",
            [
                "Another one does it.",
                ["spawnAgent", ["reasoning I will run it.", "text I run it.", "shell", "text It ran."]],
                "shell",
                "It was done.",
            ],
        ),
    ],
)
def test_what_a_sub_agent_of_a_recording_did_is_below_the_call_that_started_it(recording: str, tree: list[Any]) -> None:
    chunks = orjson.loads((RECORDED / f"{recording}.chunks.json").read_bytes())["chunks"]
    assert drawn(nest(fold_parts((), chunks))) == tree


def test_a_part_whose_call_is_missing_or_comes_later_stays_on_top() -> None:
    inner = call("b", toolMetadata=inside("a"))
    assert [node.part for node in nest([inner, call("a")])] == [inner, call("a")]
    itself = call("a", toolMetadata=inside("a"))
    assert [node.part for node in nest([itself])] == [itself]


def test_sub_agents_of_sub_agents_are_nested() -> None:
    parts = [
        call("a"),
        call("b", toolMetadata=inside("a")),
        call("c", toolMetadata=inside("b")),
    ]
    [top] = nest(parts)
    assert [node.part["toolCallId"] for node in (top, top.inner[0], top.inner[0].inner[0])] == ["a", "b", "c"]


def test_links_of_older_versions_are_read_and_shown_in_the_current_place() -> None:
    old: list[Part] = [
        call("a"),
        call("b", toolMetadata={"vendorId": "v", "claude-code": {"parent": "a", "agent": "explorer"}}),
        call("c", callProviderMetadata={"other": {"parentToolCallId": "a"}}, toolMetadata={"vendorId": "v", "acp": {"kind": "x"}}),
        {"type": "data-subagent", "data": {"parent": "a", "agent": "explorer", "kind": "text", "text": "Looking."}},
        {"type": "reasoning", "text": "hm", "state": "done", "providerMetadata": {"acp": {"parent": "a"}}},
        {"type": "text", "text": "mine", "providerMetadata": {"other": {"parent": "not a call"}}},
    ]
    assert [parent_call(part) for part in old[:5]] == ["", "a", "a", "a", "a"]
    now = linked(old)
    assert [part.get("toolMetadata") for part in now if is_tool(part)] == [
        None,
        {"vendorId": "v", "claude-code": {"parent": "a", "agent": "explorer"}, "moot": {"parentToolCallId": "a"}},
        {"vendorId": "v", "acp": {"kind": "x"}, "moot": {"parentToolCallId": "a"}},
    ]
    assert [part["data"] for part in now if "data" in part] == [
        {"parentToolCallId": "a", "agent": "explorer", "kind": "text", "text": "Looking."},
        {"parentToolCallId": "a", "agent": "", "kind": "reasoning", "text": "hm"},
    ]
    assert now[-1] == old[-1]
    assert linked(now) == now
