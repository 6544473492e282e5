"""References to environment variables in the configuration."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.config.changes import set_value
from moot.config.document import parse
from moot.config.loader import FILE as FILE_NAME
from moot.config.loader import load
from moot.config.tree import Node, Place, interpolate, plain
from moot.errors import ConfigError

NAMES = st.text(string.ascii_uppercase + "_", min_size=1, max_size=6)
VALUES = st.text(max_size=20)
FILE = Place("user", "f")


def result(text: str, environ: dict[str, str], layer: str = "user") -> object:
    node = Node({"k": Node(text, Place(layer, "f"), text)}, FILE)
    value = plain(interpolate(node, environ))
    assert isinstance(value, dict)
    return value["k"]


@given(st.text().filter(lambda text: "${" not in text), st.dictionaries(NAMES, VALUES))
def test_text_without_a_reference_stays_as_it_is(text: str, environ: dict[str, str]) -> None:
    assert result(text, environ) == text


@given(NAMES, VALUES, VALUES.filter(lambda text: "${" not in text and not text.endswith("$")), VALUES.filter(lambda text: "${" not in text))
def test_a_reference_is_replaced_once_and_literally(name: str, value: str, before: str, after: str) -> None:
    assert result(f"{before}${{{name}}}{after}", {name: value}) == before + value + after


@given(NAMES, VALUES.filter(lambda text: not set(text) & {"}", "$"}), st.sampled_from([None, "", "set"]))
def test_a_default_replaces_an_unset_or_empty_variable(name: str, default: str, value: str | None) -> None:
    environ = {} if value is None else {name: value}
    assert result(f"${{{name}:-{default}}}", environ) == (value or default)


@given(NAMES, VALUES)
def test_two_dollars_escape_a_reference(name: str, value: str) -> None:
    assert result(f"$${{{name}}}", {name: value}) == f"${{{name}}}"


@given(NAMES, VALUES)
def test_only_files_have_references(name: str, value: str) -> None:
    assert result(f"${{{name}}}", {name: value}, layer="environment") == f"${{{name}}}"
    assert result(f"${{{name}}}", {name: value}, layer="flags") == f"${{{name}}}"


@given(VALUES)
def test_a_quoted_scalar_stays_text_whatever_the_variable_holds(value: str) -> None:
    tree = interpolate(parse("k: '${V}'", FILE), {"V": value})
    assert plain(tree) == {"k": value}


UNSET = """
mcp:
  docs:
    url: https://example.org/mcp
    headers: {Authorization: "Bearer ${DOCS_KEY}"}
  notes: {command: "${NOTES}", args: [serve]}
  files: {command: files}
"""


def test_only_the_mcp_server_whose_variable_is_not_set_is_disabled(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(UNSET)
    found = load(home=tmp_path, environ={}, directory=tmp_path)
    docs, files = found.settings.mcp["docs"], found.settings.mcp["files"]
    problem = f"{tmp_path / FILE_NAME}:5:30: mcp.docs.headers.Authorization: The environment variable 'DOCS_KEY' is not set."
    assert (docs.enabled, docs.problem, files.enabled, files.problem) == (False, problem, True, "")
    assert found.notes[0] == f"{problem} The MCP server 'docs' is disabled until it is set."
    assert "'NOTES' is not set" in found.notes[1] and not found.settings.mcp["notes"].enabled
    assert found.doubt is not None and problem in found.doubt.message
    known = load(home=tmp_path, environ={"DOCS_KEY": "secret", "NOTES": "n"}, directory=tmp_path)
    assert known.settings.mcp["docs"].headers == {"Authorization": "Bearer secret"} and known.doubt is None and not known.notes


def test_a_variable_that_is_not_set_can_stay_in_the_file_but_not_be_added(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_text(UNSET)
    set_value(path, "mcp.docs.enabled", False, {})
    set_value(path, "mcp.files.enabled", False, {})
    with pytest.raises(ConfigError, match="'MORE' is not set"):
        set_value(path, "mcp.more.command", "${MORE}", {})
    assert "more" not in path.read_text()
