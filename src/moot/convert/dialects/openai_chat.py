"""Request bodies for the Chat Completions API (reference: OpenAI API, create chat completion)."""

from __future__ import annotations

from moot.convert.dialects import parts as _files
from moot.convert.dialects.openai_chat_stream import METADATA, OpenAIStream
from moot.convert.dialects.parts import (
    arguments_of,
    is_custom,
    made_here,
    output_of,
    text_of_step,
    texts_and_files,
    wire_ids,
)
from moot.convert.history import Step, split_steps
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message, Part, text_part, tool_name
from moot.types.model import Model, ModelSettings
from moot.types.provider import ModelPrompt, Quirks, ToolDefinition


def effort_fields(settings: ModelSettings, model: Model, quirks: Quirks) -> JsonObject:
    """Return the fields for the effort and display of reasoning, or an empty object if nothing was set or the model does not reason."""
    effort = settings.effort
    if not model.reasoning:
        return {}
    thinks = effort != "none"
    match quirks.effort:
        case "reasoning":
            return _openrouter_reasoning(settings)
        case _ if effort is None:
            return {}
        case "reasoning_effort":
            return {"reasoning_effort": "high" if effort == "max" else effort}  # most models refuse `xhigh`
        case "thinking":
            return {"thinking": {"type": "enabled" if thinks else "disabled"}}
        case "enable_thinking":
            return {"enable_thinking": thinks}
        case "chat_template_kwargs":
            return {"chat_template_kwargs": {"enable_thinking": thinks}}
        case _:
            return {}


def _openrouter_reasoning(settings: ModelSettings) -> JsonObject:
    """Return OpenRouter's field `reasoning`, which can also hide the reasoning."""
    fields: JsonObject = {}
    if settings.effort == "none":
        fields["enabled"] = False
    elif settings.effort is not None:
        fields["effort"] = "xhigh" if settings.effort == "max" else settings.effort
    if not settings.show_reasoning and settings.effort != "none":
        fields["exclude"] = True
    return {"reasoning": fields} if fields else {}


_AUDIO = {"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/wav": "wav", "audio/x-wav": "wav"}


class OpenAIChat:
    """The dialect of OpenAI's Chat Completions API, which nearly every endpoint supports."""

    name = "openai-chat"
    sounds = frozenset(_AUDIO)

    @property
    def translator(self) -> OpenAIStream:
        return OpenAIStream()

    def to_request(self, prompt: ModelPrompt) -> JsonObject:
        """Build the body of a streaming request.
        Reasoning is sent back only to the provider that produced it, in the form that the quirks specify.
        """
        settings, quirks, model = prompt.settings, prompt.quirks, prompt.model
        body: JsonObject = {"model": model.wire_name, "messages": to_messages(prompt), "stream": True}
        if quirks.stream_usage:
            body["stream_options"] = {"include_usage": True}
        if prompt.tools and model.tools == "native":
            body["tools"] = [function_tool(tool) for tool in prompt.tools]
            body |= choice_fields(settings, {"type": "function", "function": {"name": settings.tool_choice[1:]}})
        if settings.max_tokens is not None:
            body[quirks.max_tokens] = settings.max_tokens
        # OpenAI's own reasoning models answer 400 to any sampling setting
        if not (model.reasoning and quirks.developer_role):
            body |= {name: value for name, value in (("temperature", settings.temperature), ("top_p", settings.top_p)) if value is not None}
        if settings.stop:
            body["stop"] = list(settings.stop)
        if settings.schema is not None:
            schema: Json = canonical.loads(canonical.dumps(settings.schema))
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": schema, "strict": is_strict(schema)},
            }
        body |= effort_fields(settings, model, quirks)
        return body | quirks.extra


def to_messages(prompt: ModelPrompt) -> list[Json]:
    """Return the `messages` of the body. Every call is directly followed by exactly one output."""
    messages: list[Json] = []
    system = "developer" if prompt.quirks.developer_role else "system"
    if prompt.system:
        messages.append({"role": system, "content": prompt.system})
    for message in prompt.messages:
        if message.role == "assistant":
            for step in split_steps(message):
                messages += _step(step, message, prompt)
        elif content := _content(message.parts, prompt.model):
            messages.append({"role": "user" if message.role == "user" else system, "content": content})
    return messages


def is_strict(schema: Json) -> bool:
    """Return True if the schema can be used in OpenAI's strict mode: no object has optional or additional properties."""
    if isinstance(schema, list):
        return all(is_strict(item) for item in schema)
    if not isinstance(schema, dict):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or properties is not None:
        required = schema.get("required")
        names = set(properties) if isinstance(properties, dict) else set[str]()
        if (
            schema.get("additionalProperties") is not False
            or not isinstance(required, list)
            or not names <= {str(name) for name in required}
        ):
            return False
    return all(is_strict(value) for value in schema.values())


