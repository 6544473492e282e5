"""Request bodies for the Messages API (reference: Claude API, create a message).

Roles must alternate, so adjacent messages with the same role are merged. Tool outputs come first in the message after their calls. Thinking
is sent back unchanged, and only to the provider that signed it.
"""

from __future__ import annotations

import re

from moot.convert.dialects import parts as _files
from moot.convert.dialects.anthropic_stream import METADATA, AnthropicStream
from moot.convert.dialects.parts import add_turn, arguments_of, made_here, output_of, ran_by, texts_and_files, wire_ids
from moot.convert.history import Step, split_steps
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message, Part, is_tool, tool_name
from moot.types.model import Effort, Model, ModelSettings
from moot.types.provider import ModelPrompt

_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2})(?!\d))?")
_BUDGETS: dict[Effort, int] = {"low": 4_096, "medium": 10_240, "high": 16_384, "max": 31_999}
_LEAST = 1_024

OUTPUT_TOKENS = 32_000
"""Default maximum number of output tokens in a request."""


def max_tokens(settings: ModelSettings, model: Model) -> int:
    """Return the value of `max_tokens`, which every request must have."""
    return settings.max_tokens or min(model.max_output or 8_192, OUTPUT_TOKENS)


def thinking_fields(settings: ModelSettings, model: Model, limit: int) -> JsonObject:
    """Return the fields `thinking` and `output_config.effort`, or an empty object if no effort was set or the model does not reason."""
    effort = settings.effort
    if effort is None or not model.reasoning:
        return {}
    version = _version(model)
    if version >= (4, 6):
        return _adaptive(effort, version, show=settings.show_reasoning)
    budget = min(_BUDGETS.get(effort, 0), limit - _LEAST)
    if effort == "none" or budget < _LEAST:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def takes_sampling(model: Model) -> bool:
    """Return True if the model accepts `temperature` and `top_p`. Claude 4.7 and later respond to them with status 400."""
    return _version(model) < (4, 7)


def _adaptive(effort: Effort, version: tuple[int, int], *, show: bool) -> JsonObject:
    if effort == "none":
        # later models can't turn thinking off, only reduce it
        return {"thinking": {"type": "disabled"}} if version < (5, 0) else {"output_config": {"effort": "low"}}
    return {"thinking": {"type": "adaptive", "display": "summarized" if show else "omitted"}, "output_config": {"effort": effort}}


def _version(model: Model) -> tuple[int, int]:
    """Return the version of a Claude model, or (0, 0) for other vendors' models, which accept thinking budgets."""
    match = _VERSION.search(model.wire_name)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)


_IDS = r"[a-zA-Z0-9_-]{1,64}"
_CACHED: JsonObject = {"type": "ephemeral"}
_THINKING = frozenset({"thinking", "redacted_thinking"})
_BEGIN = "(The conversation's earlier messages are left out.)"


