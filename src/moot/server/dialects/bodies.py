"""OpenAPI descriptions of the requests and responses below `/v1`: the fields that moot reads and writes.

The callers' formats have more fields. Hints are ignored; fields that would change the answer are refused with an error that names them.
"""

from __future__ import annotations

from typing import Any

from moot.convert.callers.request import EFFORTS
from moot.types.canonical import Json, JsonObject

_MODEL = "agent:default"
_QUESTION = "What is in this folder?"
_ANSWER = "The folder contains a parser and its tests."
_ID = "01990c5e7a307c419d2e5b8f3a6c1d04"


def _text(description: str = "", *values: str) -> JsonObject:
    found: JsonObject = {"type": "string"}
    if description:
        found["description"] = description
    if values:
        found["enum"] = [*values]
    return found


def _number(low: float, high: float) -> JsonObject:
    return {"type": "number", "minimum": low, "maximum": high}


def _list(items: JsonObject, description: str = "") -> JsonObject:
    return {"type": "array", "items": items, **({"description": description} if description else {})}


def _either(*choices: JsonObject) -> JsonObject:
    return {"anyOf": [*choices]}


def _object(fields: JsonObject, required: str = "", description: str = "") -> JsonObject:
    found: JsonObject = {"type": "object", "properties": fields, "additionalProperties": True}
    if required:
        found["required"] = [*required.split()]
    if description:
        found["description"] = description
    return found


_COUNT: JsonObject = {"type": "integer", "minimum": 1}
_FLAG: JsonObject = {"type": "boolean", "default": False}
_ANY: JsonObject = {"type": "object", "additionalProperties": True}
_SCHEMA: JsonObject = {**_ANY, "description": "A JSON schema."}
_EFFORT = _text("Effort for reasoning.", *EFFORTS)
_CHOSEN = _text("`agent:NAME` for an agent, or `model@provider`. `GET /v1/models` lists them.")
_STREAMED: JsonObject = {**_FLAG, "description": "Send the answer as a stream of events."}
_STOP = _either(_text(), _list(_text()))
_ROLE = _text("", "system", "developer", "user", "assistant", "tool")

_PIECE = _object(
    {
        "type": _text("", "text", "image_url", "input_audio", "file", "refusal"),
        "text": _text(),
        "image_url": _object({"url": _text("A `data:` or https URL."), "detail": _text("", "auto", "low", "high")}, "url"),
        "input_audio": _object({"data": _text("Base64."), "format": _text("", "mp3", "wav")}, "data"),
        "file": _object({"file_data": _text("A `data:` URL."), "filename": _text()}, "file_data"),
        "refusal": _text("A refusal of an earlier answer."),
    },
    "type",
)
_FUNCTION = _object({"name": _text(), "description": _text(), "parameters": _SCHEMA}, "name")
_CALL = _object(
    {"id": _text(), "type": _text("", "function"), "function": _object({"name": _text(), "arguments": _text("JSON.")}, "name")},
    "id function",
)
_FUNCTION_CHOICE = _object({"type": _text("", "function"), "function": _object({"name": _text()}, "name")}, "type function")
_FORMAT = _object(
    {
        "type": _text("", "text", "json_object", "json_schema"),
        "json_schema": _object({"name": _text(), "schema": _SCHEMA}, "schema"),
    }
)
_CHAT = _object(
    {
        "model": _CHOSEN,
        "messages": _list(
            _object(
                {
                    "role": _ROLE,
                    "content": _either(_text(), _list(_PIECE), {"type": "null"}),
                    "reasoning_content": _text("The reasoning of an earlier answer."),
                    "tool_calls": _list(_CALL),
                    "tool_call_id": _text("The call that a message of the role `tool` answers."),
                },
                "role",
            ),
            "The whole history, oldest first.",
        ),
        "stream": _STREAMED,
        "stream_options": _object({"include_usage": _FLAG}),
        "tools": _list(_object({"type": _text("", "function"), "function": _FUNCTION}, "function"), "Tools that the caller runs."),
        "tool_choice": _either(_text("", "auto", "none", "required"), _FUNCTION_CHOICE),
        "parallel_tool_calls": {"type": "boolean", "default": True},
        "response_format": _FORMAT,
        "reasoning_effort": _EFFORT,
        "max_completion_tokens": _COUNT,
        "max_tokens": _COUNT,
        "temperature": _number(0, 2),
        "top_p": _number(0, 1),
        "stop": _STOP,
    },
    "model messages",
)