def choice_fields(settings: ModelSettings, named: JsonObject) -> JsonObject:
    """Return the fields for the tool choice, or an empty object for the default, because not every endpoint accepts these fields.

    `named` is the value to use if one certain tool is required.
    """
    fields: JsonObject = {}
    if settings.tool_choice:
        fields["tool_choice"] = named if settings.tool_choice.startswith("=") else settings.tool_choice
    if not settings.parallel_calls:
        fields["parallel_tool_calls"] = False
    return fields


def function_tool(tool: ToolDefinition) -> JsonObject:
    """Return a tool's definition in the format of a function."""
    return {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema}}


def _content(parts: tuple[Part, ...], model: Model) -> str | list[Json]:
    """Return the content, which may be empty. If it is only text, return a string, because not every endpoint accepts content parts."""
    shown = texts_and_files(parts)
    pieces = [_file(part, model) if part["type"] == "file" else {"type": "text", "text": part["text"]} for part in shown]
    texts = [str(piece["text"]) for piece in pieces if "text" in piece]
    return "\n\n".join(texts) if len(texts) == len(pieces) else list[Json](pieces)


def _file(part: Part, model: Model) -> JsonObject:
    file = _files.parse_file(part)
    if not _files.is_accepted(file, model) or file.kind == "text":
        return {"type": "text", "text": _files.text_of_file(file)}
    if file.kind == "image":
        image: JsonObject = {"url": file.url}
        if part.get("detail") in ("auto", "low", "high"):
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    if file.kind == "audio" and file.base64 and file.media_type in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": file.base64, "format": _AUDIO[file.media_type]}}
    if file.kind == "pdf" and file.base64:
        return {"type": "file", "file": {"filename": file.name or "document.pdf", "file_data": file.url}}
    return {"type": "text", "text": _files.text_of_file(file)}


def _step(step: Step, message: Message, prompt: ModelPrompt) -> list[Json]:
    """Return the messages of a step: steering messages, the assistant's message, an output for each call, and the images of outputs."""
    messages: list[Json] = []
    if steering := _content(step.steering, prompt.model):
        messages.append({"role": "user", "content": steering})
    calls = step.calls
    ids = wire_ids(calls, prompt.quirks.call_ids)
    text = text_of_step(step)
    assistant: JsonObject = {"role": "assistant", "content": text or None}
    assistant |= _reasoning(step, message, prompt.model.id.provider, prompt.quirks)
    if calls:
        assistant["tool_calls"] = [_call(call, id, message, prompt.model.id.provider) for call, id in zip(calls, ids, strict=True)]
    if text or calls:
        messages.append(assistant)
    pictures: list[Part] = []
    for call, id in zip(calls, ids, strict=True):
        output = output_of(call)
        shown = [file for file in output.files if _files.is_accepted(_files.parse_file(file), prompt.model)]
        left_out = [_files.text_of_file(_files.parse_file(file)) for file in output.files if file not in shown]
        messages.append({"role": "tool", "tool_call_id": id, "content": "\n".join([output.text, *left_out])})
        if shown:
            pictures.append(text_part(f"Files that {tool_name(call)} ({id}) gave:"))
            pictures += shown
    if pictures:
        messages.append({"role": "user", "content": _content(tuple(pictures), prompt.model)})
    return messages


def _call(call: Part, id: str, message: Message, provider: str) -> JsonObject:
    name = tool_name(call)
    if is_custom(call):
        return {"id": id, "type": "custom", "custom": {"name": name, "input": call["input"]}}
    arguments = canonical.dumps(arguments_of(call)).decode()
    sent: JsonObject = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    made = made_here(call, METADATA, message, provider, field="callProviderMetadata")
    if made is not None and "extra_content" in made:
        sent["extra_content"] = made["extra_content"]
    return sent


def _reasoning(step: Step, message: Message, provider: str, quirks: Quirks) -> JsonObject:
    """Return the step's reasoning in the field that the provider expects, or an empty object if another provider produced it."""
    if not quirks.reasoning_back:
        return {}
    parts = [part for part in step.parts if part.get("type") == "reasoning"]
    own = [(part, made) for part in parts if (made := made_here(part, METADATA, message, provider)) is not None]
    if quirks.reasoning_back != "reasoning_details":
        text = "".join(str(part.get("text", "")) for part, _ in own)
        return {quirks.reasoning_back: text} if text else {}
    details: list[Json] = []  # the entries as received, with their texts taken from the parts
    for part, made in own:
        if isinstance(detail := made.get("detail"), dict):
            field = "summary" if detail.get("type") == "reasoning.summary" else "text"
            details.append({**detail, field: part["text"]} if part.get("text") else dict(detail))
    return {"reasoning_details": details} if details else {}
