"""Divide a message into its model calls, for formats that store one record for each model call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from moot.formats.kit.fields import obj
from moot.types.canonical import Json, JsonObject, dumps, loads
from moot.types.format import Fidelity
from moot.types.message import Message, Part, is_settled, is_tool, note_of, tool_name

_SILENT = frozenset({"step-start", "source-url", "source-document"})


@dataclass(slots=True)
class Step:
    """One model call with the outputs of its tool calls."""

    reasoning: list[Part] = field(default_factory=list[Part])
    text: str = ""
    calls: list[Part] = field(default_factory=list[Part])
    files: list[Part] = field(default_factory=list[Part])
    others: list[Part] = field(default_factory=list[Part])
    """Parts of all other types, such as moot's data parts."""

    @property
    def thought(self) -> str:
        """The text of the reasoning."""
        return "\n\n".join(str(part["text"]) for part in self.reasoning if part.get("text"))

    @property
    def is_empty(self) -> bool:
        return not (self.reasoning or self.text or self.calls or self.files or self.others)


def model_calls(message: Message) -> list[Step]:
    """Divide a message into model calls, at least one.
    Text or reasoning after a tool output starts a new call, even without a `step-start`.
    """
    steps = [Step()]
    for part in message.parts:
        step = steps[-1]
        kind = part.get("type")
        spoken = kind in ("text", "reasoning")
        if not step.is_empty and (kind == "step-start" or (spoken and step.calls and is_settled(step.calls[-1]))):
            steps.append(step := Step())
        if kind == "text":
            step.text += str(part.get("text", ""))
        elif kind == "reasoning":
            step.reasoning.append(part)
        elif is_tool(part):
            step.calls.append(part)
        elif kind in ("file", "reasoning-file"):
            step.files.append(part)
        elif kind not in _SILENT and not note_of(part):
            step.others.append(part)
    return steps if len(steps) == 1 or not steps[-1].is_empty else steps[:-1]


def records_of(
    messages: Iterable[Message], content: Callable[[tuple[Part, ...]], Json], step: Callable[[Step, bool], Iterator[JsonObject]]
) -> Iterator[JsonObject]:
    """Yield messages in the format of a vendor's API.

    `content` converts the parts of a prompt. `step` converts a model call;
    its second argument is True if the message contains only one call.
    """
    for message in messages:
        if message.role != "assistant":
            yield {"role": message.role, "content": content(message.parts)}
            continue
        steps = model_calls(message)
        for one in steps:
            yield from step(one, len(steps) == 1)


def counts_of(step: JsonObject) -> dict[str, int]:
    """Return the token counts of a recorded model call."""
    return {name: count for name, count in obj(step, "usage").items() if type(count) is int}


def function_call(call: Part) -> JsonObject:
    """Return a tool call in the format of OpenAI's API."""
    value = call.get("input")
    arguments = value if isinstance(value, str) else dumps(value).decode()
    return {"id": str(call.get("toolCallId", "")), "type": "function", "function": {"name": tool_name(call), "arguments": arguments}}


_NAME = re.compile(r"[^A-Za-z0-9_-]")


def plain_call(call: Part) -> tuple[str, str, JsonObject]:
    """Return the id, name and arguments of a tool call. Characters that vendors reject in names are replaced."""
    name, arguments = _NAME.sub("_", tool_name(call)), call.get("input")
    name = name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"
    given: JsonObject = arguments if isinstance(arguments, dict) else {} if arguments is None else {"input": arguments}
    return str(call.get("toolCallId") or "call"), name[:64], given


def answer_text(call: Part) -> tuple[str, bool]:
    """Return the output of a call as text, and whether it is an error.
    If there is no output, return a text anyway, because APIs require one.
    """
    return output_text(call) if is_settled(call) else "The call has no output.", call.get("state") != "output-available"


def output_text(call: Part) -> str:
    """Return the output of a call as the text that is sent to a model."""
    if call.get("state") == "output-error":
        return str(call.get("errorText", ""))
    if call.get("state") == "output-denied":
        return str(obj(call, "approval").get("reason") or "denied")
    output = call.get("output")
    return output if isinstance(output, str) else dumps(output).decode()


def pretty_bytes(value: Json) -> bytes:
    """Return the value as JSON, indented by two spaces."""
    return json.dumps(loads(dumps(value)), indent=2, ensure_ascii=False).encode()


def approximate(fidelity: Fidelity, word: str, count: int) -> Fidelity:
    """Return the fidelity with up to `count` of the kept items with the name `word` counted as approximated."""
    count = min(count, fidelity.kept.get(word, 0))
    if not count:
        return fidelity
    kept = {name: number for name, number in {**fidelity.kept, word: fidelity.kept[word] - count}.items() if number}
    return replace(fidelity, kept=kept, approximated={**fidelity.approximated, word: fidelity.approximated.get(word, 0) + count})
