from typing import Any

import pytest

from moot.tools.builtin.tasks import Todo, TodoArguments, TodoItem
from moot.types.tool import ToolOutput

pytestmark = pytest.mark.anyio

ITEMS = [TodoItem(content="one", status="completed"), TodoItem(content="two", status="in_progress"), TodoItem(content="three")]


async def test_the_list_is_kept_and_replaced_as_a_whole(context: Any):
    tool = Todo()
    assert (await tool.run(TodoArguments(), context)).text == "The list is empty."
    output = await tool.run(TodoArguments(todos=ITEMS), context)
    assert output.text == "[x] one\n[~] two\n[ ] three"
    assert await tool.run(TodoArguments(), context) == output
    assert await tool.run(TodoArguments(todos=ITEMS), context) == output
    assert (await Todo().run(TodoArguments(todos=[]), context)).text == "The list is empty."


async def test_views_count_what_is_done():
    assert Todo().doing(TodoArguments(todos=ITEMS)).detail == "1 of 3 steps done"
    assert Todo().done(TodoArguments(), ToolOutput("[x] one")).body == "[x] one"
