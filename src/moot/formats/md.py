"""The format `md`: a conversation in Markdown, with a heading for each message.

    ---
    moot: conversation
    id: 01a1ffce
    title: "Lists"                              values may be JSON strings
    ---

    # Lists

    ## User                                     also You, Human, Prompt; Assistant, AI, Bot, Model, Agent, ChatGPT, Claude; System

    What is here?

    ## Assistant · 2026-11-21T20:31:32Z · mock-1

    <details>
    <summary>Reasoning</summary>

    I will look.

    </details>

    <details>
    <summary>Tool: shell</summary>

    ```json
    {"command": "ls"}
    ```

    ```output
    a.txt
    ```

    </details>

    ![dot.png](data:image/png;base64,…)

Each of these starts at the beginning of a line. An empty line follows a heading, precedes the next one, and surrounds the content of
`details`. A block `error` instead of `output` means that the call failed. A fence is longer than any fence inside it. A line of text that
looks like this syntax (a heading with a role, `<details>`, `</details>`, a picture) is escaped with one more backslash. A file that moot
did not write needs at least one user heading and one assistant heading.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import ClassVar, Literal

from moot.errors import UsageError
from moot.formats.kit.fidelity import fence_around, fidelity_of, pretty
from moot.formats.kit.fields import LATEST, milliseconds, objects, text
from moot.formats.kit.json import json_value, parse_json, read_document
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, file, reasoning, step, tool_call
from moot.formats.kit.steps import approximate, output_text
from moot.types.canonical import JsonObject, dumps
from moot.types.format import ExportedConversation, ExportFile, FidelityLevel, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Message, Part, Role, is_settled, is_tool, sub_agent_words, text_of, text_part, tool_name
from moot.types.part_tree import Nested, nest
from moot.types.tree import COMPACTION_PART as PART
from moot.types.tree import SUMMARY_TITLE as TITLE
from moot.types.tree import summary_lines

_WHO = {"user": "User", "assistant": "Assistant", "system": "System"}
_SUMMARY = f"<summary>{TITLE}</summary>"
_LINE = 100
"""Maximum number of characters of a tool input to write on one line."""


def markdown_of(exported: ExportedConversation, sign: re.Pattern[str]) -> bytes:
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
    """Return whether a part can't be written as Markdown that can be read back unchanged."""
    kind = part.get("type")
    if kind == "file":
        return not str(part.get("url", "")).startswith("data:") or re.search(r"[)\s]", str(part["url"])) is not None
    if kind == "reasoning":
        return not part.get("text")
    return kind not in ("text", "reasoning", "step-start", "steering-message", "data-subagent", PART) and not is_tool(part)


def _section(message: Message, sign: re.Pattern[str]) -> str:
    """Return a message as a heading and a body.
    If the body ends with an empty line, another one is added, so that the first is preserved.
    """
    facts = [_time(message.created_at), _plain(str(message.metadata.get("model") or ""))]
    if facts[1] and (provider := message.metadata.get("provider")):
        facts[1] += f"@{_plain(str(provider))}"
    heading = " · ".join(["## " + _WHO[message.role], *filter(None, facts)])
    body = "\n\n".join(_message_blocks(nest(message.parts), sign))
    return f"{heading}\n\n{body}\n" + ("\n" if body.endswith("\n") else "")


def _message_blocks(nodes: list[Nested], sign: re.Pattern[str]) -> Iterator[str]:
    """Yield the parts of a message as blocks of Markdown. Adjacent texts are joined."""
    pending = ""
    for node in nodes:
        part = node.part
        kind = part.get("type")
        if kind == "text":
            pending += str(part.get("text", ""))
            continue
        block = "" if does_not_fit(part) else _block(node, sign)
        if block:
            if pending:
                yield _escaped(pending, sign)
            pending = ""
            yield block
    if pending:
        yield _escaped(pending, sign)


def _block(node: Nested, sign: re.Pattern[str]) -> str:
    part = node.part
    if is_tool(part):
        return _call(node, sign)
    match part.get("type"):
        case "reasoning" if part.get("text"):
            return f"<details>\n<summary>Reasoning</summary>\n\n{_escaped(str(part['text']), sign)}\n\n</details>"
        case "file":
            picture = "!" if str(part.get("mediaType", "")).startswith("image/") else ""
            name = re.sub(r"[][\n]", " ", str(part.get("filename", "")))
            return f"{picture}[{name}]({part['url']})"
        case "data-subagent":
            return _quoted(node, sign)
        case "data-compaction":
            summary = _escaped("\n".join(summary_lines(part)), sign)
            return f"<details>\n{_SUMMARY}\n\n{summary}\n\n</details>"
        case "steering-message":
            return "\n".join(f"> {line}" for line in f"**Meanwhile:** {text_of(objects(part, 'parts'))}".split("\n"))
        case _:
            return ""


