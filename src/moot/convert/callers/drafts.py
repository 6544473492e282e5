"""A caller's messages on their way to ours: outputs find the calls that they answer, files are looked at, nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Sequence

from moot.convert._writer import read_arguments
from moot.convert.callers.asked import OUTPUT
from moot.convert.callers.fields import unfit
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message, Role
from moot.types.part import Part, text_part

__all__ = ["EFFORTS", "Drafts", "file_part", "tool_name_of"]

EFFORTS = {"none": "none", "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "max", "max": "max"}
"""A foreign word for how hard to think, and ours."""

_NAME = re.compile(r"[a-zA-Z0-9_.:-]{1,128}")
_DATA = re.compile(r"data:[\w.+-]+/[\w.+*-]+(;[\w=.+-]+)*;base64,", re.ASCII)


class Drafts:
    """Messages as they are read, oldest first."""

    def __init__(self, *, after: bool = False) -> None:
        self._after = after
        """An earlier answer, which is not repeated, may have made calls that are answered here."""
        self._system: list[str] = []
        self._drafts: list[tuple[Role, list[Part]]] = []
        self._calls: dict[str, Part] = {}

    @property
    def system(self) -> str:
        return "\n\n".join(self._system)

    def messages(self) -> tuple[Message, ...]:
        return tuple(Message("", role, tuple(parts)) for role, parts in self._drafts if parts)

    def instruct(self, text: str) -> None:
        """What a system message says: what stands before everything else is the system prompt, the rest keeps its place."""
        if not text:
            return
        if self._drafts:
            self._drafts.append(("system", [text_part(text)]))
        else:
            self._system.append(text)

    def say(self, parts: Sequence[Part]) -> None:
        """A user's message."""
        if parts:
            self._drafts.append(("user", list(parts)))

    def answer(self, parts: Sequence[Part] = (), *, join: bool = False) -> None:
        """An assistant's message; with `join` the last one goes on, when it is the last and none of its calls is answered yet."""
        if not (join and self._drafts and self._drafts[-1][0] == "assistant" and not self._answered()):
            self._drafts.append(("assistant", []))
        self._drafts[-1][1].extend(parts)

    def call(self, id: str, name: str, arguments: Json, where: str) -> None:
        """A call that the last assistant's message makes; `arguments` as an object, or as the text of one."""
        if not id:
            raise unfit(where, "the call has no id")
        part: Part = {"type": f"tool-{tool_name_of(name, where)}", "toolCallId": id, "state": "input-available"}
        part["input"] = _arguments(arguments)
        self._drafts[-1][1].append(part)
        self._calls[id] = part

    def output(self, id: str, output: Json, where: str, *, error: bool = False) -> None:
        """What came of a call."""
        call = self._calls.get(id)
        fields: JsonObject = {"errorText": _words(output)} if error else {"output": output}
        if call is not None:
            call |= {"state": "output-error" if error else "output-available", **fields}
        elif self._after:
            self.say([{"type": OUTPUT, "data": {"toolCallId": id, **fields}}])
        else:
            raise unfit(where, f"no call with the id {id!r} stands before its output")

    def _answered(self) -> bool:
        return any("output" in part or "errorText" in part for part in self._drafts[-1][1])


def tool_name_of(name: str, where: str) -> str:
    """The name of a tool as it was given. Raises UsageError for one that no model takes."""
    if _NAME.fullmatch(name) is None:
        raise unfit(where, f"{name[:80]!r} is no name for a tool: letters, digits, _ and - alone, at most 128")
    return name


def file_part(url: str, where: str, *, media_type: str = "", name: str = "", detail: str = "") -> Part:
    """A file as a part. Only `data:` and http(s) addresses are taken: any other would mean something here and not to the caller."""
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
        return arguments  # what the model wrote, as it wrote it


def _words(output: Json) -> str:
    if isinstance(output, str):
        return output
    value = output.get("value") if isinstance(output, dict) else None
    pieces = [piece for piece in value if isinstance(piece, dict)] if isinstance(value, list) else []
    return "\n".join(str(piece.get("text", "")) for piece in pieces if piece.get("type") == "text") or "failed"
