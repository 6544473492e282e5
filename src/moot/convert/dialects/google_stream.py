"""Conversion of `streamGenerateContent` events to chunks (reference: Gemini API, GenerateContentResponse).

Each event is a complete response with further parts. The start and end of a part are not marked: a part starts with its first piece and
ends when a part of another kind starts or a signature arrives. A signature belongs to the part with which it arrived, and is sent back
only on that part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from moot.convert.dialects import frames
from moot.convert.dialects.stream import NO_FACTS, StreamTranslator, Turn, start_of_body
from moot.convert.vendor import as_list, as_object, as_text, count
from moot.convert.writer import Call, Parts, Spoken
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk, tool_output
from moot.types.event import Raw
from moot.types.exchange import Ended, Ending, Failure
from moot.types.usage import Usage

REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(
        (
            *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
            *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
        ),
        "content-filter",
    ),
}

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")


def usage_of(usage: JsonObject) -> Usage:
    """Convert the token counts to moot's.

    The vendor counts reasoning separately from the answer, and tool prompts separately from the prompt.
    """
    prompt, tools = count(usage.get("promptTokenCount")), count(usage.get("toolUsePromptTokenCount"))
    answer, thoughts = count(usage.get("candidatesTokenCount")), count(usage.get("thoughtsTokenCount"))
    return Usage(_sum(prompt, tools), _sum(answer, thoughts), count(usage.get("cachedContentTokenCount")), None, thoughts)


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None and b is None else (a or 0) + (b or 0)


def sources(candidate: JsonObject) -> Iterator[tuple[str, Chunk]]:
    """Yield (key, chunk) for each source. The key identifies the source, and the chunk has no id yet."""
    for item in as_list(as_object(candidate.get("groundingMetadata")).get("groundingChunks")):
        yield from _grounded(as_object(item))
    for item in as_list(as_object(candidate.get("urlContextMetadata")).get("urlMetadata")):
        if url := as_text(as_object(item).get("retrievedUrl")):
            yield url, _url(url, "")
    citation = as_object(candidate.get("citationMetadata"))
    for item in as_list(citation.get("citationSources")) or as_list(citation.get("citations")):
        if url := as_text(as_object(item).get("uri")):
            yield url, _url(url, as_text(as_object(item).get("title")))


def _grounded(item: JsonObject) -> Iterator[tuple[str, Chunk]]:
    kind = next((name for name in ("web", "maps", "image", "retrievedContext") if isinstance(item.get(name), dict)), "web")
    found = as_object(item.get(kind))
    url, title = as_text(found.get("uri")) or as_text(found.get("sourceUri")), as_text(found.get("title"))
    if url.startswith(("http://", "https://")):
        yield url, _url(url, title)
    elif name := title or url or as_text(found.get("fileSearchStore")):
        document: Chunk = {"type": "source-document", "mediaType": "text/plain", "title": name}
        yield name, {**document, "filename": title} if title else document


def _url(url: str, title: str) -> Chunk:
    found: Chunk = {"type": "source-url", "url": url}
    return {**found, "title": title} if title else found


def merge_piece(arguments: JsonObject, piece: JsonObject) -> JsonObject:
    """Merge one piece of a streamed call into its arguments: `{jsonPath, stringValue | numberValue | boolValue | nullValue}`."""
    path: list[str | int] = []
    for match in _STEP.finditer(as_text(piece.get("jsonPath"))):
        path.append(int(match[2]) if match[2] is not None else next(step for step in (match[1], match[3], match[4]) if step is not None))
    value = next((piece[name] for name in ("stringValue", "numberValue", "boolValue") if name in piece), None)
    merged = _merged(arguments, path, value)
    return merged if isinstance(merged, dict) else arguments


def _merged(value: Json, path: list[str | int], piece: Json) -> Json:
    """Return the value with the piece added at this path. A string is appended to an existing string; everything else is replaced."""
    if not path:
        return value + piece if isinstance(value, str) and isinstance(piece, str) else piece
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        known = as_object(value)
        return {**known, step: _merged(known.get(step), rest, piece)}
    items = list(as_list(value))
    items += [None] * (step + 1 - len(items))
    items[step] = _merged(items[step], rest, piece)
    return items


METADATA = "google"

_FACTS = {"responseId": "response_id", "modelVersion": "model"}
_RAN = {"executableCode": "codeExecutionResult", "toolCall": "toolResponse"}
"""The fields that contain calls run by the vendor, each with the field that contains the output."""
_NAMES = ("id", "toolType")
"""Fields of an output that identify the call."""
_KINDS = ("text", "functionCall", "inlineData", "fileData", *_RAN, *_RAN.values())
_KNOWN = frozenset({"thought", "thoughtSignature", "partMetadata"})
"""Fields of a part other than its content."""


class State(NamedTuple):
    parts: Parts
    provider: str = ""
    facts: JsonObject | None = None
    reason: str = ""
    ending: JsonObject | None = None
    """Other facts for the metadata: safety ratings, search queries, and a message about the end of the answer."""
    growing: JsonObject | None = None
    """The call whose arguments are being streamed, with the fields `name`, `id`, `args` and `signature`."""
    sources: tuple[str, ...] = ()
    blocked: str = ""
    """The vendor's reason for rejecting the prompt; empty if it was accepted."""
    usage: JsonObject | None = None
    error: JsonObject | None = None
    unreadable: int = 0
    body: str = ""


