"""Print stored messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from moot.cli.console.format import moment, plural
from moot.cli.console.output import Output
from moot.cli.console.results import brief, first_line
from moot.convert.files.attachments import label_of
from moot.convert.serialization import describe_origin
from moot.errors import UsageError
from moot.features.replays.compactions import with_summaries
from moot.plugins import Registry
from moot.types.canonical import Json, dumps, loads_exact
from moot.types.conversation import Conversation
from moot.types.hooks import hook_label
from moot.types.message import Message, Part, is_tool, note_of, plan_of, sub_agent_words, tool_name, transcript_line
from moot.types.part_tree import Nested, nest
from moot.types.store import OwnerStore
from moot.types.tree import SUMMARY_TITLE, summary_lines


async def with_edits(store: OwnerStore, messages: Sequence[Message]) -> list[Message]:
    """Return the messages. In approved tool calls whose arguments the user edited,
    the edited arguments are added as `input` of `approval`.
    """
    runs = {message.run for message in messages if message.run is not None and any(map(_approved, message.parts))}
    answers = {item.id: item.answer for run in sorted(runs) for item in await store.records.approvals(run=run, open_only=False)}
    edits = {id: loads_exact(answer.arguments) for id, answer in answers.items() if answer is not None and answer.arguments is not None}
    return [replace(message, parts=tuple(_with(message.parts, edits))) for message in messages] if edits else list(messages)


async def for_display(store: OwnerStore, messages: Sequence[Message]) -> list[Message]:
    """Return the messages with edited arguments added to tool calls, and each summary added to the last message that it covers."""
    return await with_edits(store, await with_summaries(store.tree, messages))


def edited_input(part: Part) -> Json:
    """Return the arguments with which the user replaced the model's, or None if the user did not change them."""
    approval = part.get("approval")
    return approval.get("input") if isinstance(approval, dict) else None


def _approved(part: Part) -> bool:
    approval = part.get("approval")
    return is_tool(part) and isinstance(approval, dict) and approval.get("approved") is True


def _with(parts: Iterable[Part], edits: dict[str, Json]) -> Iterator[Part]:
    for part in parts:
        approval = part.get("approval")
        if isinstance(approval, dict) and str(approval.get("id")) in edits:
            edited: Json = {**approval, "input": edits[str(approval["id"])]}
            yield {**part, "approval": edited}
        else:
            yield part


_DONE = {"completed": "x", "in_progress": ">"}
_DRAWN = Registry("moot.drawn", {"call": "moot.cli.transcript.screen:draw_call", "messages": "moot.cli.transcript.screen:draw_messages"})
"""Import paths, loaded only on a terminal."""


def say_head(conversation: Conversation, output: Output) -> None:
    """Print the title and id of a conversation, and where it was imported or copied from."""
    output.say(f"{' '.join(conversation.title.split()) or 'untitled'} · {conversation.id}", "bold")
    if conversation.came_from:
        output.say(describe_origin(conversation), "dim")
    if conversation.forked_from is not None:
        output.say(f"copied from {conversation.forked_from[:13]}", "dim")


def print_messages(messages: Sequence[Message], output: Output, *, before: Sequence[Message] = ()) -> None:
    """Print messages, rendered in a terminal and as plain text elsewhere.
    `before` contains earlier messages of the branch, which are not printed.
    """
    if output.stdout_terminal:
        _DRAWN.load("messages")(messages, output, len(_calls(before)))
        return
    for message in messages:
        _print_bare(message, output)


def print_call(messages: Sequence[Message], number: int, output: Output, *, json: bool = False) -> None:
    """Print one tool call in full. Calls are numbered from 1 over all messages of the branch. Raise UsageError if there is no such call."""
    calls = _calls(messages)
    if not 1 <= number <= len(calls):
        raise UsageError(
            f"There is no tool call number {number}: the conversation has {plural(len(calls), 'tool call')}.",
            fix="Run 'moot chat show ID' to see their numbers.",
        )
    part = calls[number - 1]
    if json:
        output.json(part)
    elif output.stdout_terminal:
        _DRAWN.load("call")(part, number, output)
    else:
        output.data(_tool(part) + "\n" + _outcome(part) + "\n")


def _calls(messages: Sequence[Message]) -> list[Part]:
    return [part for message in messages for part in message.parts if is_tool(part)]


def _print_bare(message: Message, output: Output) -> None:
    state = "" if message.status == "finished" else f" ({message.status})"
    output.data(f"── {message.role} · {moment(message.created_at)}{state}\n")
    for node in nest(message.parts):
        for text in _texts(node):
            output.data(text if text.endswith("\n") else text + "\n")
    note = message.metadata.get("note")
    if isinstance(note, str):
        output.say(f"note: {note}", "yellow")
    output.data("\n")


def _texts(node: Nested, margin: str = "") -> Iterator[str]:
    """Yield the texts of a part and, indented, of the parts nested in it."""
    if text := _part(node.part):
        yield "\n".join(f"{margin}{line}" for line in text.split("\n"))
    for inner in node.inner:
        yield from _texts(inner, f"{margin}  ")


def _part(part: Part) -> str:
    match part.get("type"):
        case "text":
            return str(part.get("text", ""))
        case "file":
            return f"[{label_of(part)}]"
        case "data-note":
            return f"[{note_of(part)}]"
        case "data-transcript":
            return f"[{transcript_line(part)}]"
        case "data-plan":
            return "\n".join(["[plan]", *(f"[{_DONE.get(entry.status, ' ')}] {entry.content}" for entry in plan_of(part))])
        case "data-compaction":
            return "\n".join([f"── {SUMMARY_TITLE}", *summary_lines(part), "──"])
        case "data-subagent":
            text = sub_agent_words(part)
            return "" if text.thought else f"[{text.agent}: {text.text}]"
        case "steering-message":
            inner = part.get("parts")
            lines = [_part(piece) for piece in inner if isinstance(piece, dict)] if isinstance(inner, list) else []
            return "\n".join(f"> {line}" for text in lines for line in text.split("\n"))
        case "data-attempt":
            return "[the answer was interrupted and started again]"
        case _:
            return _tool(part) if is_tool(part) else ""


def _tool(part: Part) -> str:
    state = str(part.get("state", ""))
    outcome = {"output-error": f" failed: {first_line(part.get('errorText'))}", "output-denied": " denied"}.get(state, "")
    edited = edited_input(part)
    label = f" ({made_by})" if (made_by := hook_label(part)) else ""
    if edited is None:
        return f"→ {tool_name(part)}{label} {brief(part.get('input'))}{outcome}"
    return f"→ {tool_name(part)} {brief(edited)} (edited by you){outcome}\n  instead of {brief(part.get('input'))}"


def _outcome(part: Part) -> str:
    output = part.get("errorText") if part.get("state") == "output-error" else part.get("output")
    return output if isinstance(output, str) else dumps(output).decode()
