"""Request bodies for the Gemini API (reference: Gemini API, generateContent). The URL contains the model.

Roles must alternate, so adjacent messages with the same role are merged. Tool outputs come first in the content after their calls. A
signature is sent back on the part with which it arrived, and only to the provider that made it. JSON Schemas are reduced to the subset of
OpenAPI that Google's models accept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from moot.convert.dialects import parts as _files
from moot.convert.dialects.google_stream import METADATA, GoogleStream
from moot.convert.dialects.parts import add_turn, arguments_of, made_here, output_of, ran_by, texts_and_files, vendor_id
from moot.convert.history import Step, split_steps
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message, Part, is_tool, tool_name
from moot.types.model import Model, ModelSettings
from moot.types.provider import ModelPrompt, ToolDefinition

_KEPT = ("title", "description", "minItems", "maxItems", "minLength", "maxLength", "pattern", "minimum", "maximum", "default")
_FORMATS = {"string": ("date-time",), "number": ("float", "double"), "integer": ("int32", "int64")}
_SOUNDS = frozenset(
    f"audio/{kind}" for kind in ("wav", "x-wav", "mp3", "mpeg", "aiff", "aac", "ogg", "flac", "x-flac", "mp4", "m4a", "x-m4a", "webm")
)
_DEPTH = 12
"""Depth to which a recursive schema is expanded. Below this depth, any object is accepted."""

_NESTED = 3
"""Maximum nesting of `allOf` inside `allOf`."""

_SIZE = 500
"""Maximum number of expanded subschemas, because references can make a schema grow exponentially."""


def subset(schema: JsonObject) -> JsonObject:
    """Reduce the schema to the accepted subset: expand references, convert `const` and type lists, and drop other keywords."""
    return _Reduction(schema).reduced(schema, 0)


class _Reduction:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = _SIZE

    def reduced(self, schema: Json, depth: int) -> JsonObject:
        found = _resolved(schema, self._root)
        self._left -= 1
        if depth > _DEPTH or self._left < 0:
            return {"type": "object"}
        kinds, nullable = _types(found)
        choices = next(
            (list(choice) for name in ("anyOf", "oneOf") if isinstance(choice := found.get(name), list) and choice), list[Json]()
        )
        reduced: JsonObject = {name: found[name] for name in _KEPT if found.get(name) is not None}
        if any(_is_null(choice, self._root) for choice in choices):
            nullable, choices = True, [choice for choice in choices if not _is_null(choice, self._root)]
        if len(kinds) > 1:
            choices = [{**found, "type": kind} for kind in kinds]
            reduced = {name: reduced[name] for name in ("title", "description") if name in reduced}
        if choices:
            written = [self.reduced(choice, depth + 1) for choice in choices]
            reduced = {**reduced, **written[0]} if len(written) == 1 else {**reduced, "anyOf": list[Json](written)}
        elif kinds:
            reduced |= self._typed(kinds[0], found, depth)
        if nullable:
            reduced["nullable"] = True
        return reduced

    def _typed(self, kind: str, found: JsonObject, depth: int) -> JsonObject:
        typed: JsonObject = {"type": kind}
        if found.get("format") in _FORMATS.get(kind, ()):
            typed["format"] = found["format"]
        values = _values(found)
        if values and kind == "string":  # enum is accepted for strings only
            typed["enum"] = [str(value) for value in values if value is not None]
        if kind == "array":
            typed["items"] = self.reduced(found.get("items", {}), depth + 1) or {"type": "string"}
        properties = found.get("properties")
        if kind == "object" and isinstance(properties, dict) and properties:
            typed["properties"] = {name: self.reduced(value, depth + 1) for name, value in properties.items()}
            required = found.get("required")
            if isinstance(required, list) and (names := [name for name in required if isinstance(name, str) and name in properties]):
                typed["required"] = list[Json](names)
        return typed


def _resolved(schema: Json, root: JsonObject, level: int = 0) -> JsonObject:
    """Return the schema with its references and `allOf` merged into it."""
    found: JsonObject = schema if isinstance(schema, dict) else {}
    for _ in range(_DEPTH):
        reference = found.get("$ref")
        if not isinstance(reference, str):
            break
        target: Json = root
        for step in reference.removeprefix("#").strip("/").split("/"):
            target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) and step else target
        rest = {name: value for name, value in found.items() if name != "$ref"}
        found = {**(target if isinstance(target, dict) else {}), **rest}
    merged: JsonObject = {}
    parts = found.get("allOf")
    for part in parts if isinstance(parts, list) and level < _NESTED else ():
        merged |= _resolved(part, root, level + 1)
    return {**merged, **{name: value for name, value in found.items() if name != "allOf"}}


def _types(schema: JsonObject) -> tuple[list[str], bool]:
    """Return the types except null, and whether null is allowed.
    If the keyword `type` is missing, the types are inferred from other keywords.
    """
    named = schema.get("type")
    kinds = [str(kind) for kind in named] if isinstance(named, list) else [named] if isinstance(named, str) else []
    nullable = "null" in kinds or schema.get("nullable") is True
    kinds = [kind for kind in kinds if kind != "null"]
    if not kinds:
        values = _values(schema)
        guess = {"properties": "object", "items": "array", "pattern": "string", "minimum": "number", "maximum": "number"}
        kinds = [_NAMES.get(type(values[0]), "string")] if values else [kind for name, kind in guess.items() if name in schema][:1]
    return kinds, nullable


def _values(schema: JsonObject) -> list[Json]:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else []


_NAMES: dict[type[object], str] = {bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
"""The schema type for each Python type. All other values are strings."""


def _is_null(schema: Json, root: JsonObject) -> bool:
    return _resolved(schema, root).get("type") == "null"


_BEGIN = "(The conversation's earlier messages are left out.)"
_VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_BUDGETS = {"low": 2_048, "medium": 8_192, "high": 16_384, "max": 24_576}
_UNSIGNED = "skip_thought_signature_validator"
"""A value that is accepted instead of a signature for a call made by another vendor's model (Gemini API, thought signatures)."""


