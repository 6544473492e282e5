"""Assistant messages as Open WebUI stores them: items of `output`, or text with reasoning and tool calls as `<details>` elements.

Reference: `convert_output_to_messages` in `open_webui.utils.misc` of open-webui 0.12.4 on PyPI, and a database created by that version.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

from moot.formats._saying import Output, call, file, reasoning
from moot.formats._source.fields import objects, text
from moot.formats._source.pieces import value_in
from moot.types.canonical import Json, JsonObject
from moot.types.part import Part, text_part

__all__ = ["REACHABLE", "Answer", "answer_of", "unpacked"]

REACHABLE = ("data:", "https://", "http://")
"""Prefixes of URLs that programs other than Open WebUI can open."""
_DETAILS = re.compile(r'<details type="(reasoning|tool_calls|code_interpreter)"([^>]*)>\n?(.*?)</details>\n?', re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_SUMMARY = re.compile(r"<summary>.*?</summary>\n?", re.DOTALL)
_SEALS = ("reasoning_details", "encrypted_content")
"""Fields that a vendor needs back together with the reasoning."""
_STEP: Part = {"type": "step-start"}


@dataclass(slots=True)
class Answer:
    """The parts of an assistant message and the outputs of its tool calls."""

    parts: list[Part] = field(default_factory=list[Part])
    outputs: list[Output] = field(default_factory=list[Output])
    missing: int = 0
    """Number of tool pictures that are missing from the source."""


def answer_of(words: str, output: list[JsonObject]) -> Answer:
    """Return the answer in the items of `output`. Without items, extract reasoning and tool calls from the text."""
    answer = Answer()
    before = ""
    for item in output:
        kind = text(item, "type")
        if before == "function_call_output" != kind:
            answer.parts.append(_STEP)
        _item(answer, kind, item)
        before = kind
    if not output:
        _told(answer, words)
    return answer


def _item(answer: Answer, kind: str, item: JsonObject) -> None:
    match kind:
        case "message":
            answer.parts += _words("".join(text(one, "text") for one in objects(item, "content")))
        case "reasoning":
            thought = "".join(text(one, "text") for one in objects(item, "summary") or objects(item, "content"))
            seals: JsonObject = {name: item[name] for name in _SEALS if item.get(name)}
            answer.parts += [reasoning(thought, {"open-webui": seals} if seals else None)] if thought or seals else []
        case "function_call":
            answer.parts.append(call(_id(item), text(item, "name"), unpacked(item.get("arguments"))))
            if item.get("status") == "rejected":
                answer.outputs.append(Output(_id(item), "", denied=True))
        case "function_call_output":
            answer.outputs.append(_output(answer, item))
        case "open_webui:code_interpreter":
            answer.parts.append(call(_id(item), "code_interpreter", {"code": text(item, "code"), "lang": text(item, "lang")}))
            if item.get("output"):
                answer.outputs.append(Output(_id(item), item["output"]))
        case _:
            answer.parts.append({"type": "data-item", "data": item})


def _id(item: JsonObject) -> str:
    return text(item, "call_id") or text(item, "id") or "call"


def _output(answer: Answer, item: JsonObject) -> Output:
    pieces = objects(item, "output")
    words = "".join(text(one, "text") for one in pieces) or text(item, "output")
    shown = [text(one, "image_url") for one in pieces if one.get("type") == "input_image"]
    pictures = [file(url, "" if url.startswith("data:") else "image/*") for url in shown if url.startswith(REACHABLE)]
    answer.missing += len(shown) - len(pictures)
    value: Json = {"type": "content", "value": [*_words(words), *pictures]} if pictures else words
    return Output(_id(item), value, error=text(item, "status") in ("failed", "incomplete"))


def _told(answer: Answer, words: str) -> None:
    begin = 0
    for found in _DETAILS.finditer(words):
        answer.parts += _words(words[begin : found.start()])
        begin = found.end()
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(found[2])}
        body = _SUMMARY.sub("", found[3]).strip("\n")
        if found[1] == "reasoning":
            lines = (line.removeprefix("> ").removeprefix(">") for line in html.unescape(body).split("\n"))
            answer.parts.append(reasoning("\n".join(lines)))
            continue
        id = attributes.get("id") or f"call-{len(answer.outputs) + 1}"
        answer.parts.append(call(id, attributes.get("name", found[1]), unpacked(attributes.get("arguments", body))))
        if result := attributes.get("result") or attributes.get("output"):
            answer.outputs.append(Output(id, unpacked(result)))
    answer.parts += _words(words[begin:])


def _words(words: str) -> list[Part]:
    return [text_part(words)] if words.strip() else []


def unpacked(written: Json) -> Json:
    """Return the value of a JSON string, decoding up to two levels. Text that is not JSON is returned unchanged."""
    for _ in range(2):
        if isinstance(written, str) and written[:1] in ("{", "[", '"'):
            written = value_in(written)
    return written