def _call(node: Nested, sign: re.Pattern[str]) -> str:
    part = node.part
    name = re.sub(r"[<>\s]", "_", tool_name(part)) or "tool"
    short = dumps(part.get("input")).decode()
    pieces = [f"<details>\n<summary>Tool: {name}</summary>"]
    pieces.append(_fenced(short if len(short) <= _LINE else pretty(part.get("input")), "json", sign))
    if is_settled(part):
        is_done, output = part.get("state") == "output-available", part.get("output")
        shown = pretty(output) if is_done and not isinstance(output, str) else output_text(part)
        pieces.append(_fenced(shown, "output" if is_done else "error", sign))
    pieces += [_quoted(inner, sign) for inner in node.inner]
    return "\n\n".join([*pieces, "</details>"])


def _quoted(node: Nested, sign: re.Pattern[str]) -> str:
    """Return a sub-agent's text, reasoning or tool call as a Markdown quote, for the call that started the sub-agent."""
    if node.part.get("type") == "data-subagent":
        words = sub_agent_words(node.part)
        block = f"**{words.agent}{' (reasoning)' * words.thought}:** {words.text}"
    else:
        block = _block(node, sign)
    return "\n".join(f"> {line}".rstrip() for line in block.split("\n"))


def _fenced(text: str, kind: str, sign: re.Pattern[str]) -> str:
    fence = fence_around(text)
    return f"{fence}{kind}\n{_escaped(text, sign)}\n{fence}"


def _escaped(text: str, sign: re.Pattern[str]) -> str:
    return "\n".join(f"\\{line}" if sign.fullmatch(line) else line for line in text.split("\n"))


def _plain(word: str) -> str:
    return " ".join(word.replace("·", " ").split())


def _time(ms: int) -> str:
    if not 0 < ms <= LATEST:
        return ""
    at = datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{at}.{ms % 1000:03}Z" if ms % 1000 else f"{at}Z"


_NAMES: dict[str, Role] = {
    **dict.fromkeys(("user", "you", "human", "prompt"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "agent", "chatgpt", "claude"), "assistant"),
    "system": "system",
}
_ROLE = rf"#{{1,3}} (?:\*\*)?({'|'.join(_NAMES)})(?:\*\*)?:?((?: · [^\n]*)?)"
_HEADING = re.compile(_ROLE, re.IGNORECASE)
_FILE = re.compile(r"(!?)\[([^\]\n]*)\]\((data:[^)\s]+)\)")
SIGN = re.compile(rf"\\*(?:{_ROLE}|</?details>|{_FILE.pattern})", re.IGNORECASE)
"""Pattern for lines to escape because they look like moot's syntax. The pattern must match the whole line."""
_FENCE = re.compile(r"(`{3,})(\w*)")
_FRONT = re.compile(rb"---\n(.*?)\n---\n", re.DOTALL)
_OURS = b"moot: conversation"


class Markdown:
    name = "md"
    version = 1
    suffix = ".md"
    words = "text that reads well everywhere, including the terminal"
    holds: ClassVar[Mapping[str, FidelityLevel]] = {
        **dict.fromkeys(("messages", "reasoning", "pictures", "files", "times", "models", "titles"), "kept"),
        **dict.fromkeys(("tool calls", "other parts"), "approximated"),
    }
    legible: Literal[True] = True

    def sniff(self, path: Path, head: bytes) -> bool:
        if path.suffix.lower() not in (".md", ".markdown") or head.startswith(b"# CHAT: "):  # a log of aichat
            return False
        front = _FRONT.match(head)
        if front is not None and _OURS in front[1].split(b"\n"):
            return True
        roles = {role for line in head.split(b"\n") if (role := _role(line)) is not None}
        return {"user", "assistant"} <= roles

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        data = read_document(path)
        front = _FRONT.match(data)
        about = _about(front[1]) if front is not None else {}
        lines = data.splitlines(keepends=True) if b"\n" not in data else data[front.end() if front else 0 :].split(b"\n")
        sections = _sections(lines)
        if not any(role for role, _ in sections) and not about:
            raise UsageError(f"{str(path)!r} has no headings with roles, such as '## User'.")
        id = text(about, "id") or hashlib.sha256(data).hexdigest()
        yield ImportedConversation(id, entries_of(_records(data[: front.end()] if front else b"", about, sections)))

    def write(self, exported: ExportedConversation) -> ExportFile:
        lost = [part for message in exported.messages for part in message.parts if does_not_fit(part)]
        steered = sum(any(part.get("type") == "steering-message" for part in message.parts) for message in exported.messages)
        return ExportFile(markdown_of(exported, SIGN), approximate(fidelity_of(exported, self.holds, *lost), "messages", steered))


def _role(line: bytes) -> Role | None:
    found = _HEADING.fullmatch(line.decode("utf-8", "replace").rstrip("\r"))
    return _NAMES[found[1].lower()] if found else None


