"""Request bodies for the Responses API (reference: OpenAI API, "Create a model response").

The vendor stores nothing (`store: false`), so complete items are sent back to the provider that made them, with encrypted reasoning
unchanged. An item keeps its id only if its reasoning is also sent, because otherwise the vendor rejects the item.
"""

from __future__ import annotations

import re

from moot.convert.dialects import parts as _files
from moot.convert.dialects.openai_chat import choice_fields, is_strict
from moot.convert.dialects.openai_responses_stream import METADATA, OWN_CALLS, ResponsesStream
from moot.convert.dialects.parts import arguments_of, is_custom, made_here, output_of, ran_by, texts_and_files, wire_ids
from moot.convert.history import Step, split_steps
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message, Part, is_tool, tool_name
from moot.types.model import Model, ModelSettings
from moot.types.provider import ModelPrompt, ToolDefinition

_IDS = r"\S{1,64}"
_VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")


class OpenAIResponses:
    """The dialect of OpenAI's Responses API: items with ids, encrypted reasoning, and tools that the vendor runs."""

    name = "openai-responses"

    @property
    def translator(self) -> ResponsesStream:
        return ResponsesStream()

    def to_request(self, prompt: ModelPrompt) -> JsonObject:
        """Build the body of a streaming request. The API has no stop sequences, so `settings.stop` is ignored."""
        settings, model = prompt.settings, prompt.model
        body: JsonObject = {"model": model.wire_name}
        if prompt.system:
            body["instructions"] = prompt.system
        body["input"] = _input(prompt)
        body["stream"] = True
        body["store"] = False
        tools: list[Json] = [_tool(tool) for tool in prompt.tools] if model.tools == "native" else []
        if tools:
            body |= choice_fields(settings, {"type": "function", "name": settings.tool_choice[1:]})
        if tools := [*tools, *prompt.quirks.vendor_tools]:
            body["tools"] = tools
        if settings.max_tokens is not None:
            body["max_output_tokens"] = settings.max_tokens
        if model.reasoning:
            body |= _reasoning(settings, model)
        else:  # reasoning models answer 400 to any sampling setting, other models to reasoning options
            sampling: JsonObject = {"temperature": settings.temperature, "top_p": settings.top_p}
            body |= {name: value for name, value in sampling.items() if value is not None}
        if settings.schema is not None:
            schema: Json = canonical.loads(canonical.dumps(settings.schema))
            body["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": is_strict(schema)}}
        return body | prompt.quirks.extra


def _tool(tool: ToolDefinition) -> JsonObject:
    # the default would be strict
    return {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema, "strict": False}


def _reasoning(settings: ModelSettings, model: Model) -> JsonObject:
    """Return the fields for a reasoning model. They always request encrypted reasoning;
    the other options are included only if an effort is set.
    """
    fields: JsonObject = {"include": ["reasoning.encrypted_content"]}
    if settings.effort is not None:
        shown: JsonObject = {"summary": "auto"} if settings.show_reasoning and settings.effort != "none" else {}
        fields["reasoning"] = {"effort": _effort(str(settings.effort), model), **shown}
    return fields


def _effort(effort: str, model: Model) -> str:
    """Return the effort as a value that the model's version accepts. Older models accept neither `none` nor `xhigh`."""
    found = _VERSION.search(model.wire_name)
    version = (int(found[1]) + int(found[2] or 0) / 100) if found else 0.0
    if effort == "none":
        return "none" if version >= 5.01 else "minimal" if version >= 5 else "low"
    if effort == "max":
        return "xhigh" if version >= 5.02 else "high"
    return effort


def _input(prompt: ModelPrompt) -> list[Json]:
    items: list[Json] = []
    used: set[str] = set()  # ids must be unique in the whole request
    for message in prompt.messages:
        if message.role == "assistant":
            for step in split_steps(message):
                _add(items, "user", step.steering, prompt.model)
                items += _StepItems(message, prompt).step(step, wire_ids(step.calls, _IDS, used))
        else:
            _add(items, "user" if message.role == "user" else "developer", message.parts, prompt.model)
    return items


