from typing import Any

import pytest

from moot.plugins import TOOLS
from moot.tools.catalogue import FILE, Placeholder, generated_table, placeholders, provided_tool
from moot.tools.schema import definition, definition_digest, parse
from moot.types.canonical import dumps, loads_object

TOLD = ("name", "description", "concurrent", "idempotent", "effects", "hidden", "beta", "badge", "examples", "arguments")


def built_in() -> list[str]:
    return [name for name in TOOLS.names() if not TOOLS.package(name)]


def test_the_table_matches_the_tools() -> None:
    assert dumps(loads_object(FILE.read_bytes())) == dumps(generated_table()), "run python docs/generate.py"


@pytest.mark.parametrize("name", built_in())
def test_a_placeholder_has_the_definition_of_its_tool(name: str) -> None:
    real: Any = TOOLS.make(name)
    told = provided_tool(name)
    assert isinstance(told, Placeholder)
    assert {one: getattr(told, one) for one in TOLD} == {one: getattr(real, one) for one in TOLD}
    assert definition(told) == definition(real)
    assert definition_digest(told) == definition_digest(real)  # an approval outlives the version that requested it


def test_a_placeholder_loads_its_tool_when_called() -> None:
    told = placeholders()["read_file"]
    assert "tool" not in vars(told)
    arguments = parse(told, {"path": "a.txt"})
    assert told.doing(arguments).title == "Read a.txt"
    assert told.tool is told.tool


def test_a_configurable_tool_is_unavailable_without_settings() -> None:
    search: Any = placeholders()["web_search"]
    assert not search.available({})
    assert "tool" not in vars(search)
    assert not search.available({"provider": "nobody"})
    assert search.available({"provider": "brave", "api_key": "key"})
