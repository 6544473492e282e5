"""Messages of a conversation as a person reads them again."""

from __future__ import annotations

from moot.cli.markdown import Markdown
from moot.cli.output import Output
from moot.cli.showing import brief, first_line
from moot.cli.times import moment
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message
from moot.types.part import Part, is_tool, note_of, tool_name


def print_message(message: Message, output: Output) -> None:
    """One message on stdout: Markdown on a terminal, bare text elsewhere."""
    state = "" if message.status == "finished" else f" ({message.status})"
    output.data(output.styled(output.fit(f"── {message.role} · {moment(message.created_at)}{state}"), "dim") + "\n")
    for part in message.parts:
        text = _part(part, output)
        if text:
            output.data(text if text.endswith("\n") else text + "\n")
    note = message.metadata.get("note")
    if isinstance(note, str):
        output.say(f"note: {note}", "yellow")
    output.data("\n")


def message_json(message: Message) -> JsonObject:
    """A message in the shape of the AI SDK's UIMessage, with what moot knows beside it."""
    return {
        "id": message.id,
        "role": message.role,
        "parts": list[Json](message.parts),
        "metadata": message.metadata,
        "status": message.status,
        "parent": message.parent,
        "run": message.run,
        "created_at": message.created_at,
    }


def _part(part: Part, output: Output) -> str:
    match part.get("type"):
        case "text":
            return _text(str(part.get("text", "")), output)
        case "reasoning":
            return output.styled(output.fit(str(part.get("text", ""))), "dim") if output.stdout_terminal else ""
        case "file":
            return output.fit(f"[{part.get('filename') or 'file'}, {part.get('mediaType', 'unknown')}]")
        case "data-note":
            return output.fit(f"[{note_of(part)}]")
        case "data-attempt":
            return output.fit("[the answer broke off here and was begun again]")
        case _:
            return _tool(part, output) if is_tool(part) else ""


def _text(text: str, output: Output) -> str:
    if not output.stdout_terminal:
        return text
    markdown = Markdown(colour=output.stdout_colour)
    return markdown.feed(output.fit(text)) + markdown.end()


def _tool(part: Part, output: Output) -> str:
    state = str(part.get("state", ""))
    outcome = {"output-error": f" failed: {first_line(part.get('errorText'))}", "output-denied": " denied"}.get(state, "")
    return output.styled(output.fit(f"→ {tool_name(part)} {brief(part.get('input'))}{outcome}"), "cyan")