_CONTENT = _object(
    {
        "type": _text("", "input_text", "output_text", "text", "input_image", "input_file", "refusal"),
        "text": _text(),
        "refusal": _text(),
        "image_url": _text("A `data:` or https URL."),
        "detail": _text("", "auto", "low", "high", "original"),
        "file_data": _text("A `data:` URL."),
        "file_url": _text(),
        "filename": _text(),
    },
    "type",
)
_ITEM = _object(
    {
        "type": _text("", "message", "function_call", "function_call_output", "reasoning"),
        "role": _text("", "system", "developer", "user", "assistant"),
        "content": _either(_text(), _list(_CONTENT)),
        "call_id": _text(),
        "name": _text(),
        "arguments": _text("JSON."),
        "output": _either(_text(), _list(_CONTENT)),
    }
)
_RESPONSES = _object(
    {
        "model": _CHOSEN,
        "input": _either(_text(), _list(_ITEM)),
        "instructions": _text("The system prompt."),
        "previous_response_id": _text("The response to continue. Its messages need not be sent again."),
        "conversation": _either(_text(), _object({"id": _text()}, "id")),
        "stream": _STREAMED,
        "tools": _list(_object({"type": _text("", "function"), "name": _text(), "description": _text(), "parameters": _SCHEMA}, "name")),
        "tool_choice": _either(
            _text("", "auto", "none", "required"), _object({"type": _text("", "function"), "name": _text()}, "type name")
        ),
        "parallel_tool_calls": {"type": "boolean", "default": True},
        "reasoning": _object({"effort": _EFFORT}),
        "text": _object({"format": _object({"type": _text("", "text", "json_object", "json_schema"), "schema": _SCHEMA})}),
        "max_output_tokens": _COUNT,
        "temperature": _number(0, 2),
        "top_p": _number(0, 1),
    },
    "model input",
)

_SOURCE = _object({"type": _text("", "base64", "url", "text"), "media_type": _text(), "data": _text(), "url": _text()}, "type")
_BLOCK = _object(
    {
        "type": _text("", "text", "image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking"),
        "text": _text(),
        "source": _SOURCE,
        "title": _text(),
        "id": _text(),
        "name": _text(),
        "input": _ANY,
        "tool_use_id": _text(),
        "content": _either(_text(), _list(_ANY)),
        "is_error": _FLAG,
        "thinking": _text(),
        "signature": _text(),
        "data": _text(),
    },
    "type",
)
_COUNTED: JsonObject = {
    "model": _CHOSEN,
    "system": _either(_text(), _list(_object({"text": _text()}, "text"))),
    "messages": _list(
        _object({"role": _text("", "user", "assistant", "system"), "content": _either(_text(), _list(_BLOCK))}, "role content"),
        "The whole history, oldest first.",
    ),
    "tools": _list(_object({"name": _text(), "description": _text(), "input_schema": _SCHEMA}, "name"), "Tools that the caller runs."),
}
_MESSAGES = _object(
    {
        **_COUNTED,
        "max_tokens": _COUNT,
        "stream": _STREAMED,
        "tool_choice": _object(
            {"type": _text("", "auto", "any", "tool", "none"), "name": _text(), "disable_parallel_tool_use": _FLAG}, "type"
        ),
        "thinking": _object({"type": _text("", "enabled", "disabled", "adaptive"), "budget_tokens": _COUNT}, "type"),
        "output_config": _object({"effort": _EFFORT, "format": _object({"type": _text("", "json_schema"), "schema": _SCHEMA})}),
        "temperature": _number(0, 1),
        "top_p": _number(0, 1),
        "stop_sequences": _list(_text()),
    },
    "model messages max_tokens",
)

_SPENT: JsonObject = {"type": "integer"}
_COMPLETION = _object(
    {
        "id": _text(),
        "object": _text("", "chat.completion"),
        "created": _SPENT,
        "model": _text(),
        "choices": _list(
            _object(
                {
                    "index": _SPENT,
                    "message": _object(
                        {
                            "role": _text(),
                            "content": _either(_text(), {"type": "null"}),
                            "reasoning_content": _text(),
                            "tool_calls": _list(_CALL),
                        },
                        "role content",
                    ),
                    "finish_reason": _text("", "stop", "length", "tool_calls", "content_filter"),
                },
                "index message finish_reason",
            )
        ),
        "usage": _either(_object({"prompt_tokens": _SPENT, "completion_tokens": _SPENT, "total_tokens": _SPENT}), {"type": "null"}),
    },
    "id object created model choices",
)
_RESPONSE = _object(
    {
        "id": _text(),
        "object": _text("", "response"),
        "created_at": _SPENT,
        "status": _text("", "in_progress", "completed", "incomplete", "failed"),
        "model": _text(),
        "output": _list(_ANY),
        "usage": _either(_object({"input_tokens": _SPENT, "output_tokens": _SPENT, "total_tokens": _SPENT}), {"type": "null"}),
    },
    "id object created_at status model output",
)
_MESSAGE = _object(
    {
        "id": _text(),
        "type": _text("", "message"),
        "role": _text("", "assistant"),
        "model": _text(),
        "content": _list(_BLOCK),
        "stop_reason": _either(_text("", "end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"), {"type": "null"}),
        "usage": _object({"input_tokens": _SPENT, "output_tokens": _SPENT}),
    },
    "id type role model content usage",
)
_LISTED = _object(
    {
        "id": _text(),
        "object": _text("", "model"),
        "type": _text("", "model"),
        "owned_by": _text(),
        "display_name": _text(),
        "created": _SPENT,
        "created_at": _text(),
    },
    "id object type owned_by display_name created created_at",
)
_MODELS = _object({"object": _text("", "list"), "data": _list(_LISTED), "has_more": {"type": "boolean"}}, "object data has_more")

