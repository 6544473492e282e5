"""The tools for work items: tasks of the conversation's project, and a list of steps in the conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from pydantic import BaseModel, Field

from moot.errors import UsageError
from moot.guard.hidden import spelled_out, warning_of
from moot.tools.basics import BaseTool, count, title
from moot.types.canonical import Json, JsonObject
from moot.types.task import COMMENT_CHARACTERS, DESCRIPTION_CHARACTERS, TITLE_CHARACTERS, Task, TaskComment, TaskFilter, TaskStatus
from moot.types.tool import ToolContext, ToolOutput, View

SHOWN_COMMENTS = 20
"""Maximum number of comments that the action `read` returns. It returns the newest ones."""

_FIELDS = ("title", "description", "status", "tags", "assignee", "due")


class TasksArguments(BaseModel):
    action: Literal["list", "read", "create", "update", "comment"]
    task: int | None = Field(default=None, ge=1, description="Number of the task, to read, update or comment on it")
    title: str | None = Field(default=None, max_length=TITLE_CHARACTERS)
    description: str | None = Field(default=None, max_length=DESCRIPTION_CHARACTERS, description="Markdown; replaces the old one")
    status: TaskStatus | None = Field(default=None, description="To list: only tasks with this status")
    tags: list[str] | None = Field(default=None, max_length=20, description="Replaces the old tags. To list: only tasks with these tags")
    assignee: str | None = Field(default=None, max_length=200, description="Agent or person; empty = no one")
    due: str | None = Field(default=None, max_length=10, description="Date such as 2026-12-24; empty = none")
    comment: str = Field(default="", max_length=COMMENT_CHARACTERS, description="To comment: the text, in Markdown")
    query: str = Field(default="", max_length=500, description="To list: words in title or description")
    limit: int = Field(default=20, ge=1, le=100, description="To list: maximum number of tasks")


class Tasks(BaseTool):
    """The `tasks` tool. Reading never needs approval. Changes may start other agents, so every mode except `auto` asks about them."""

    name = "tasks"
    description = "List, read, create, update and comment on the tasks (work items) of this project."
    arguments = TasksArguments
    effects = frozenset({"write", "network"})
    reads = frozenset({"list", "read"})
    hidden = True
    needs_folder = False
    examples = (
        {"user": "What is in review?", "arguments": {"action": "list", "status": "in_review"}},
        {"user": "Add a task to fix the login.", "arguments": {"action": "create", "title": "Fix the login"}},
        {"user": "Move task 12 to done.", "arguments": {"action": "update", "task": 12, "status": "done"}},
    )

    async def call(self, arguments: TasksArguments, context: ToolContext) -> ToolOutput:
        tasks = context.services.tasks
        if arguments.action == "list":
            conditions = TaskFilter(
                (arguments.status,) if arguments.status else (),
                tuple(arguments.tags or ()),
                assignee=arguments.assignee or "",
                query=arguments.query,
            )
            found, more = await tasks.list(conditions, limit=arguments.limit)
            lines = [*map(_line, found), *(["There are more; set a filter or a higher limit."] if more else [])]
            return ToolOutput("\n".join(lines) or "There are no such tasks.", list[Json](map(_json, found)), empty=not found)
        if arguments.action == "create":
            return _changed("Created", await tasks.create(_fields(arguments)))
        if arguments.task is None:
            raise UsageError("The task number is missing.", fix='Set "task". The action "list" shows the numbers.')
        number = str(arguments.task)
        if arguments.action == "read":
            task = await tasks.get(number)
            return ToolOutput(_text(task, await tasks.comments(number, limit=SHOWN_COMMENTS)), _json(task))
        if arguments.action == "update":
            return _changed("Updated", await tasks.update(number, _fields(arguments)))
        return _changed("Commented on", await tasks.comment(number, arguments.comment))

    def doing(self, arguments: TasksArguments) -> View:
        number = f"#{arguments.task}" if arguments.task is not None else ""
        match arguments.action:
            case "list":
                return View("List tasks", arguments.status or arguments.query)
            case "read":
                return View(title("Read the task", number))
            case "comment":
                return _flagged(View(title("Comment on the task", number), body=arguments.comment, language="markdown"))
            case _:
                verb = "Create the task" if arguments.action == "create" else f"Update the task {number}:"
                fields = _fields(arguments)
                facts = [f"{name}: {_words(fields[name])}" for name in ("status", "tags", "assignee", "due") if name in fields]
                return _flagged(View(title(verb, arguments.title or ""), "; ".join(facts), arguments.description or "", "markdown"))

    def done(self, arguments: TasksArguments, output: ToolOutput) -> View:
        doing = self.doing(arguments)
        if arguments.action == "list":
            found = len(output.value) if isinstance(output.value, list) else 0
            return View("Listed tasks", count(found, "task"), output.text)
        if arguments.action == "read" or output.error:
            return View(doing.title, doing.detail, output.text)
        return doing


def _fields(arguments: TasksArguments) -> JsonObject:
    """Return the task's fields that the call sets."""
    return {name: value for name in _FIELDS if (value := getattr(arguments, name)) is not None}