class Google:
    """The dialect of Google's Gemini API: parts with signatures, reduced schemas, and tools that the vendor runs."""

    name = "google"
    sounds = _SOUNDS

    @property
    def translator(self) -> GoogleStream:
        return GoogleStream()

    def to_request(self, prompt: ModelPrompt) -> JsonObject:
        """Build the body of a request. The model and the choice of streaming are part of the URL."""
        settings, model = prompt.settings, prompt.model
        body: JsonObject = {}
        if prompt.system:
            body["systemInstruction"] = {"parts": [{"text": prompt.system}]}
        body["contents"] = _contents(prompt)
        tools: list[Json] = []
        if prompt.tools and model.tools == "native":
            tools.append({"functionDeclarations": [_tool(tool) for tool in prompt.tools]})
            body |= _choice(settings)
        if tools := [*tools, *prompt.quirks.vendor_tools]:
            body["tools"] = tools
        if config := {**_config(settings, model), **_resolution(prompt.messages)}:
            body["generationConfig"] = config
        return body | prompt.quirks.extra


def _tool(tool: ToolDefinition) -> JsonObject:
    declared: JsonObject = {"name": tool.name, "description": tool.description}
    schema = subset(tool.schema)
    return {**declared, "parameters": schema} if schema.get("properties") else declared  # an object without properties is refused


def _choice(settings: ModelSettings) -> JsonObject:
    """Return the field for the tool choice, or an empty object if the model may choose freely.

    The API can't limit a model to one call at a time.
    """
    choice = settings.tool_choice
    if not choice:
        return {}
    config: JsonObject = {"mode": "NONE" if choice == "none" else "ANY"}
    if choice.startswith("="):
        config["allowedFunctionNames"] = [choice[1:]]
    return {"toolConfig": {"functionCallingConfig": config}}