def _about(front: bytes) -> JsonObject:
    """Return the `name: value` lines of the front matter."""
    about: JsonObject = {}
    for line in front.decode("utf-8", "replace").split("\n"):
        name, colon, value = line.partition(": ")
        about[name] = value
        with suppress(ValueError):
            about[name] = parse_json(value.encode()) if colon and value.startswith('"') else value
    return about


def _sections(lines: list[bytes]) -> list[tuple[Role | None, list[bytes]]]:
    """Return each role with its lines, starting with the heading. Lines before the first heading have no role."""
    found: list[tuple[Role | None, list[bytes]]] = [(None, [])]
    for line in lines:
        role = _role(line)
        if role is not None:
            found.append((role, []))
        found[-1][1].append(line)
    return found


def _records(front: bytes, about: JsonObject, sections: list[tuple[Role | None, list[bytes]]]) -> Records:
    before = b"\n".join(sections[0][1])
    title = text(about, "title") or next(
        (line[2:].decode("utf-8", "replace").strip() for line in sections[0][1] if line.startswith(b"# ")), ""
    )
    if (front + before).strip():
        yield ImportedRecord(front + before, about or None)
    yield ImportedFacts(title=title, model=text(about, "model"), created_at=milliseconds(about, "created"))
    for number, (role, lines) in enumerate(sections):
        if role is None:
            continue
        raw = b"\n".join(lines) + (b"\n" if number < len(sections) - 1 else b"")
        heading, *rest = [line.decode("utf-8", "replace") for line in lines]
        parts, outputs = _parts("\n".join(rest), number)
        at, model = _facts(heading)
        yield SessionRecord(str(number), role, raw, parts, outputs, at=at, step=step(model) if model and role == "assistant" else None)


def _facts(heading: str) -> tuple[int, str]:
    """Return the time and the model in a heading."""
    at, model = 0, ""
    for word in heading.strip().split(" · ")[1:]:
        if time := milliseconds(word):
            at = time
        else:
            model = word
    return at, model


def _parts(body: str, section: int) -> tuple[tuple[Part, ...], tuple[Output, ...]]:
    """Return the message parts in the body of a section, and the outputs of its tool calls."""
    parts: list[Part] = []
    outputs: list[Output] = []
    pending: list[str] = []
    lines = iter(body.removeprefix("\n").removesuffix("\n").removesuffix("\n").split("\n"))
    for line in lines:
        shown = _FILE.fullmatch(line)
        if line != "<details>" and shown is None:
            pending.append(_unescaped(line))
            continue
        _flush(pending, parts)
        if shown is not None:
            parts.append(file(shown[3], "", shown[2]))
            next(lines, "")
            continue
        inside = list(takewhile(lambda line: line != "</details>", lines))
        if inside[:1] == [_SUMMARY]:  # skip the summary of a compaction: the messages that it summarizes are also in the file
            next(lines, "")
            continue
        parsed_block = _details(inside, f"call-{section}-{len(outputs) + 1}")
        if isinstance(parsed_block, str):
            pending += ["<details>", *inside, "</details>"]
            continue
        parts.append(parsed_block[0])
        outputs += parsed_block[1]
        next(lines, "")
    _flush(pending, parts, last=True)
    return tuple(parts), tuple(outputs)


def _flush(pending: list[str], parts: list[Part], *, last: bool = False) -> None:
    """Append the text collected so far, without the empty line before the next part."""
    body = "\n".join(pending if last or not pending or pending[-1] else pending[:-1])
    if body:
        parts.append(text_part(body))
    pending.clear()


def _unescaped(line: str) -> str:
    return line[1:] if line.startswith("\\") and SIGN.fullmatch(line) else line


def _details(lines: list[str], id: str) -> tuple[Part, list[Output]] | str:
    """Return the reasoning part or the tool call with its outputs in a `<details>` block. For any other block, return its summary."""
    summary = lines[0] if lines else ""
    if summary == "<summary>Reasoning</summary>":
        body = [_unescaped(line) for line in lines[1:]]
        return reasoning("\n".join(body[1:-1] if len(body) > 1 else body)), []
    named = re.fullmatch(r"<summary>Tool: (.+)</summary>", summary)
    if named is None:
        return summary
    blocks = dict(_fenced_blocks(iter(lines[1:])))
    outputs = [Output(id, blocks[kind], kind == "error") for kind in ("output", "error") if kind in blocks]
    return tool_call(id, named[1], json_value(blocks.get("json") or None)), outputs


def _fenced_blocks(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Yield the language and the text of each fenced block."""
    for line in lines:
        opened = _FENCE.fullmatch(line)
        if opened is None:
            continue
        body = takewhile(lambda inner, fence=opened[1]: inner != fence, lines)
        yield opened[2], "\n".join(map(_unescaped, body))
