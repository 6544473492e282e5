from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from moot.config.document import parse
from moot.config.tree import Node, Place, interpolate, plain

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