def _config(settings: ModelSettings, model: Model) -> JsonObject:
    config: JsonObject = {
        "temperature": settings.temperature,
        "topP": settings.top_p,
        "maxOutputTokens": settings.max_tokens,
        "stopSequences": list[Json](settings.stop) or None,
    }
    if settings.schema is not None:
        schema = canonical.loads_object(canonical.dumps(settings.schema))
        config |= {"responseMimeType": "application/json", "responseSchema": subset(schema)}
    if model.reasoning and settings.effort is not None and (thinking := _thinking(str(settings.effort), model)):
        config["thinkingConfig"] = {**thinking, "includeThoughts": settings.show_reasoning and settings.effort != "none"}
    if "-image" in model.wire_name:
        config["responseModalities"] = ["TEXT", "IMAGE"]
    return {name: value for name, value in config.items() if value is not None}


def _thinking(effort: str, model: Model) -> JsonObject:
    """Return a thinking level for Gemini 3 and later, or a token budget for 2.5. Large models can't turn thinking off."""
    found = _VERSION.search(model.wire_name)
    version = int(found[1]) + int(found[2] or 0) / 100 if found else 0.0
    large = "pro" in model.wire_name
    if version >= 3:
        levels = {"none": "low" if large else "minimal", "medium": "high" if large and version < 3.01 else "medium", "max": "high"}
        return {"thinkingLevel": levels.get(effort, effort)}
    if version < 2.05:
        return {}
    return {"thinkingBudget": (128 if large else 0) if effort == "none" else _BUDGETS[effort]}


def _contents(prompt: ModelPrompt) -> list[Json]:
    contents: list[JsonObject] = []
    for message in prompt.messages:
        if message.role != "assistant":
            _add(contents, "user", _content(message.parts, prompt.model))
            continue
        for step in split_steps(message):
            _add(contents, "user", _content(step.steering, prompt.model))
            _add(contents, "model", _step_parts(step, message, prompt))
            _add(contents, "user", _outputs(step, message, prompt))
    if contents and contents[0]["role"] == "model":
        contents.insert(0, {"role": "user", "parts": [{"text": _BEGIN}]})
    return list[Json](contents)


def _add(contents: list[JsonObject], role: str, parts: list[Json]) -> None:
    add_turn(contents, role, "parts", parts, lambda part: role == "user" and "functionResponse" in part)


def _content(parts: tuple[Part, ...], model: Model) -> list[Json]:
    return [_file(part, model) if part["type"] == "file" else {"text": part["text"]} for part in texts_and_files(parts)]


def _resolution(messages: Sequence[Message]) -> JsonObject:
    """Return the resolution of images: high if an image has high detail, low if all images and documents have low detail.

    In the stable version of the API, the resolution applies to the whole request.
    """
    parts = [part for message in messages for part in message.parts if part.get("type") == "file"]
    details = {str(part.get("detail")) for part in parts if not str(part.get("mediaType", "")).startswith(("audio/", "text/"))}
    if "high" in details:
        return {"mediaResolution": "MEDIA_RESOLUTION_HIGH"}
    return {"mediaResolution": "MEDIA_RESOLUTION_LOW"} if details == {"low"} else {}


def _file(part: Part, model: Model) -> JsonObject:
    file = _files.parse_file(part)
    kind = "video" if file.media_type.startswith("video/") else file.kind
    if kind in ("text", "other") or kind not in model.modalities:
        return {"text": _files.text_of_file(file)}
    return _data(file)


def _data(file: _files.File) -> JsonObject:
    if file.base64:
        return {"inlineData": {"mimeType": file.media_type, "data": file.base64}}
    return {"fileData": {"mimeType": file.media_type, "fileUri": file.url}}