class AnthropicMessages:
    """The dialect of Anthropic's models, and of other endpoints that use it."""

    name = "anthropic"

    @property
    def translator(self) -> AnthropicStream:
        return AnthropicStream()

    def to_request(self, prompt: ModelPrompt) -> JsonObject:
        """Build the body of a streaming request, with cache breakpoints after the system prompt and the last two user messages."""
        settings, model = prompt.settings, prompt.model
        limit = max_tokens(settings, model)
        messages = _messages(prompt)
        thinking = thinking_fields(settings, model, limit)
        if _mode(thinking) == "enabled" and _unsigned(messages):
            thinking = {}  # a turn whose calls were made by another model, without thinking, can't continue with a thinking budget
        body: JsonObject = {"model": model.wire_name, "max_tokens": limit}
        offered = prompt.tools if model.tools == "native" else ()
        tools: list[Json] = [{"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in offered]
        if tools:
            if not prompt.system:
                _mark(tools[-1])
            body |= _choice(settings, thinking)
        if tools := [*tools, *prompt.quirks.vendor_tools]:
            body["tools"] = tools
        if prompt.system:
            body["system"] = [{"type": "text", "text": prompt.system, "cache_control": _CACHED}]
        _mark_messages(messages)
        body["messages"] = list[Json](messages)
        body["stream"] = True
        if settings.stop:
            body["stop_sequences"] = list(settings.stop)
        if (settings.temperature, settings.top_p) != (None, None) and _mode(thinking) in ("", "disabled") and takes_sampling(model):
            # at most one of the two, because newer models refuse requests with both
            body |= {"temperature": min(settings.temperature, 1.0)} if settings.temperature is not None else {"top_p": settings.top_p}
        body |= thinking
        if settings.schema is not None:
            schema = canonical.loads(canonical.dumps(settings.schema))
            effort = body.get("output_config")
            body["output_config"] = {**(effort if isinstance(effort, dict) else {}), "format": {"type": "json_schema", "schema": schema}}
        return body | prompt.quirks.extra


def _choice(settings: ModelSettings, thinking: JsonObject) -> JsonObject:
    """Return the field `tool_choice`, or an empty object for the default. A thinking model can't be forced to call a tool."""
    forced = settings.tool_choice not in ("", "none") and _mode(thinking) in ("", "disabled")
    choice: JsonObject = {"type": "none" if settings.tool_choice == "none" else "auto"}
    if forced:
        named = settings.tool_choice.startswith("=")
        choice = {"type": "tool", "name": settings.tool_choice[1:]} if named else {"type": "any"}
    if not settings.parallel_calls and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = True
    return {} if choice == {"type": "auto"} else {"tool_choice": choice}


def _messages(prompt: ModelPrompt) -> list[JsonObject]:
    turns: list[JsonObject] = []
    used: set[str] = set()  # ids must be unique in the whole request
    last = prompt.messages[-1] if prompt.messages else None
    for message in prompt.messages:
        if message.role != "assistant":
            _add(turns, "user", _content(message.parts, prompt.model))
            continue
        steps = split_steps(message)
        for step in steps:
            _add(turns, "user", _content(step.steering, prompt.model))
            ids = wire_ids(step.calls, _IDS, used)
            _add(turns, "assistant", _step_blocks(step, ids, message, prompt, goes_on=message is last and step is steps[-1]))
            _add(turns, "user", _outputs(step, ids, message, prompt))
    if turns and turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [_text(_BEGIN)]})
    # the API rejects trailing white space in an answer that the model continues
    content = turns[-1]["content"] if turns and turns[-1]["role"] == "assistant" else None
    block = content[-1] if isinstance(content, list) else None
    if isinstance(block, dict) and isinstance(text := block.get("text"), str):
        block["text"] = text.rstrip()
    return turns


def _add(turns: list[JsonObject], role: str, blocks: list[Json]) -> None:
    add_turn(turns, role, "content", blocks, lambda block: block.get("type") == "tool_result")


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _content(parts: tuple[Part, ...], model: Model) -> list[Json]:
    """Return the blocks of a user message or a tool output. The API rejects texts that contain only white space, so they are omitted."""
    shown = [part for part in texts_and_files(parts) if part["type"] == "file" or str(part["text"]).strip()]
    return [_file(part, model) if part["type"] == "file" else _text(str(part["text"])) for part in shown]


def _file(part: Part, model: Model) -> JsonObject:
    file = _files.parse_file(part)
    if file.kind not in ("image", "pdf") or not _files.is_accepted(file, model):
        return _text(_files.text_of_file(file))
    source: JsonObject = {"type": "url", "url": file.url}
    if file.base64:
        source = {"type": "base64", "media_type": file.media_type, "data": file.base64}
    if file.kind == "image":
        return {"type": "image", "source": source}
    return {"type": "document", "source": source, **({"title": file.name} if file.name else {})}