class _Turn(Turn[State]):
    metadata = METADATA

    def take(self, event: JsonObject, name: str) -> None:
        if self._state.facts is None:
            facts: JsonObject = {ours: event[theirs] for theirs, ours in _FACTS.items() if event.get(theirs) is not None}
            self._state = self._state._replace(facts=facts or NO_FACTS)
        if event.get("error"):
            self.fail(event)
        for candidate in as_list(event.get("candidates")):
            if isinstance(candidate, dict) and not candidate.get("index"):
                self._candidate(candidate)
        blocked = as_text(as_object(event.get("promptFeedback")).get("blockReason"))
        if blocked and not self._state.blocked:
            self._state = self._state._replace(blocked=blocked)
        if isinstance(usage := event.get("usageMetadata"), dict):
            self._state = self._state._replace(usage=usage)

    def _candidate(self, candidate: JsonObject) -> None:
        for part in as_list(as_object(candidate.get("content")).get("parts")):
            self._part(as_object(part))
        for name, source in sources(candidate):
            if name not in self._state.sources:
                self._state = self._state._replace(sources=(*self._state.sources, name))
                self.writer.chunks.append({**source, "sourceId": self.writer.part_id()})
        self._end(candidate)

    def _end(self, candidate: JsonObject) -> None:
        ending: JsonObject = dict(self._state.ending or {})
        grounding = as_object(candidate.get("groundingMetadata"))
        extra = {
            "safety_ratings": candidate.get("safetyRatings"),
            "finish_message": candidate.get("finishMessage"),
            "avg_logprobs": candidate.get("avgLogprobs"),
            "search_queries": grounding.get("webSearchQueries"),
        }
        ending |= {name: value for name, value in extra.items() if value is not None and value != []}
        reason = as_text(candidate.get("finishReason"))
        if reason and not self._state.reason:
            self.end_growing()
            self.writer.close(cut=reason == "MALFORMED_FUNCTION_CALL")
            self._state = self._state._replace(reason=reason)
        if ending != (self._state.ending or {}):
            self._state = self._state._replace(ending=ending)

    def _part(self, part: JsonObject) -> None:
        signature = as_text(part.get("thoughtSignature"))
        kind = next((name for name in _KINDS if name in part), "") or next((name for name in part if name not in _KNOWN), "")
        if kind != "functionCall":
            self.end_growing()
        match kind:
            case "text" | "":
                self._append_text("reasoning" if part.get("thought") is True else "text", as_text(part.get("text")), signature)
            case "functionCall":
                self._call(as_object(part["functionCall"]), signature)
            case "inlineData" | "fileData":
                self._file(as_object(part[kind]), part, signature)
            case _ if kind in _RAN:
                self._ran(kind, as_object(part[kind]), signature)
            case _ if kind in _RAN.values():
                self._answer(kind, as_object(part[kind]), signature)
            case _:
                self.writer.end()
                self.writer.chunks.append(
                    {"type": "custom", "kind": f"{METADATA}.{kind}", "providerMetadata": self.made_by({"block": part})}
                )

    def _append_text(self, kind: Spoken, text: str, signature: str) -> None:
        if not text and not signature:
            return
        if signature and not text and self.writer.parts.kind != kind:
            self.writer.begin(kind, self.made_by({}) if kind == "reasoning" else None)
        if text:
            self.writer.say(kind, text, self.made_by({}) if kind == "reasoning" else None)
        if signature:
            self.writer.end(self.made_by({"thoughtSignature": signature}))

    def _call(self, call: JsonObject, signature: str) -> None:
        name, id = as_text(call.get("name")), as_text(call.get("id"))
        known = self._state.growing
        if "partialArgs" in call or call.get("willContinue") is True or (known is not None and not name):
            self._grow(call, known, signature)
            return
        self.end_growing()
        metadata = self.made_by({"thoughtSignature": signature}) if signature else None
        made = self.writer.call(len(self.writer.parts.calls), id, name, metadata=metadata)
        arguments = call.get("args")
        self.writer.give(made, arguments if isinstance(arguments, str) else canonical.dumps(as_object(arguments)).decode())

    def _grow(self, call: JsonObject, known: JsonObject | None, signature: str) -> None:
        """Merge a piece of a streamed call. Each piece contains its path in the arguments."""
        name = as_text(call.get("name"))
        if known is None or (name and name != known["name"]):
            self.end_growing()
            self.writer.end()
            known = {"name": name, "id": as_text(call.get("id")), "args": {}, "signature": ""}
        arguments = as_object(known["args"])
        for piece in as_list(call.get("partialArgs")):
            arguments = merge_piece(arguments, as_object(piece))
        self._state = self._state._replace(growing={**known, "args": arguments, "signature": signature or known["signature"]})
        if call.get("willContinue") is not True:
            self.end_growing()

    def end_growing(self) -> None:
        """Add the call that was streaming, which is now complete."""
        known = self._state.growing
        if known is not None:
            self._state = self._state._replace(growing=None)
            self._call({"name": known["name"], "id": known["id"], "args": known["args"]}, as_text(known["signature"]))

    def _file(self, file: JsonObject, part: JsonObject, signature: str) -> None:
        self.writer.end()
        media_type = as_text(file.get("mimeType")) or "application/octet-stream"
        data, url = as_text(file.get("data")), as_text(file.get("fileUri"))
        if data:
            url = f"data:{media_type};base64,{data}"
        if url:
            kind = "reasoning-file" if part.get("thought") is True else "file"
            self.writer.chunks.append({"type": kind, "url": url, "mediaType": media_type, "providerMetadata": self._sealed({}, signature)})

    def _ran(self, kind: str, call: JsonObject, signature: str) -> None:
        """Add a call of a tool that the vendor runs. Its output follows in another part."""
        code = kind == "executableCode"
        arguments = {name: call[name] for name in ("language", "code") if name in call} if code else as_object(call.get("args"))
        rest = {name: value for name, value in call.items() if name != "args" and name not in arguments}
        name = "code_execution" if code else as_text(call.get("toolType")).lower()
        details = self._sealed({"type": kind, "block": rest}, signature)
        made = self.writer.call(len(self.writer.parts.calls), as_text(call.get("id")), name, executed=True, metadata=details)
        self.writer.give(made, canonical.dumps(arguments).decode())

    def _answer(self, kind: str, answer: JsonObject, signature: str) -> None:
        self.writer.end()
        call = self._call_with_id(kind, as_text(answer.get("id")))
        if call is None:
            details = self._sealed({"block": {kind: answer}}, signature)
            self.writer.chunks.append({"type": "custom", "kind": f"{METADATA}.{kind}", "providerMetadata": details})
            return
        output = {name: value for name, value in answer.items() if name not in _NAMES}
        details = self._sealed({"type": kind, "block": {name: answer[name] for name in _NAMES if name in answer}}, signature)
        self.writer.chunks.append({**tool_output(call.id, output), "providerExecuted": True, "providerMetadata": details})

    def _call_with_id(self, kind: str, id: str) -> Call | None:
        """Return the newest call with this id that expects an output of this kind. An empty id matches any call."""
        for call in reversed(self.writer.parts.calls):
            made = as_object((call.metadata or {}).get(METADATA))
            if _RAN.get(as_text(made.get("type"))) == kind and (not id or call.vendor_id == id):
                return call
        return None

    def _sealed(self, fields: JsonObject, signature: str) -> JsonObject:
        return self.made_by({**fields, "thoughtSignature": signature} if signature else fields)