def _words(value: Json) -> str:
    return (", ".join(map(str, value)) if isinstance(value, list) else str(value)) or "none"


def _flagged(view: View) -> View:
    """Return the view with hidden characters spelled out and a warning about them, because the user decides based on the view."""
    texts = [spelled_out(text) for text in (view.title, view.detail, view.body)]
    warning = warning_of("\n".join((view.title, view.detail, view.body)))
    detail = "; ".join(filter(None, (texts[1], warning and "has hidden characters")))
    return View(texts[0], detail, texts[2], view.language)


def _changed(verb: str, task: Task) -> ToolOutput:
    return ToolOutput(f"{verb} {_line(task)}", _json(task))


def _line(task: Task) -> str:
    more = [f"tags: {', '.join(task.tags)}" if task.tags else "", f"assigned to {task.assignee}" if task.assignee else ""]
    more += [f"due {task.due}" if task.due else "", count(task.comments, "comment") if task.comments else ""]
    return spelled_out("; ".join(filter(None, (f"#{task.number} [{task.status}] {task.title}", *more))))


def _text(task: Task, comments: list[TaskComment]) -> str:
    lines = [_line(task), f"Created by {task.author}.", "", task.description or "(no description)"]
    if task.comments > len(comments):
        lines += ["", f"The last {len(comments)} of {task.comments:,} comments:"]
    for comment in comments:
        lines += ["", f"{comment.author}:", comment.text]
    return spelled_out("\n".join(lines))


def _json(task: Task) -> JsonObject:
    facts: JsonObject = {name: getattr(task, name) for name in ("number", "title", "status", "assignee", "due", "author", "comments")}
    facts["tags"] = list[Json](task.tags)
    return facts


_BOXES = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}


class TodoItem(BaseModel):
    content: str = Field(min_length=1, max_length=500)
    status: Literal["pending", "in_progress", "completed"] = "pending"


class TodoArguments(BaseModel):
    todos: list[TodoItem] | None = Field(default=None, max_length=100, description="The whole new list; omit it to show the list")


@dataclass(slots=True)
class _TodoList:
    items: tuple[TodoItem, ...] = ()


class Todo(BaseTool):
    """The `todo` tool, with one list per conversation. Each call replaces or shows the whole list."""

    name = "todo"
    description = "Keep a list of the steps of a longer task. Send the whole list each time, one step in_progress."
    arguments = TodoArguments
    idempotent = True
    needs_folder = False
    effects = frozenset({"read"})

    async def call(self, arguments: TodoArguments, context: ToolContext) -> ToolOutput:
        todo = context.kept("todos", _TodoList)
        if arguments.todos is not None:
            todo.items = tuple(arguments.todos)
        value = cast("list[Json]", [item.model_dump() for item in todo.items])
        return ToolOutput(_list_text(todo.items) or "The list is empty.", value, empty=not todo.items)

    def doing(self, arguments: TodoArguments) -> View:
        items = tuple(arguments.todos or ())
        done = sum(item.status == "completed" for item in items)
        return View("Todo", f"{done} of {count(len(items), 'step')} done" if items else "", _list_text(items))


def _list_text(items: tuple[TodoItem, ...]) -> str:
    return "\n".join(f"{_BOXES[item.status]} {item.content}" for item in items)