def _step_blocks(step: Step, ids: list[str], message: Message, prompt: ModelPrompt, *, goes_on: bool) -> list[Json]:
    """Return the assistant's blocks for a step, in order."""
    provider = prompt.model.id.provider
    waiting = iter(ids)
    blocks: list[Json] = []
    for part in step.parts:
        if is_tool(part):
            blocks += _call(part, next(waiting), message, provider, goes_on=goes_on)
            continue
        made = made_here(part, METADATA, message, provider)
        match part.get("type"):
            case "text" if str(part.get("text", "")).strip():
                cited: JsonObject = {"citations": made["citations"]} if made and made.get("citations") else {}
                blocks.append({**_text(str(part["text"])), **cited})
            case "reasoning" if made and "redactedData" in made:
                blocks.append({"type": "redacted_thinking", "data": made["redactedData"]})
            case "reasoning" if made and made.get("signature"):  # unsigned thinking is refused
                blocks.append({"type": "thinking", "thinking": part.get("text", ""), "signature": made["signature"]})
            case "custom" if made is not None and isinstance(block := made.get("block"), dict):
                blocks.append(dict(block))
            case _:
                pass
    return blocks


def _call(part: Part, id: str, message: Message, provider: str, *, goes_on: bool) -> list[Json]:
    """Return the blocks of a call. A call that the vendor ran is followed by its result, unless the answer was paused during the call."""
    made = made_here(part, METADATA, message, provider, field="callProviderMetadata") or {}
    rest, name = made.get("block"), re.sub(r"[^a-zA-Z0-9_-]", "_", tool_name(part))[:128] or "unknown"
    kind = "tool_use"
    if ran_by(part, METADATA, message, provider):
        kind = str(made.get("type"))
    call: JsonObject = {"type": kind, "id": id, "name": name, "input": arguments_of(part)}
    if isinstance(rest, dict):
        call |= rest
    if kind == "tool_use":
        return [call]
    result = made_here(part, METADATA, message, provider, field="resultProviderMetadata")
    if result is None or "type" not in result:
        return [call] if goes_on else []
    extra = result.get("block")
    content = result["content"] if "content" in result else part.get("output")
    answer: JsonObject = {"type": result["type"], "tool_use_id": id, "content": content, **(extra if isinstance(extra, dict) else {})}
    return [call, answer]


def _outputs(step: Step, ids: list[str], message: Message, prompt: ModelPrompt) -> list[Json]:
    """Return a result block for every call of the step, except those that the provider ran itself."""
    results: list[Json] = []
    for call, id in zip(step.calls, ids, strict=True):
        if ran_by(call, METADATA, message, prompt.model.id.provider):
            continue
        output = output_of(call)
        result: JsonObject = {"type": "tool_result", "tool_use_id": id, "content": output.text}
        if output.files:
            texts = [_text(output.text)] if output.text.strip() else []
            result["content"] = [*texts, *(_file(file, prompt.model) for file in output.files)]
        if output.error:
            result["is_error"] = True
        results.append(result)
    return results


def _mode(thinking: JsonObject) -> str:
    mode = thinking.get("thinking")
    return str(mode.get("type")) if isinstance(mode, dict) else ""


def _unsigned(messages: list[JsonObject]) -> bool:
    """Return True if the current turn has an assistant message with calls that does not start with thinking."""
    for message in reversed(messages):
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content := message["content"], list) else []
        if message["role"] == "user":
            if not any(block.get("type") == "tool_result" for block in blocks):
                return False
        elif blocks and blocks[0].get("type") not in _THINKING:
            return any(block.get("type") == "tool_use" for block in blocks)
    return False


def _mark_messages(messages: list[JsonObject]) -> None:
    """Set cache breakpoints on the last two user messages. The previous request wrote the cache up to the older one."""
    for message in [message for message in messages if message["role"] == "user"][-2:]:
        if isinstance(content := message["content"], list):
            _mark(content[-1])


def _mark(block: Json) -> None:
    if isinstance(block, dict) and block.get("type") not in _THINKING:
        block["cache_control"] = _CACHED
