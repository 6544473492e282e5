"""Shared by the tests of dialects: invalid frames, and one view of requests in every wire format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

HOSTILE = [
    b'data: {"choices":[{"delta":{"content":"\\ud800"}}]}\n\n',
    b'data: {"choices":[{"delta":{"content":NaN,"reasoning":1}}],"usage":{"prompt_tokens":1e400,"completion_tokens":-1}}\n\n',
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":18446744073709551617,"id":5,'
    b'"function":{"name":[],"arguments":{"a":1,"a":2}}}]}}]}\n\n',
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"\\ud800{"}},null,1]}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":1,"text":[],"signature":{}}],'
    b'"content":[{"type":"text","text":5},7]}}]}\n\n',
    b"data: " + b"[" * 10_000 + b"\n\n",
    b'data: {"a":' * 1 + b'{"b":' * 10_000 + b"\n\n",
    b'event: content_block_start\ndata: {"type":"content_block_start",'
    b'"index":"0","content_block":{"type":"tool_use","id":[],"name":1,"input":[1]}}\n\n',
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\udfff"}}\n\n',
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":null,"delta":{"type":"signature_delta","signature":5}}\n\n',
    b'event: content_block_start\ndata: {"type":"content_block_start",'
    b'"index":0,"content_block":{"type":"new","x":{"y":18446744073709551617}}}\n\n',
    b'event: content_block_start\ndata: {"type":"content_block_start",'
    b'"index":7,"content_block":{"type":"x_tool_result","tool_use_id":1,"content":null}}\n\n',
    b'event: message_delta\ndata: {"type":"message_delta","delta":null,"usage":{"input_tokens":"5","output_tokens":true}}\n\n',
    b'event: error\ndata: {"type":"error","error":[[]]}\n\n',
    b'data: {"error":{"code":1e400,"message":{"a":1}}}\n\n',
    b"data: null\n\n",
    b"data: \xff\xfe\n\n",
    b"data\n\n",
    b"\xef\xbb\xbf\r\n\r\n",
    b"data: [DONE]\n\n",
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    b'{"model":"m","message":{"role":"assistant","content":5,"tool_calls":[{"function":{"name":[],"arguments":{"a":1,"a":2}}},7]},"done":1}\n',
    b'{"message":[],"done":true,"done_reason":[],"eval_count":-1}\n',
    b'{"error":{"a":1}}\n',
    b"<html>",
    b"{",
    b'{"type":"message","content":[{"type":"text","text":"a"},1],"usage":[]}',
    b"",
]


def turns(body: dict[str, Any]) -> list[tuple[str, list[str], list[str]]]:
    """Return each message of a request in any wire format: role, the ids of its calls, and the ids of its outputs.

    Where calls may have no ids, their names are used instead.
    """
    found: list[tuple[str, list[str], list[str]]] = []
    for message in body.get("messages", []):
        blocks = message["content"] if isinstance(message.get("content"), list) else []
        calls = [call.get("id", call["function"]["name"]) if "function" in call else call["id"] for call in message.get("tool_calls", [])]
        calls += [block["id"] for block in blocks if block.get("type") == "tool_use"]
        outputs = [message.get("tool_call_id", message.get("tool_name"))] if message["role"] == "tool" else []
        outputs += [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        found.append((message["role"], calls, outputs))
    for item in body.get("input", []):
        kind = item["type"]
        call = [item["call_id"]] if kind in ("function_call", "custom_tool_call") else []
        output = [item["call_id"]] if kind.endswith("_output") else []
        role = item.get("role", "tool" if output else "assistant")
        if role == "assistant" and found and found[-1][0] == "assistant":
            found[-1][1].extend(call)
        else:
            found.append((role, call, output))
    for content in body.get("contents", []):
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        outputs = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        named = [[one.get("id", one["name"]) for one in ones] for ones in (calls, outputs)]
        found.append(("assistant" if content["role"] == "model" else "user", *named))
    return found


def wire_calls(body: dict[str, Any]) -> Iterator[tuple[list[str], list[str]]]:
    """Return each assistant message's call ids, and the ids of the outputs directly after it."""
    said = turns(body)
    for index, (role, calls, _) in enumerate(said):
        outputs: list[str] = []
        for later, _, given_back in said[index + 1 :]:
            if not given_back:
                break
            outputs += given_back
            if later == "user":
                break
        if role == "assistant":
            yield calls, outputs


def conversation(body: dict[str, Any]) -> list[Any]:
    return body.get("messages") or body.get("input") or body["contents"]
