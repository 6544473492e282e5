"""Conversion of a caller's messages: outputs are matched to their calls, files are checked, nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Sequence

from moot.convert._writer import read_arguments
from moot.convert.callers.asked import OUTPUT
from moot.convert.callers.fields import unfit
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message, Role
from moot.types.part import Part, text_part

EFFORTS = {"none": "none", "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "max", "max": "max"}
"""Reasoning effort in the callers' dialects → moot's."""

_NAME = re.compile(r"[a-zA-Z0-9_.:-]{1,128}")
_DATA = re.compile(r"data:[\w.+-]+/[\w.+*-]+(;[\w=.+-]+)*;base64,", re.ASCII)


class Drafts:
    """The messages read so far, oldest first."""

    def __init__(self, *, after: bool = False) -> None:
        self._after = after
        """The request continues an earlier answer, whose calls may be answered here."""
        self._system: list[str] = []
        self._drafts: list[tuple[Role, list[Part]]] = []
        self._calls: dict[str, Part] = {}

    @property
    def system(self) -> str:
        return "\n\n".join(self._system)

    def messages(self) -> tuple[Message, ...]:
        return tuple(Message("", role, tuple(parts)) for role, parts in self._drafts if parts)

    def instruct(self, text: str) -> None:
        """Add a system message: before all other messages it becomes the system prompt, otherwise it keeps its position."""
        if not text:
            return
        if self._drafts:
            self._drafts.append(("system", [text_part(text)]))
        else:
            self._system.append(text)

    def say(self, parts: Sequence[Part]) -> None:
        """Add a user message."""
        if parts:
            self._drafts.append(("user", list(parts)))

    def answer(self, parts: Sequence[Part] = (), *, join: bool = False) -> None:
        """Add an assistant message; with `join`, extend the last one if none of its calls has an output yet."""
        if not (join and self._drafts and self._drafts[-1][0] == "assistant" and not self._answered()):
            self._drafts.append(("assistant", []))
        self._drafts[-1][1].extend(parts)

    def call(self, id: str, name: str, arguments: Json, where: str) -> None:
        """Add a call to the last assistant message; `arguments` are an object or JSON text."""
        if not id:
            raise unfit(where, "the call has no id")
        part: Part = {"type": f"tool-{tool_name_of(name, where)}", "toolCallId": id, "state": "input-available"}
        part["input"] = _arguments(arguments)
        self._drafts[-1][1].append(part)
        self._calls[id] = part

    def output(self, id: str, output: Json, where: str, *, error: bool = False) -> None:
        """Add the output of a call."""
        call = self._calls.get(id)
        fields: JsonObject = {"errorText": _words(output)} if error else {"output": output}
        if call is not None:
            call |= {"state": "output-error" if error else "output-available", **fields}
        elif self._after:
            self.say([{"type": OUTPUT, "data": {"toolCallId": id, **fields}}])
        else:
            raise unfit(where, f"no call with the id {id!r} precedes this output")

    def _answered(self) -> bool:
        return any("output" in part or "errorText" in part for part in self._drafts[-1][1])


def tool_name_of(name: str, where: str) -> str:
    """Return the name. Raise UsageError if no model would accept it."""
    if _NAME.fullmatch(name) is None:
        raise unfit(where, f"{name[:80]!r} is not a valid tool name; use at most 128 letters, digits, _ and -")
    return name


def file_part(url: str, where: str, *, media_type: str = "", name: str = "", detail: str = "") -> Part:
    """Return a file as a part. Only `data:` and http(s) URLs are accepted: others would refer to this machine, not the caller's."""
    if url.startswith("data:"):
        if _DATA.match(url) is None:
            raise unfit(where, "expected data:MEDIA/TYPE;base64,…")
        media_type = media_type or url[5:].partition(";")[0]
    elif not url.startswith(("https://", "http://")):
        raise unfit(where, "expected a data: URL in base64, or an http(s) URL")
    part: Part = {"type": "file", "mediaType": media_type or "application/octet-stream", "url": url}
    if name:
        part["filename"] = name
    if detail:
        part["detail"] = detail
    return part


def _arguments(arguments: Json) -> Json:
    if not isinstance(arguments, str):
        return arguments if isinstance(arguments, dict) else {}
    try:
        return read_arguments(arguments)
    except ValueError:
        return arguments  # the model's output, unchanged


def _words(output: Json) -> str:
    if isinstance(output, str):
        return output
    value = output.get("value") if isinstance(output, dict) else None
    pieces = [piece for piece in value if isinstance(piece, dict)] if isinstance(value, list) else []
    return "\n".join(str(piece.get("text", "")) for piece in pieces if piece.get("type") == "text") or "failed"
