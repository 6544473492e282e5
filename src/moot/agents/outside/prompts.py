"""Prompts for outside agents: text, images as `data:` URLs, and earlier messages that are missing from the agent's session."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from moot.convert.files.attachments import with_texts
from moot.convert.fold import in_history
from moot.convert.history import for_model
from moot.errors import MootError
from moot.types.canonical import dumps
from moot.types.context import RunContext
from moot.types.message import Message, Part, is_tool, text_of, tool_name

LIMIT = 60_000
"""Maximum number of characters of earlier messages to include. The oldest messages are omitted first."""
PIECE = 2_000
"""Maximum number of characters of a call's arguments or output to include."""

_BEFORE = "Earlier messages of this conversation, which you have not seen yet:"
_NOW = "End of the earlier messages. The new message:"
_BEGUN = "Another agent started to work on this message and can't continue. Its work so far:"
_CONTINUE = "End of its work. Continue from there. Don't repeat what is done."
_LEFT_OUT = "[earlier messages omitted]"
_EARLIER = 20_000
"""Maximum number of tokens of earlier messages to load for a new session."""


def with_history(messages: Sequence[Message], prompt: str, *, limit: int = LIMIT, indent: str = "") -> str:
    """Return the prompt, preceded by the earlier messages as text if there are any.

    `indent` is added before all lines of a message except the first, so that no text inside a message looks like the start of another one.
    """
    texts: list[str] = []
    left = limit
    for message in reversed(messages):
        if message.role == "user":
            body, who = text_of(with_texts(message.parts)), "User"
        else:
            body = "\n".join(filter(None, map(_part, in_history(message.parts))))
            agent = message.metadata.get("agent")
            who = "System" if message.role == "system" else f"Assistant ({agent})" if isinstance(agent, str) else "Assistant"
        text = f"{who}: {indent.join(body.splitlines(keepends=True)) if indent else body}" if body else ""
        if len(text) > left:
            texts.append(_LEFT_OUT if texts else f"{_LEFT_OUT}\n{text[-left:]}")
            break
        if text:
            texts.append(text)
            left -= len(text)
    return "\n\n".join([_BEFORE, *reversed(texts), _NOW, prompt]) if texts else prompt


def _part(part: Part) -> str:
    if part.get("type") == "text":
        return str(part.get("text", ""))
    if not is_tool(part):
        return ""
    output = part.get("errorText") or part.get("output") or part.get("state")
    return f"[called {tool_name(part)} with {_short(part.get('input'))}: {_short(output)}]"


def work_so_far(message: Message) -> str:
    """Return the work of another agent on this answer, as text for the agent that continues it, or an empty string if there is none."""
    texts = [text for shown in for_model((message,)) for part in in_history(shown.parts) if (text := _part(part) or _said(part))]
    work = "\n".join(texts)
    if not work:
        return ""
    shown = work if len(work) <= LIMIT else f"{_LEFT_OUT}\n{work[-LIMIT:]}"
    return f"{_BEGUN}\n\n{shown}\n\n{_CONTINUE}"


def _said(part: Part) -> str:
    pieces = part.get("parts") if part.get("type") == "steering-message" else None
    return f"User: {text_of([piece for piece in pieces if isinstance(piece, dict)])}" if isinstance(pieces, list) else ""


def _short(value: object) -> str:
    try:
        text = value if isinstance(value, str) else dumps(value).decode()
    except ValueError:
        text = "?"
    return text if len(text) <= PIECE else f"{text[: PIECE // 2]} […] {text[-PIECE // 2 :]}"


async def earlier_messages(context: RunContext) -> tuple[Message, ...]:
    """Return the messages to pass to a new session: the conversation before the prompt."""
    history = await context.history(_EARLIER)
    return tuple(for_model(history[:-1] if history and history[-1].role == "user" else history))


TEXT_TYPES = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")
_LONGEST = 200_000
"""Maximum size of a text file included in the prompt, in bytes."""


@dataclass(frozen=True, slots=True)
class PromptContent:
    """The text and the images of a prompt. The images are in order."""

    text: str
    pictures: tuple[str, ...] = ()


async def prompt_content(context: RunContext, parts: tuple[Part, ...]) -> PromptContent:
    """Convert the parts of a prompt. The contents of text files are included; for other files that are not images, only the name is."""
    words: list[str] = []
    pictures: list[str] = []
    for part in parts:
        if part.get("type") == "text":
            words.append(str(part.get("text", "")))
        elif part.get("type") == "file":
            await _file(context, part, words, pictures)
    return PromptContent("\n\n".join(filter(None, words)), tuple(pictures))


async def _file(context: RunContext, part: Part, words: list[str], pictures: list[str]) -> None:
    url, kind = str(part.get("url", "")), str(part.get("mediaType", "application/octet-stream"))
    name = str(part.get("filename") or kind)
    try:
        data = await file_bytes(context, url)
    except (MootError, ValueError) as error:
        words.append(f"[the file {name} can't be read: {error}]")
        return
    if data is None:
        words.append(f"[the file {name}: {url}]")
    elif kind.startswith("image/"):
        pictures.append(f"data:{kind};base64,{base64.b64encode(data).decode()}")
    elif kind.startswith(TEXT_TYPES):
        words.append(f"[the file {name}]\n{data[:_LONGEST].decode('utf-8', 'replace')}")
    else:
        words.append(f"[the file {name}, {len(data)} bytes, not shown]")


async def file_bytes(context: RunContext, url: str) -> bytes | None:
    """Return the bytes of a `blob:` or `data:` URL, or None for any other URL. Nothing is downloaded.

    Raise MootError if the blob is missing, ValueError for invalid base64.
    """
    if url.startswith("blob:"):
        return await context.ports.blobs.get(url.removeprefix("blob:"))
    head, comma, body = url.partition(",")
    if not comma or not head.startswith("data:"):
        return None
    return base64.b64decode(body) if head.endswith(";base64") else unquote_to_bytes(body)