class GoogleStream(StreamTranslator[State]):
    name = "google"
    _begin = State
    _turn = _Turn
    _input = (b'"args"', re.compile(rb'"args"\s*:\s*\{'))

    def feed(self, state: State, raw: Raw) -> tuple[State, tuple[Chunk, ...]]:
        return self._feed_frame(state, raw)

    def _feed_body(self, state: State, raw: bytes) -> tuple[State, tuple[Chunk, ...]]:
        if raw.lstrip()[:1] != b"[":
            return super()._feed_body(state, raw)
        try:
            events = as_list(frames.parse(raw))  # if no event stream was requested, the endpoint sends a single list
        except ValueError:
            return state._replace(body=start_of_body(state, raw)), ()
        chunks: list[Chunk] = []
        for event in events:
            state, made = self._feed_data(state, canonical.dumps(event), "")
            chunks += made
        return state, tuple(chunks)

    def close(self, state: State, ended: Ended) -> tuple[tuple[Chunk, ...], Ending]:
        turn = _Turn(state)
        turn.end_growing()
        reason = REASONS.get(state.reason, "other")
        if reason == "stop" and any(not call.executed for call in turn.writer.parts.calls):
            reason = "tool-calls"
        return turn.close(
            ended,
            whole=bool(state.reason or state.blocked),
            reason=reason,
            raw_reason=state.reason or state.blocked,
            usage=usage_of(state.usage or {}),
            error=_failed(state),
            facts=state.ending,
        )


def _failed(state: State) -> Failure | None:
    if state.blocked:
        return Failure(f"the provider did not answer this prompt: {state.blocked}", "content")
    if state.reason == "MALFORMED_FUNCTION_CALL":
        text = as_text((state.ending or {}).get("finish_message"))
        return Failure(f"the model made a call that can't be read{f': {text}' if text else ''}", "overloaded", retryable=True)
    return None
