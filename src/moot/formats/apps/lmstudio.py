"""The format `lmstudio`: conversations of LM Studio, `~/.lmstudio/conversations/**/TIME.conversation.json`.

Each message has versions, one of which is selected. An answer's version has steps with content blocks, whose names contain times. These
files are internal and undocumented. Reference: https://github.com/YorkieDev/lm-studio-conversation-converter for versions, steps and
counts; `@lmstudio/lms-shared-types` 0.6.14 on npm (`processing/ProcessingUpdate`) for the fields of calls and outputs. No real file with
tool calls was available, so failed and denied calls are untested. Unknown content is kept unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.bases import ManyFiles
from moot.formats.kit.fields import amount, milliseconds, obj, objects, text, whole_number
from moot.formats.kit.json import array_items, json_container, member, parse_prefix, read_document
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, finish_reason, reasoning, step, tool_call
from moot.formats.kit.trees import find_branches
from moot.types.canonical import JsonObject
from moot.types.format import Fidelity, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, Role, text_part
from moot.types.usage import Usage

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_PROMPT = "llm.prediction.systemPrompt"
_TIME = re.compile(r"\d{13}")


class LmStudio(ManyFiles):
    name = "lmstudio"
    version = 3
    suffix = ".json"
    files = ("*.conversation.json",)
    depth, sniffed_depth = 8, 2

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield home / ".lmstudio" / "conversations"
        yield home / ".cache" / "lm-studio" / "conversations"

    def is_own(self, path: Path, head: bytes) -> bool:
        value = parse_prefix(head)
        messages = objects(value, "messages")
        return "name" in obj(value) and bool(messages) and isinstance(messages[0].get("versions"), list)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        data = read_document(path)
        value = parse_prefix(data)
        span = member(data, "messages")
        if span is None or data[span.begin : span.begin + 1] != b"[":
            raise UsageError(f"{str(path)!r} is not an LM Studio conversation: it has no messages.")
        versions = list(_versions(data[span.begin : span.end]))
        tree = find_branches(link for version in versions for link in _links(*version[:3]))
        around = data[: span.begin] + data[span.end :]
        id = path.name.removesuffix(".json").removesuffix(".conversation")
        yield ImportedConversation(id, entries_of(_records(around, obj(value), versions), tree, _head(obj(value))))


_Version = tuple[str, str | None, JsonObject, bytes]


def _versions(messages: bytes) -> Iterator[_Version]:
    """Yield each version as (id, parent, value, bytes). Its parent is the last record of the previously selected version."""
    parent: str | None = None
    for piece in array_items([messages]):
        span = member(piece.raw, "versions")
        found = list(array_items([piece.raw[span.begin : span.end]])) if span is not None else []
        for version in found or [piece]:
            yield f"{piece.number}.{version.number - 1}", parent, obj(version.value), version.raw
        if found:
            shown = min(whole_number(piece.value, "currentlySelected") or 0, len(found) - 1)
            parent = _last(f"{piece.number}.{shown}", obj(found[shown].value))


def _last(id: str, version: JsonObject) -> str:
    """Return the last record of a version: the version itself, or the last of its model calls."""
    return _numbered(id, len(_model_calls(version)))


def _links(id: str, parent: str | None, version: JsonObject) -> Iterator[tuple[str, str | None, bool]]:
    for number in range(1, len(_model_calls(version)) + 1):
        record = _numbered(id, number)
        yield record, parent, _role(version) is not None
        parent = record


def _numbered(id: str, number: int) -> str:
    return id if number == 1 else f"{id}.{number}"


def _model_calls(version: JsonObject) -> list[list[JsonObject]]:
    """Divide the blocks of an answer into at least one model call, each with its tool outputs."""
    calls: list[list[JsonObject]] = [[]]
    answered = False
    steps = (one for one in objects(version, "steps") if one.get("type") == "contentBlock" or one.get("genInfo"))
    for block in [version, *steps]:
        is_result = any(item.get("type") == "toolCallResult" for item in objects(block, "content"))
        if answered and not is_result:
            calls.append([])
        calls[-1].append(block)
        answered = is_result
    return calls


def _head(value: JsonObject) -> str | None:
    messages = objects(value, "messages")
    if not messages:
        return None
    versions, shown = objects(messages[-1], "versions"), whole_number(messages[-1], "currentlySelected") or 0
    return _last(f"{len(messages)}.{shown}", versions[shown] if shown < len(versions) else {})


def _role(version: JsonObject) -> Role | None:
    return _ROLES.get(text(version, "role"))


def _records(around: bytes, value: JsonObject, versions: list[_Version]) -> Records:
    fields = objects(value, "perChatPredictionConfig", "fields")
    prompt = text(value, "systemPrompt") or next((text(one, "value") for one in fields if one.get("key") == _PROMPT), "")
    about: JsonObject = {name: one for name, one in value.items() if name != "messages"}
    yield ImportedRecord(around, about)
    yield ImportedFacts(
        title=text(value, "name"),
        agent="lmstudio",
        model=text(value, "lastUsedModel", "identifier"),
        created_at=milliseconds(value, "createdAt"),
        metadata={"system_prompt": prompt} if prompt else {},
    )
    for id, parent, version, raw in versions:
        role = _role(version)
        if role is None:
            yield ImportedRecord(raw, version, f"message {id} has no role")
            continue
        for number, blocks in enumerate(_model_calls(version), 1):
            parts, outputs = _content(blocks)
            if missing := sum(part.get("type") == "data-file" for part in parts):
                yield ImportedFacts(Fidelity(lost={"files": missing}))
            facts = _step(version, blocks, text(value, "lastUsedModel", "identifier")) if role == "assistant" else None
            before = parent if number == 1 else _numbered(id, number - 1)
            record = _numbered(id, number)
            yield SessionRecord(record, role, raw if number == 1 else b"", tuple(parts), tuple(outputs), before, _time(blocks), facts)


def _time(blocks: list[JsonObject]) -> int:
    """Return the time of the first block that has a name. Names start with a time in ms."""
    named = next((name for one in blocks if (name := text(one, "stepIdentifier"))), "").partition("-")[0]
    return milliseconds({"at": int(named)}, "at") if _TIME.fullmatch(named) else 0


def _content(blocks: list[JsonObject]) -> tuple[list[Part], list[Output]]:
    parts: list[Part] = []
    outputs: list[Output] = []
    for block in blocks:
        thinks = text(block, "style", "type") == "thinking"
        for item in objects(block, "content"):
            if item.get("type") == "text":
                words = text(item, "text")
                parts += [reasoning(words) if thinks else text_part(words)] if words else []
            elif item.get("type") == "toolCallResult":
                outputs.append(Output(_call(item), json_container(item.get("content")), name=text(item, "name")))
            elif item.get("type") == "toolCallRequest":
                inner = obj(item, "toolCallRequest") or item
                arguments = inner.get("parameters", inner.get("arguments"))
                parts.append(tool_call(text(inner, "id") or _call(item), text(inner, "name"), arguments))
            else:
                parts.append({"type": "data-file" if item.get("type") == "file" else "data-content", "data": item})
    return parts, outputs


def _call(item: JsonObject) -> str:
    """Return the model's id for a tool call or, if there is none, LM Studio's number for the call."""
    number = whole_number(item, "callId")
    return text(item, "toolCallRequestId") or text(item, "toolCallId") or ("call" if number is None else f"call-{number}")


def _step(version: JsonObject, blocks: list[JsonObject], model: str) -> JsonObject:
    """Return the model, usage and finish reason of a model call, combined from its blocks."""
    infos = [obj(one, "genInfo") for one in blocks if one.get("genInfo")]
    last = infos[-1] if infos else {}
    seconds = [spent for one in infos if (spent := amount(one, "stats", "totalTimeSec")) is not None]
    reason = text(last, "stats", "stopReason")
    counts = (
        [count for one in infos if (count := whole_number(one, "stats", name)) is not None]
        for name in ("promptTokensCount", "predictedTokensCount")
    )
    return step(
        text(last, "identifier") or text(version, "senderInfo", "senderName") or model,
        finish_reason="stop" if reason == "eosFound" else "tool-calls" if reason == "toolCalls" else finish_reason(reason),
        usage=Usage(*(sum(found) if found else None for found in counts)).to_json(),
        ms=round(sum(seconds) * 1000) if seconds else None,
    )
