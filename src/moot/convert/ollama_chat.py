"""Request bodies of Ollama's own chat (reference: Ollama API, generate a chat completion)."""

from __future__ import annotations

from moot.convert import _files
from moot.convert._tools import arguments_of, made_here, output_of, wire_ids
from moot.convert.history import Step, split_steps
from moot.convert.ollama_stream import METADATA, OllamaStream
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message
from moot.types.model import Model, ModelSettings
from moot.types.part import Part, text_part, tool_name
from moot.types.provider import ModelPrompt, ToolDefinition


class OllamaChat:
    """Ollama's native `/api/chat`: lines of JSON, thinking, and the context's size in the request."""

    name = "ollama"

    @property
    def translator(self) -> OllamaStream:
        return OllamaStream()

    def to_request(self, prompt: ModelPrompt) -> JsonObject:
        """Build the body of a streaming request. Without `num_ctx`, servers silently truncate the history to a few thousand tokens."""
        settings, model = prompt.settings, prompt.model
        body: JsonObject = {"model": model.wire_name, "messages": _messages(prompt), "stream": True}
        if prompt.tools and model.tools == "native" and settings.tool_choice != "none":
            body["tools"] = [_tool(tool) for tool in prompt.tools]
        if model.reasoning and settings.effort is not None:
            body["think"] = _think(settings, model)
        if settings.schema is not None:
            body["format"] = canonical.loads(canonical.dumps(settings.schema))
        if options := _options(settings, model):
            body["options"] = options
        return body | prompt.quirks.extra


def _think(settings: ModelSettings, model: Model) -> Json:
    """Return the thinking option. Only gpt-oss has levels, and it can't turn thinking off; all others take a boolean."""
    if "gpt-oss" not in model.wire_name.lower():
        return settings.effort != "none"
    return {"none": "low", "max": "high"}.get(str(settings.effort), settings.effort)


def _options(settings: ModelSettings, model: Model) -> JsonObject:
    options: JsonObject = {
        "num_ctx": model.context,
        "num_predict": settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "stop": list[Json](settings.stop) or None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _tool(tool: ToolDefinition) -> JsonObject:
    return {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema}}


def _messages(prompt: ModelPrompt) -> list[Json]:
    messages: list[Json] = []
    if prompt.system:
        messages.append({"role": "system", "content": prompt.system})
    for message in prompt.messages:
        if message.role == "assistant":
            for step in split_steps(message):
                messages += _step(step, message, prompt)
        else:
            _add(messages, "user" if message.role == "user" else "system", message.parts, prompt.model)
    return messages


def _add(messages: list[Json], role: str, parts: tuple[Part, ...], model: Model) -> None:
    """Append a message unless it is empty: texts in one string, images as bare base64 next to it."""
    texts: list[str] = []
    images: list[Json] = []
    for part in parts:
        if part.get("type") == "text" and part.get("text"):
            texts.append(str(part["text"]))
        elif part.get("type") == "file":
            file = _files.read(part)
            if file.kind == "image" and file.base64 and _files.taken(file, model):
                images.append(file.base64)
            else:
                texts.append(_files.words(file))
    if texts or images:
        messages.append({"role": role, "content": "\n\n".join(texts), **({"images": images} if images else {})})


def _step(step: Step, message: Message, prompt: ModelPrompt) -> list[Json]:
    """Return steering, the assistant's message, a tool message for each call in order, and the images of their outputs."""
    messages: list[Json] = []
    _add(messages, "user", step.steering, prompt.model)
    calls, provider = step.calls, prompt.model.id.provider
    text = "\n\n".join(str(part["text"]) for part in step.parts if part.get("type") == "text" and part.get("text"))
    assistant: JsonObject = {"role": "assistant", "content": text}
    if thinking := _thinking(step, message, provider):
        assistant["thinking"] = thinking
    ids = wire_ids(calls)
    if calls:
        assistant["tool_calls"] = [_call(call, id) for call, id in zip(calls, ids, strict=True)]
    if text or calls:
        messages.append(assistant)
    pictures: list[Part] = []
    for call, id in zip(calls, ids, strict=True):
        output = output_of(call)
        messages.append(
            {"role": "tool", "content": output.text, "tool_name": tool_name(call), **({"tool_call_id": id} if _has_id(call) else {})}
        )
        if output.files:
            pictures += [text_part(f"Files that {tool_name(call)} gave:"), *output.files]
    _add(messages, "user", tuple(pictures), prompt.model)
    return messages


def _thinking(step: Step, message: Message, provider: str) -> str:
    """Return the step's reasoning for models that think between calls; other models can't use it."""
    own = (part for part in step.parts if part.get("type") == "reasoning" and made_here(part, METADATA, message, provider) is not None)
    return "".join(str(part.get("text", "")) for part in own)


def _call(call: Part, id: str) -> JsonObject:
    sent: JsonObject = {"function": {"name": tool_name(call), "arguments": arguments_of(call)}}
    return {"id": id, **sent} if _has_id(call) else sent


def _has_id(call: Part) -> bool:
    """Return True if the vendor gave the call an id; older servers match calls by order."""
    metadata = call.get("toolMetadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("vendorId"), str)
