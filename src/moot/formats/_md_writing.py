"""Markdown output that can be read back. The module `md` describes the syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from moot.formats._steps import output_text
from moot.formats._writing import pretty
from moot.types.canonical import Json, dumps
from moot.types.format import ExportedConversation
from moot.types.message import Message
from moot.types.part import Part, is_settled, is_tool, text_of, tool_name

__all__ = ["document", "does_not_fit"]

_WHO = {"user": "User", "assistant": "Assistant", "system": "System"}
_LATEST = 253_402_300_799_000
_LINE = 100
"""Maximum number of characters of a tool input written on one line."""


def document(exported: ExportedConversation, sign: re.Pattern[str]) -> bytes:
    """Return the active branch as Markdown. Lines that match `sign` are escaped with a backslash."""
    conversation = exported.conversation
    front = {"id": conversation.id, "title": conversation.title, "model": conversation.model, "created": _time(conversation.created_at)}
    lines = ["---", "moot: conversation", *(f"{name}: {dumps(value).decode()}" for name, value in front.items() if value), "---", ""]
    title = " ".join(conversation.title.split())
    if title and sign.fullmatch(heading := f"# {title}") is None:
        lines += [heading, ""]
    sections = [_section(message, sign) for message in exported.messages]
    return ("\n".join(lines) + "\n" + "\n".join(sections)).encode("utf-8", "replace")


def does_not_fit(part: Part) -> bool:
    """Return whether a part has no Markdown form that can be read back unchanged."""
    kind = part.get("type")
    if kind == "file":
        return not str(part.get("url", "")).startswith("data:") or re.search(r"[)\s]", str(part["url"])) is not None
    if kind == "reasoning":
        return not part.get("text")
    return kind not in ("text", "reasoning", "step-start", "steering-message") and not is_tool(part)


def _section(message: Message, sign: re.Pattern[str]) -> str:
    """Return a message as a heading and its body. A body that ends with an empty line gets another one, so that it is read back."""
    facts = [_time(message.created_at), _plain(str(message.metadata.get("model") or ""))]
    if facts[1] and (provider := message.metadata.get("provider")):
        facts[1] += f"@{_plain(str(provider))}"
    heading = " · ".join(["## " + _WHO[message.role], *filter(None, facts)])
    body = "\n\n".join(_blocks(message.parts, sign))
    return f"{heading}\n\n{body}\n" + ("\n" if body.endswith("\n") else "")


def _blocks(parts: tuple[Part, ...], sign: re.Pattern[str]) -> Iterator[str]:
    """Yield the blocks of a message. Adjacent texts are joined."""
    pending = ""
    for part in parts:
        kind = part.get("type")
        if kind == "text":
            pending += str(part.get("text", ""))
            continue
        block = "" if does_not_fit(part) else _block(part, sign)
        if block:
            if pending:
                yield _escaped(pending, sign)
            pending = ""
            yield block
    if pending:
        yield _escaped(pending, sign)


def _block(part: Part, sign: re.Pattern[str]) -> str:
    if is_tool(part):
        return _call(part, sign)
    match part.get("type"):
        case "reasoning" if part.get("text"):
            return f"<details>\n<summary>Reasoning</summary>\n\n{_escaped(str(part['text']), sign)}\n\n</details>"
        case "file":
            picture = "!" if str(part.get("mediaType", "")).startswith("image/") else ""
            name = re.sub(r"[][\n]", " ", str(part.get("filename", "")))
            return f"{picture}[{name}]({part['url']})"
        case "steering-message":
            pieces = part.get("parts")
            words = text_of([piece for piece in pieces if isinstance(piece, dict)]) if isinstance(pieces, list) else ""
            return "\n".join(f"> {line}" for line in f"**Meanwhile:** {words}".split("\n"))
        case _:
            return ""


def _call(part: Part, sign: re.Pattern[str]) -> str:
    name = re.sub(r"[<>\s]", "_", tool_name(part)) or "tool"
    pieces = [f"<details>\n<summary>Tool: {name}</summary>"]
    pieces.append(_fenced(_value(part.get("input")), "json", sign))
    if is_settled(part):
        pieces.append(_fenced(_output(part), "output" if part.get("state") == "output-available" else "error", sign))
    return "\n\n".join([*pieces, "</details>"])


def _value(value: Json) -> str:
    short = dumps(value).decode()
    return short if len(short) <= _LINE else pretty(value)


def _output(part: Part) -> str:
    output = part.get("output")
    return pretty(output) if part.get("state") == "output-available" and not isinstance(output, str) else output_text(part)


def _fenced(text: str, kind: str, sign: re.Pattern[str]) -> str:
    longest = max((len(found) for found in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{kind}\n{_escaped(text, sign)}\n{fence}"


def _escaped(text: str, sign: re.Pattern[str]) -> str:
    return "\n".join(f"\\{line}" if sign.fullmatch(line) else line for line in text.split("\n"))


def _plain(word: str) -> str:
    return " ".join(word.replace("·", " ").split())


def _time(ms: int) -> str:
    if not 0 < ms <= _LATEST:
        return ""
    at = datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{at}.{ms % 1000:03}Z" if ms % 1000 else f"{at}Z"