def _step_parts(step: Step, message: Message, prompt: ModelPrompt) -> list[Json]:
    """Return the model's parts for a step, in order."""
    provider = prompt.model.id.provider
    parts: list[Json] = []
    made_calls = (made_here(part, METADATA, message, provider, field="callProviderMetadata") for part in step.calls)
    signs = not any(made and made.get("thoughtSignature") for made in made_calls)
    for part in step.parts:
        if is_tool(part):
            ran = ran_by(part, METADATA, message, provider)
            parts += _ran(part, message, provider) if ran else [_call(part, message, prompt, first=signs)]
            signs = signs and ran
            continue
        made = made_here(part, METADATA, message, provider)
        match part.get("type"):
            case "text" if part.get("text") or (made and made.get("thoughtSignature")):
                parts.append(_signed({"text": part.get("text", "")}, made))
            case "reasoning" if made is not None:
                parts.append(_signed({"text": part.get("text", ""), "thought": True}, made))
            case "file" | "reasoning-file" if made is not None and part.get("providerMetadata"):
                thought: JsonObject = {"thought": True} if part["type"] == "reasoning-file" else {}
                parts.append(_signed({**_data(_files.parse_file(part)), **thought}, made))
            case "custom" if made is not None and isinstance(block := made.get("block"), dict):
                parts.append(_signed(dict(block), made))
            case _:
                pass
    return parts


def _signed(part: JsonObject, made: JsonObject | None) -> JsonObject:
    signature = (made or {}).get("thoughtSignature")
    return {**part, "thoughtSignature": signature} if signature else part


def _call(part: Part, message: Message, prompt: ModelPrompt, *, first: bool) -> JsonObject:
    """Return a call that moot ran. From Gemini 3 on, the first call of a step must be signed, even if another model made it."""
    model = prompt.model
    call: JsonObject = {"functionCall": {**_id(part, message, model), "name": _name(part), "args": arguments_of(part)}}
    made = made_here(part, METADATA, message, model.id.provider, field="callProviderMetadata")
    found = _VERSION.search(model.wire_name)
    if first and found is not None and int(found[1]) >= 3 and not (made and made.get("thoughtSignature")):
        return {**call, "thoughtSignature": _UNSIGNED}
    return _signed(call, made)


def _id(part: Part, message: Message, model: Model) -> JsonObject:
    """Return the field with the vendor's id for a call, or an empty object if the call has none. Calls without ids are matched by order."""
    id, own = vendor_id(part), message.metadata.get("provider", model.id.provider) == model.id.provider
    return {"id": id} if id is not None and own else {}


def _name(part: Part) -> str:
    return re.sub(r"[^a-zA-Z0-9_.:-]", "_", tool_name(part))[:64] or "unknown"


def _ran(part: Part, message: Message, provider: str) -> list[Json]:
    """Return the parts for a call that the vendor ran and for its output, or an empty list if there is no output."""
    made = made_here(part, METADATA, message, provider, field="callProviderMetadata") or {}
    result = made_here(part, METADATA, message, provider, field="resultProviderMetadata")
    if result is None or not isinstance(result.get("type"), str):
        return []
    arguments = arguments_of(part)
    call = _with_block(made, arguments if made["type"] == "executableCode" else {"args": arguments})
    output = part.get("output")
    answer = _with_block(result, output if isinstance(output, dict) else {})
    return [_signed({str(made["type"]): call}, made), _signed({str(result["type"]): answer}, result)]


def _with_block(made: JsonObject, fields: JsonObject) -> JsonObject:
    block = made.get("block")
    return {**(block if isinstance(block, dict) else {}), **fields}


def _outputs(step: Step, message: Message, prompt: ModelPrompt) -> list[Json]:
    """Return a response for every call in the step, except those that the provider ran itself, followed by the files in the outputs."""
    model = prompt.model
    responses: list[Json] = []
    files: list[Json] = []
    for call in step.calls:
        if ran_by(call, METADATA, message, model.id.provider):
            continue
        output = output_of(call)
        response: JsonObject = {"error" if output.error else "output": output.text}
        responses.append({"functionResponse": {**_id(call, message, model), "name": _name(call), "response": response}})
        if output.files:
            files.append({"text": f"Files that {tool_name(call)} gave:"})
            files += [_file(file, model) for file in output.files]
    return [*responses, *files]
