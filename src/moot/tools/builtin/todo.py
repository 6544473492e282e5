"""todo: keep a list of steps in the conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from pydantic import BaseModel, Field

from moot.tools.basics import BaseTool, count
from moot.types.canonical import Json
from moot.types.tool import ToolContext, ToolOutput, View

_MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}


class Item(BaseModel):
    content: str = Field(min_length=1, max_length=500)
    status: Literal["pending", "in_progress", "completed"] = "pending"


class TodoArguments(BaseModel):
    todos: list[Item] | None = Field(default=None, max_length=100, description="The whole new list; omit it to show the list")


@dataclass(slots=True)
class _List:
    items: tuple[Item, ...] = ()


class Todo(BaseTool):
    """The `todo` tool, with one list per conversation. Each call replaces or shows the whole list."""

    name = "todo"
    description = "Keep a list of the steps of a longer task. Send the whole list each time, one step in_progress."
    arguments = TodoArguments
    idempotent = True
    needs_folder = False
    effects = frozenset({"read"})

    async def call(self, arguments: TodoArguments, context: ToolContext) -> ToolOutput:
        todo = context.kept("todos", _List)
        if arguments.todos is not None:
            todo.items = tuple(arguments.todos)
        value = cast("list[Json]", [item.model_dump() for item in todo.items])
        return ToolOutput(_shown(todo.items) or "The list is empty.", value, empty=not todo.items)

    def doing(self, arguments: TodoArguments) -> View:
        items = tuple(arguments.todos or ())
        done = sum(item.status == "completed" for item in items)
        return View("Todo", f"{done} of {count(len(items), 'step')} done" if items else "", _shown(items))


def _shown(items: tuple[Item, ...]) -> str:
    return "\n".join(f"{_MARKS[item.status]} {item.content}" for item in items)
