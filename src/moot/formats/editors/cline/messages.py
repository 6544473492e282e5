"""Reader for the messages that a task sent to its model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from moot.formats.anthropic import content_parts, output_of
from moot.formats.editors.cline.calls import Counted, calls_in
from moot.formats.editors.cline.task import HISTORY, SHOWN, Task, described
from moot.formats.kit.fields import flag, milliseconds, objects, text
from moot.formats.kit.json import ArrayItem, array_items, member
from moot.formats.kit.records import Output, Records, SessionRecord, step, tool_call
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedRecord
from moot.types.message import Part, text_part

_ADDED = ("<environment_details>", "[TASK RESUMPTION]", "[ERROR]")
_TYPED = re.compile(r"<(task|user_message|feedback|answer|user_input)(?: mode=\"\w*\")?>\s*(.*?)\s*</\1>", re.DOTALL)
_NOTICE = re.compile(r"<mode_notice\b[^>]*>.*?</mode_notice>\s*", re.DOTALL)
_HEADER = re.compile(r"\[(\w+)(?: for [^\n]*)?\] Result:\s*")
_TOOLS = (
    *("execute_command", "read_file", "write_to_file", "replace_in_file", "apply_diff", "insert_content", "search_and_replace"),
    *("search_files", "list_files", "list_code_definition_names", "codebase_search", "browser_action", "web_fetch"),
    *("use_mcp_tool", "access_mcp_resource", "load_mcp_documentation", "ask_followup_question", "plan_mode_respond", "act_mode_respond"),
    *("attempt_completion", "new_task", "switch_mode", "fetch_instructions", "update_todo_list", "condense", "edit_file"),
)
"""Names of the tools that models call by writing XML."""
_CALL = re.compile(rf"<({'|'.join(_TOOLS)})>(.*)</\1>", re.DOTALL)
_ARGUMENT = re.compile(r"<(\w+)>(.*)</\1>", re.DOTALL)


def messages_in(task: Task, item: ArrayItem, *, counts_cache: bool) -> Records:
    """Yield the messages. The tokens and costs of `ui_messages.json` are divided among the answers."""
    calls = calls_in(task.elements(SHOWN), task.metadata(), item, counts_cache=counts_cache)
    answers = [milliseconds(one.value, "ts") for one in task.elements(HISTORY) if text(one.value, "role") == "assistant"]
    steps = calls.placed(answers, item)
    times = [at for at, _ in calls.calls]
    place, reader = 0, MessageReader()
    for element in task.elements(HISTORY):
        value = element.value
        if not isinstance(value, dict) or element.problem or text(value, "role") not in ("user", "assistant"):
            yield ImportedRecord(element.raw, value, described(HISTORY, element, value))
            continue
        at = milliseconds(value, "ts") or (times[min(place, len(times) - 1)] if times else 0)
        if text(value, "role") == "assistant" and not flag(value, "isSummary"):
            yield from reader.answer(element, value, steps.get(place, []), at)
            place += 1
        else:
            yield from reader.prompt(element, value, at)


class _CallInText(NamedTuple):
    """A tool call written as XML, and the text around it."""

    before: str
    name: str
    arguments: JsonObject
    after: str


def is_text_block(body: JsonObject) -> bool:
    """Return whether a record is a block of text. Such text is read without the tags that the program added."""
    return body.get("type") == "text" and isinstance(body.get("text"), str) and not body.keys() - {"type", "text", "cache_control"}


def _is_added(text: str) -> bool:
    """Return whether the program added the text to a message, for example a list of the open files."""
    return text.lstrip().startswith(_ADDED)


def typed_text(text: str) -> str | None:
    """Return the text that the user typed, without the tags around it. Return None if there are no tags."""
    found = [_NOTICE.sub("", match[2]) for match in _TYPED.finditer(text)]
    return "\n\n".join(found) if found else None


def _output_in(text: str) -> tuple[str, str] | None:
    """If the text starts with the header that the program writes above outputs, return the tool's name and the beginning of its output."""
    header = _HEADER.match(text)
    return (header[1], text[header.end() :]) if header else None


def _call_in(text: str) -> _CallInText | None:
    """Return the tool call that a model wrote as XML, if there is one."""
    found = _CALL.search(text)
    if found is None:
        return None
    arguments: dict[str, Json] = {match[1]: match[2].strip("\n") for match in _ARGUMENT.finditer(found[2])}
    return _CallInText(text[: found.start()].strip(), found[1], arguments or {"text": found[2].strip()}, text[found.end() :].strip())


def _blocks(element: ArrayItem, value: JsonObject) -> tuple[bytes, list[tuple[bytes, JsonObject]]]:
    """Return the blocks of a message with their bytes, or the bytes of the message if it has no blocks."""
    content = value.get("content")
    if isinstance(content, str):
        return b"", [(element.raw, {"type": "text", "text": content})]
    span = member(element.raw, "content") if isinstance(content, list) else None
    pieces = list(array_items([element.raw[span.begin : span.end]])) if span is not None else []
    if not pieces or not all(isinstance(piece.value, dict) for piece in pieces):
        return element.raw, [(b"", block) for block in objects(content)]
    return b"", [(piece.raw, piece.value) for piece in pieces if isinstance(piece.value, dict)]


