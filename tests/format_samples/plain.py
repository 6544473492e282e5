"""Samples of the plain formats."""

from __future__ import annotations

from collections.abc import Mapping

from moot.types.format import Sample

OPENAI = b"""{"model": "gpt-4o", "messages": [
  {"role": "system", "content": "Be brief."},
  {"role": "user", "content": [{"type": "text", "text": "What is here?"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}]},
  {"role": "assistant", "content": null, "tool_calls": [
    {"id": "call_1", "type": "function", "function": {"name": "shell", "arguments": "{\\"command\\": \\"ls\\"}"}}]},
  {"role": "tool", "tool_call_id": "call_1", "content": "a.txt"},
  {"role": "assistant", "reasoning_content": "One file.", "content": "One file: a.txt"}
]}
"""

ANTHROPIC = b"""{"model": "claude-sonnet-4-5", "max_tokens": 500, "system": "Be brief.", "messages": [
  {"role": "user", "content": "What is here?"},
  {"role": "assistant", "content": [{"type": "thinking", "thinking": "I look.", "signature": "c2ln"},
    {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {"command": "ls"}}]},
  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.txt"}]},
  {"role": "assistant", "content": [{"type": "text", "text": "One file: a.txt"}]}
]}
"""

UI = b"""[
  {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "What is here?"}]},
  {"id": "m2", "role": "assistant", "metadata": {"model": "mock-1"}, "parts": [{"type": "step-start"},
    {"type": "reasoning", "text": "I look.", "state": "done"},
    {"type": "tool-shell", "toolCallId": "c1", "state": "output-available", "input": {"command": "ls"}, "output": "a.txt"},
    {"type": "text", "text": "One file: a.txt"}]}
]
"""

SAMPLES: dict[str, Mapping[str, Sample]] = {
    "openai": {
        "request": OPENAI,
        "fine-tuning": b'{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes?"}]}\n' * 2,
    },
    "anthropic": {"request": ANTHROPIC},
    "ui": {
        "messages": UI,
        "lines": b'{"id":"m1","role":"user","parts":[{"type":"text","text":"Hi"}]}\n' * 2,
    },
    "md": {"written down": b"# Lists\n\n## User\n\nWhat is here?\n\n## Assistant\n\nOne file: a.txt\n"},
}