_USAGE: JsonObject = {"input_tokens": 412, "output_tokens": 11}
_HISTORY: Json = [{"role": "user", "content": _QUESTION}]
_SHOWN: JsonObject = {
    "id": _MODEL,
    "object": "model",
    "created": 0,
    "owned_by": "moot",
    "type": "model",
    "display_name": "the agent default",
    "created_at": "1970-01-01T00:00:00Z",
}


def _body(schema: JsonObject, example: JsonObject) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema, "example": example}}}}


def _answer(schema: JsonObject, example: JsonObject, *frames: str) -> dict[int | str, dict[str, Any]]:
    """Return the description of a response. With `frames`, the response is a stream of these events if `stream` is set."""
    content: dict[str, Any] = {"application/json": {"schema": schema, "example": example}}
    if frames:
        content["text/event-stream"] = {"schema": {"type": "string"}, "example": "".join(f"{frame}\n\n" for frame in frames)}
    return {200: {"content": content}}


CHAT_BODY = _body(_CHAT, {"model": _MODEL, "messages": _HISTORY})
CHAT_ANSWER = _answer(
    _COMPLETION,
    {
        "id": f"chatcmpl-{_ID}",
        "object": "chat.completion",
        "created": 1767225600,
        "model": _MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": _ANSWER}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 412, "completion_tokens": 11, "total_tokens": 423},
    },
    'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"The folder"},"finish_reason":null}]}',
    'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
    "data: [DONE]",
)
RESPONSES_BODY = _body(_RESPONSES, {"model": _MODEL, "input": _QUESTION})
RESPONSES_ANSWER = _answer(
    _RESPONSE,
    {
        "id": f"resp_{_ID}",
        "object": "response",
        "created_at": 1767225600,
        "status": "completed",
        "model": _MODEL,
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": _ANSWER}]}],
        "usage": {**_USAGE, "total_tokens": 423},
    },
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"The folder"}',
    'event: response.completed\ndata: {"type":"response.completed","response":{"status":"completed"}}',
)
RESPONSE: dict[int | str, dict[str, Any]] = {200: {"content": {"application/json": RESPONSES_ANSWER[200]["content"]["application/json"]}}}
MESSAGES_BODY = _body(_MESSAGES, {"model": _MODEL, "max_tokens": 1024, "messages": _HISTORY})
MESSAGES_ANSWER = _answer(
    _MESSAGE,
    {
        "id": f"msg_{_ID}",
        "type": "message",
        "role": "assistant",
        "model": _MODEL,
        "content": [{"type": "text", "text": _ANSWER}],
        "stop_reason": "end_turn",
        "usage": _USAGE,
    },
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"The folder"}}',
    'event: message_stop\ndata: {"type":"message_stop"}',
)
COUNT_BODY = _body(_object(_COUNTED, "model messages"), {"model": _MODEL, "messages": _HISTORY})
COUNT_ANSWER = _answer(_object({"input_tokens": _SPENT}, "input_tokens"), {"input_tokens": 412})
MODELS = _answer(_MODELS, {"object": "list", "data": [_SHOWN], "has_more": False})
MODEL = _answer(_LISTED, _SHOWN)

_EMBEDDINGS = _object(
    {
        "model": _text("`e5-small` for moot's own model, or `model@provider`."),
        "input": _either(_text(), _list(_either(_text(), {"type": "integer"}, _list({"type": "integer"})))),
        "encoding_format": _text("", "float", "base64"),
        "dimensions": {**_COUNT, "description": "Number of dimensions, if the model can choose it."},
        "input_type": _text("Kind of the texts for `e5-small`: a query, or a passage to find.", "query", "passage"),
    },
    "model input",
)
_VECTOR = _object({"object": _text(), "index": _SPENT, "embedding": _either(_list({"type": "number"}), _text())}, "object index embedding")
_VECTORS = _object({"object": _text(), "data": _list(_VECTOR), "model": _text(), "usage": _ANY}, "object data model")
EMBEDDINGS_BODY = _body(_EMBEDDINGS, {"model": "e5-small", "input": [_QUESTION, _ANSWER]})
EMBEDDINGS_ANSWER = _answer(
    _VECTORS,
    {
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.051, -0.032, 0.078]}],
        "model": "e5-small",
        "usage": {"prompt_tokens": 17, "total_tokens": 17},
    },
)
