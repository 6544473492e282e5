"""Earlier messages as text, for a session of an outside agent that lacks them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from moot.convert.fold import in_history
from moot.types.canonical import dumps
from moot.types.message import Message
from moot.types.part import Part, is_tool, text_of, tool_name

LIMIT = 60_000
"""Maximum number of characters of earlier messages; the oldest are omitted first."""
PIECE = 2_000
"""Maximum number of characters of a call's arguments or output."""

_BEFORE = "Earlier messages of this conversation, which you have not seen yet:"
_NOW = "End of the earlier messages. The new message:"
_LEFT_OUT = "[earlier messages omitted]"


def told(messages: Sequence[Message], prompt: str, *, limit: int = LIMIT) -> str:
    """Return the prompt with the earlier messages as text; the prompt alone if there are none."""
    texts: list[str] = []
    left = limit
    for message in reversed(messages):
        text = _message(message)
        if len(text) > left:
            texts.append(_LEFT_OUT if texts else f"{_LEFT_OUT}\n{text[-left:]}")
            break
        if text:
            texts.append(text)
            left -= len(text)
    return "\n\n".join([_BEFORE, *reversed(texts), _NOW, prompt]) if texts else prompt


def _message(message: Message) -> str:
    if message.role == "user":
        body, who = text_of(message.parts), "User"
    else:
        body = "\n".join(text for part in in_history(message.parts) if (text := _part(part)))
        agent = message.metadata.get("agent")
        who = "System" if message.role == "system" else f"Assistant ({agent})" if isinstance(agent, str) else "Assistant"
    return f"{who}: {body}" if body else ""


def _part(part: Part) -> str:
    if part.get("type") == "text":
        return str(part.get("text", ""))
    if not is_tool(part):
        return ""
    output = part.get("errorText") or part.get("output") or part.get("state")
    return f"[called {tool_name(part)} with {_short(part.get('input'))}: {_short(output)}]"


def _short(value: object) -> str:
    try:
        text = value if isinstance(value, str) else dumps(value).decode()
    except ValueError:
        text = "?"
    return text if len(text) <= PIECE else f"{text[: PIECE // 2]} […] {text[-PIECE // 2 :]}"