@dataclass(slots=True)
class MessageReader:
    """Reader of the messages of one task, in order."""

    written_call: str = ""
    """Id of the newest tool call that was written as XML."""
    _ids: Counter[str] = field(default_factory=Counter[str])

    def answer(self, element: ArrayItem, value: JsonObject, steps: list[Counted], at: int) -> Iterator[SessionRecord]:
        id = self._id(element)
        rest, blocks = _blocks(element, value)
        parts: list[Part] = []
        for _, block in blocks:
            call = _call_in(text(block, "text")) if block.get("type") == "text" else None
            if call is None:
                parts += content_parts([block])
                continue
            self.written_call = f"call-{id}-{len(parts)}"
            parts += [text_part(call.before)] if call.before else []
            parts.append(tool_call(self.written_call, call.name, call.arguments))
            parts += [text_part(call.after)] if call.after else []
        model = step(text(value, "modelInfo", "modelId"), text(value, "modelInfo", "providerId"))
        is_written = self.written_call.startswith(f"call-{id}-")  # the text of such a message is not repeated in its parts
        raw = b"".join([rest, *(raw for raw, _ in blocks)]) if is_written else element.raw
        first = {**model, **steps[0].facts} if steps else model
        raw += b"".join(one.raw for one in steps)
        yield SessionRecord(id, "assistant", raw, tuple(parts), at=at, step=first, further_steps=tuple([one.facts for one in steps[1:]]))

    def prompt(self, element: ArrayItem, value: JsonObject, at: int) -> Iterator[SessionRecord | ImportedRecord]:
        """Convert a message with the role `user`.

        Yield tool outputs, which belong to the answer before it, and the text typed by the user.
        """
        id = self._id(element)
        rest, blocks = _blocks(element, value)
        found = _Prompt(self.written_call)
        for raw, block in blocks:
            found.take(raw, block)
        yield from (ImportedRecord(raw, block) for raw, block in found.added)
        if found.outputs:
            outputs = tuple(Output(call, _value(values), failed) for call, values, failed in found.outputs)
            yield SessionRecord(f"{id}.outputs", "assistant", b"".join(found.output_raws), (), outputs, at=at)
        if found.parts or (rest and not found.outputs):
            role = "system" if flag(value, "isSummary") else "user"
            yield SessionRecord(id, role, rest + b"".join(found.raws), tuple(found.parts), at=at)

    def _id(self, element: ArrayItem) -> str:
        """Return a message's id. If it has none, return a hash of its content,
        because its position changes when the history is condensed.
        """
        if id := text(element.value, "id"):
            return id
        id = blake2b(element.raw, digest_size=8).hexdigest()
        self._ids[id] += 1
        return id if self._ids[id] == 1 else f"{id}#{self._ids[id] - 1}"


@dataclass(slots=True)
class _Prompt:
    """The blocks of a message with the role `user`."""

    written_call: str
    parts: list[Part] = field(default_factory=list[Part])
    raws: list[bytes] = field(default_factory=list[bytes])
    outputs: list[tuple[str, list[Json], bool]] = field(default_factory=list[tuple[str, list[Json], bool]])
    """For each output: the id of the call, the pieces of the output, and whether the call failed."""
    output_raws: list[bytes] = field(default_factory=list[bytes])
    added: list[tuple[bytes, JsonObject]] = field(default_factory=list[tuple[bytes, JsonObject]])
    """Text that the program added."""
    is_written: bool = False
    """True while text belongs to the output of a call that was written as XML."""

    def take(self, raw: bytes, block: JsonObject) -> None:
        if block.get("type") == "tool_result":
            self.is_written = False
            failed = flag(block, "is_error") or any(one.get("success") is False for one in objects(block, "content"))
            self._output(raw, text(block, "tool_use_id"), output_of(block), failed=failed)
            said = block.get("content")
            words = [said] if isinstance(said, str) else [text(one, "text") for one in objects(said)]
            self._typed(raw, "\n".join(words))
        elif block.get("type") == "text" and isinstance(block.get("text"), str):
            self._text(raw, block, text(block, "text"))
        elif self.outputs:
            self.outputs[-1][1].extend(content_parts([block]))
            self.output_raws.append(raw)
        else:
            self.parts += content_parts([block])
            self.raws.append(raw)

    def _text(self, raw: bytes, block: JsonObject, words: str) -> None:
        if _is_added(words):
            self.added.append((raw, block))
        elif (begun := _output_in(words)) is not None:
            self._output(raw, self.written_call, begun[1])
            self.is_written = True
            self._typed(raw, words)
        elif self._typed(raw, words):
            self.is_written = False
        elif self.is_written:
            self.outputs[-1][1].append(words)
            self.output_raws.append(raw)
        elif self.outputs:
            self.added.append((raw, block))
        else:
            self.parts.append(text_part(words))
            self.raws.append(raw)

    def _output(self, raw: bytes, call: str, value: Json, *, failed: bool = False) -> None:
        self.outputs.append((call, [value] if value != "" else [], failed))
        self.output_raws.append(raw)

    def _typed(self, raw: bytes, words: str) -> bool:
        """Add the text that the user typed, if there is any."""
        typed = typed_text(words)
        if typed is not None:
            self.parts.append(text_part(typed))
            self.raws.append(raw)
        return typed is not None


def _value(values: list[Json]) -> Json:
    """Join the pieces of an output to one value."""
    if len(values) == 1 and not isinstance(values[0], dict):
        return values[0]
    if all(isinstance(one, str) for one in values):
        return "\n".join(str(one) for one in values)
    parts: list[Json] = []
    for one in values:
        kept = objects(one, "value") if text(one, "type") == "content" else [one if isinstance(one, dict) else text_part(str(one))]
        parts += kept
    return {"type": "content", "value": parts}