def _add(items: list[Json], role: str, parts: tuple[Part, ...], model: Model) -> None:
    if content := _content(parts, model):
        items.append({"type": "message", "role": role, "content": content})


def _content(parts: tuple[Part, ...], model: Model) -> list[Json]:
    shown = texts_and_files(parts)
    return [_file(part, model) if part["type"] == "file" else {"type": "input_text", "text": part["text"]} for part in shown]


def _file(part: Part, model: Model) -> JsonObject:
    file = _files.parse_file(part)
    if file.kind == "image" and _files.is_accepted(file, model):
        detail = part.get("detail")
        return {"type": "input_image", "image_url": file.url, "detail": detail if detail in ("auto", "low", "high") else "auto"}
    if file.kind == "pdf" and _files.is_accepted(file, model):
        if file.base64:
            return {"type": "input_file", "filename": file.name or "document.pdf", "file_data": file.url}
        return {"type": "input_file", "file_url": file.url}
    return {"type": "input_text", "text": _files.text_of_file(file)}


class _StepItems:
    """The items of one step of an assistant message, in order."""

    def __init__(self, message: Message, prompt: ModelPrompt) -> None:
        self._message = message
        self._model = prompt.model
        self._provider = prompt.model.id.provider
        self._items: list[JsonObject] = []
        self._by_id: dict[str, JsonObject] = {}
        self._seen: dict[str, tuple[object, ...]] = {}

    def step(self, step: Step, ids: list[str]) -> list[Json]:
        """Return the model's items and an output for each call that moot ran."""
        waiting = iter(ids)
        outputs: list[Json] = []
        for part in step.parts:
            if is_tool(part):
                id = next(waiting)
                if ran_by(part, METADATA, self._message, self._provider):
                    self._items += self._ran(part)
                else:
                    self._items.append(self._call(part, id))
                    outputs.append(self._output(part, id))
            else:
                self._part(part)
        return [*self._sound(), *outputs]

    def _part(self, part: Part) -> None:
        made = made_here(part, METADATA, self._message, self._provider)
        match part.get("type"):
            case "text" if part.get("text"):
                self._text(part, made or {})
            case "reasoning" if made is not None:
                self._thought(part, made)
            case "custom" if made is not None and isinstance(block := made.get("block"), dict):
                self._items.append(dict(block))
            case "file" if made is not None and (call := self._by_id.get(str(made.get("itemId")))) is not None:
                call["result"] = _files.parse_file(part).base64
            case _:
                pass

    def _text(self, part: Part, made: JsonObject) -> None:
        refusal = made.get("kind") == "refusal"
        field = "refusal" if refusal else "text"
        piece: JsonObject = {"type": "refusal" if refusal else "output_text", field: part["text"]}
        if not refusal:
            piece["annotations"] = made.get("annotations", [])
        item = self._item_with_id("message", made)
        item.setdefault("role", "assistant")
        item.setdefault("status", "completed")
        if made.get("phase"):
            item["phase"] = made["phase"]
        self._join(item, "content", field, piece, made)

    def _thought(self, part: Part, made: JsonObject) -> None:
        item = self._item_with_id("reasoning", made)
        item.setdefault("summary", [])
        if made.get("encryptedContent"):
            item["encrypted_content"] = made["encryptedContent"]
        if made.get("index") == -1:
            return
        if made.get("kind") == "thought":
            self._join(item, "content", "text", {"type": "reasoning_text", "text": part.get("text", "")}, made)
        else:
            self._join(item, "summary", "text", {"type": "summary_text", "text": part.get("text", "")}, made)

    def _item_with_id(self, kind: str, made: JsonObject) -> JsonObject:
        """Return the step's item whose id is in the metadata, creating the item if needed. Several parts may belong to one item."""
        id = str(made.get("itemId") or "")
        if id in self._by_id:
            return self._by_id[id]
        item: JsonObject = {"type": kind, **({"id": id} if id else {})}
        self._items.append(item)
        if id:
            self._by_id[id] = item
        return item

    def _join(self, item: JsonObject, field: str, words: str, piece: JsonObject, made: JsonObject) -> None:
        """Add a piece to an item. If it comes from the same piece of the original item as the last piece, extend the last piece instead."""
        pieces = item.setdefault(field, [])
        name, place = f"{made.get('itemId')}", (made.get("kind"), made.get("index"))
        if not isinstance(pieces, list):
            return
        last = pieces[-1] if pieces else None
        if made.get("itemId") and self._seen.get(name) == place and isinstance(last, dict):
            last[words] = f"{last.get(words, '')}{piece[words]}"
            if piece.get("annotations"):
                last["annotations"] = piece["annotations"]
        else:
            pieces.append(piece)
        self._seen[name] = place

    def _call(self, part: Part, id: str) -> JsonObject:
        made = made_here(part, METADATA, self._message, self._provider, field="callProviderMetadata") or {}
        rest = made.get("item")
        named: JsonObject = {"id": made["itemId"]} if made.get("itemId") else {}
        kind = "custom_tool_call" if is_custom(part) else "function_call"
        value = part["input"] if is_custom(part) else canonical.dumps(arguments_of(part)).decode()
        more: JsonObject = rest if isinstance(rest, dict) else {}
        return {"type": kind, **named, "call_id": id, "name": tool_name(part), OWN_CALLS[kind]: value, **more}

    def _output(self, part: Part, id: str) -> JsonObject:
        output = output_of(part)
        kind = "custom_tool_call_output" if is_custom(part) else "function_call_output"
        if not output.files:
            return {"type": kind, "call_id": id, "output": output.text}
        pieces: list[Json] = [{"type": "input_text", "text": output.text}] if output.text else []
        return {"type": kind, "call_id": id, "output": [*pieces, *(_file(file, self._model) for file in output.files)]}

    def _ran(self, part: Part) -> list[JsonObject]:
        """Return the items for a call that the vendor ran and for its output, or an empty list if there is no output."""
        made = made_here(part, METADATA, self._message, self._provider, field="callProviderMetadata") or {}
        sent = made.get("item")
        call: JsonObject = {"type": made["type"], "id": made.get("itemId"), **(sent if isinstance(sent, dict) else {})}
        if made.get("type") == "mcp_approval_request":  # without a response, it counts as denied
            approval = part.get("approval")
            approved = isinstance(approval, dict) and approval.get("approved") is True
            return [call, {"type": "mcp_approval_response", "approval_request_id": made.get("itemId"), "approve": approved}]
        result = made_here(part, METADATA, self._message, self._provider, field="resultProviderMetadata")
        if result is None or not result.get("type"):
            return []
        rest = result["item"] if "item" in result else part.get("output")
        answer: JsonObject = {"type": result["type"], "id": result.get("itemId"), **(rest if isinstance(rest, dict) else {})}
        if result.get("type") == made.get("type"):
            self._by_id[str(result.get("itemId"))] = answer
            return [answer]
        return [call, answer]

    def _sound(self) -> list[Json]:
        """Return the items that the vendor accepts. Drop reasoning that has no content or is not followed by another item."""
        kept: list[JsonObject] = []
        alone = False
        for item in self._items:
            if item.get("type") == "reasoning":
                alone = not (item.get("encrypted_content") or item.get("content"))
            elif alone and item.get("type") in ("message", *OWN_CALLS):
                item.pop("id", None)
            if not alone or item.get("type") != "reasoning":
                kept.append(item)
        while kept and kept[-1].get("type") == "reasoning":
            kept.pop()
        return list[Json](kept)
