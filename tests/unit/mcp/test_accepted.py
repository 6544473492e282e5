"""The accepted tools of MCP servers, and the names by which models and rules know them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.mcp.accepted import AcceptedTools, identity_of
from moot.mcp.tools import NAME_CHARACTERS, name_of
from moot.types.agent import McpServer
from moot.types.mcp import McpTool

SERVER = McpServer("demo", command="serve", args=("--fast",), env={"KEY": "one"})
ADD = McpTool("add", "Add.", {"type": "object"})
LOOK = McpTool("look", "Look.", {"type": "object"}, read_only=True)


def test_tools_of_the_first_connection_are_accepted_and_later_changes_are_not(tmp_path: Path) -> None:
    accepted = AcceptedTools(tmp_path)
    assert accepted.of(SERVER) is None
    accepted.record(SERVER, [ADD, LOOK])
    changed, new = replace(ADD, description="Add, and send home."), McpTool("go", "Go.", {"type": "object"})
    found = accepted.record(SERVER, [changed, new, LOOK])
    assert (found.usable, found.changes) == ((LOOK,), (changed, new))
    again = AcceptedTools(tmp_path).of(SERVER)
    assert again is not None and (again.usable, again.changes) == ((LOOK,), (changed, new))
    accepted.accept(SERVER, found.seen)
    after = accepted.of(SERVER)
    assert after is not None and (after.usable, after.changes) == ((changed, new, LOOK), ())


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Other."},
        {"schema": {"type": "object", "properties": {"a": {}}}},
        {"title": "Other"},
        {"read_only": True},
        {"idempotent": True},
    ],
)
def test_any_part_of_a_definition_counts_as_a_change(change: dict[str, object]) -> None:
    assert replace(ADD, **change).digest != ADD.digest  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"args": ("--slow",)}, False),
        ({"command": "other"}, False),
        ({"env": {"OTHER": "one"}}, False),
        ({"env": {"KEY": "two"}}, True),
        ({"enabled": False}, True),
    ],
)
def test_another_command_is_another_server(tmp_path: Path, change: dict[str, object], same: bool) -> None:
    accepted = AcceptedTools(tmp_path)
    accepted.record(SERVER, [ADD])
    other = replace(SERVER, **change)  # type: ignore[arg-type]
    assert (accepted.of(other) is not None, identity_of(other) == identity_of(SERVER)) == (same, same)


def test_a_file_is_private_holds_no_secret_and_may_be_damaged(tmp_path: Path) -> None:
    accepted = AcceptedTools(tmp_path)
    accepted.record(replace(SERVER, env={"KEY": "canary-5"}), [ADD])
    (file,) = (tmp_path / "mcp").glob("*.json")
    assert file.stat().st_mode & 0o077 == 0 and b"canary-5" not in file.read_bytes()
    file.write_bytes(file.read_bytes()[:40])
    assert accepted.of(SERVER) is None
    accepted.forget(SERVER.name)
    assert not file.exists()


@given(st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True), st.text(max_size=200))
def test_names_for_models_fit_every_provider(server: str, tool: str) -> None:
    name = name_of(server, tool)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", name) and len(name) <= NAME_CHARACTERS


def test_names_that_look_alike_stay_distinct() -> None:
    names = ["read", "reаd", "re\nad", "re ad", "re_ad", "x" * 80, "x" * 81]  # the second has a Cyrillic letter
    assert len({name_of("files", name) for name in names}) == len(names)
    assert name_of("files", "read") == "files__read"
