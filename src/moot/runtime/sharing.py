"""A conversation as others may see it: without secrets, homes, names and addresses, and with a list of what was left out."""

from __future__ import annotations

import base64
import binascii
import getpass
import os
import pwd
import socket
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

from moot.errors import Refused, UsageError
from moot.guard.secrets import HIDDEN
from moot.guard.sharing import KEEPABLE, KINDS, Finder, Kind, Place, is_secret_name, merged
from moot.plugins import FORMATS, Registry
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, Format
from moot.types.message import Message
from moot.types.part import Part, is_tool, tool_name
from moot.types.recording import Recorder

__all__ = ["LeftOut", "Shareable", "finder_here", "kinds_of", "refuse_whole", "shareable"]

_PICTURES = Registry("moot.pictures", {"bare": "moot.convert.scaling:bare"})

_VENDORS = ("providerMetadata", "callProviderMetadata", "resultProviderMetadata", "toolMetadata")
_FACTS = ("agent", "model", "provider", "finish_reason")
_STEP = ("step", "model", "finish_reason", "usage", "cost", "ms")
_MANY = 2_000
"""Texts in a row of which each beginning is looked at by itself."""
_AHEAD = 2_048
_TEXT = ("text/", "application/json", "application/xml", "application/yaml", "image/svg")
_WHO = {"user": "you", "assistant": "assistant", "system": "instructions"}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """So many of a kind at one place; never the thing itself."""

    kind: Kind
    where: str
    count: int


@dataclass(frozen=True, slots=True)
class Shareable:
    """What may be shared, and what is not in it any more."""

    exported: ExportedConversation
    left_out: tuple[LeftOut, ...]


def finder_here(secrets: Collection[str], keep: Collection[Kind] = ()) -> Finder:
    """Knows this machine: its person's home, names and host."""
    names = [getpass.getuser(), socket.gethostname().partition(".")[0]]
    with suppress(KeyError):  # a user without an entry has no further name
        names.append(pwd.getpwuid(os.getuid()).pw_gecos.partition(",")[0])
    return Finder(secrets=secrets, homes=[str(Path.home())], names=names, keep=keep)


def kinds_of(text: str) -> frozenset[Kind]:
    """`emails,paths` as kinds. Raises UsageError for what can't be kept."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    known: list[Kind] = [kind for kind in KINDS if kind in KEEPABLE]
    if unknown := [word for word in words if word not in set[str](known)]:
        raise UsageError(f"{unknown[0]!r} can't be kept in what is shared", fix=f"one or more of {', '.join(known)}, joined by commas")
    return frozenset[Kind](kind for kind in known if kind in words)


def refuse_whole(format: Format) -> None:
    """Raises UsageError for a format that keeps every byte: nothing can be left out of it."""
    if isinstance(format, Recorder):
        others = ", ".join(name for name in FORMATS.names() if name != format.name)
        said = f"a {format.name} keeps every byte that came, so nothing can be left out of it"
        raise UsageError(said, fix=f"share it as html, md or json (known: {others}), or leave --share out")


def shareable(exported: ExportedConversation, finder: Finder) -> Shareable:
    """The conversation as it may be shared. Takes as long as it is large: for a worker thread."""
    for text in _texts(exported):
        finder.learn(text)
    work = _Work(finder)
    made = work.conversation(exported, "")
    order = {kind: number for number, kind in enumerate(KINDS)}
    told = sorted(work.tally.items(), key=lambda item: order[item[0][0]])
    return Shareable(made, tuple(LeftOut(kind, where, count) for (kind, where), count in told))


class _Work:
    """One conversation on its way out."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self.tally = Counter[tuple[Kind, str]]()
        self._bare: Callable[[bytes], tuple[bytes, str]] = _PICTURES.load("bare")

    def conversation(self, exported: ExportedConversation, prefix: str) -> ExportedConversation:
        old = exported.conversation
        if old.directory:
            self.tally["paths", f"{prefix}folder"] += 1
        made = Conversation(
            old.id,
            title=self.text(old.title, f"{prefix}title"),
            title_source=old.title_source,
            agent=self.text(old.agent, f"{prefix}agent"),
            agent_type=old.agent_type,
            model=self.text(old.model, f"{prefix}model"),
            parent=old.parent,
            parent_tool_call=None if old.parent_tool_call is None else self.text(old.parent_tool_call, f"{prefix}tool call"),
            head=old.head,
            usage=old.usage,
            cost=old.cost,
            created_at=old.created_at,
            updated_at=old.updated_at,
        )
        shown = tuple(self._message(message, f"{prefix}message {number}") for number, message in enumerate(exported.messages, 1))
        others = tuple(self._message(message, f"{prefix}message {number} of others") for number, message in enumerate(exported.others, 1))
        children = tuple(self.conversation(child, f"{prefix}sub-agent {number}, ") for number, child in enumerate(exported.children, 1))
        return ExportedConversation(made, shown, others, children)

    def text(self, text: str, where: str) -> str:
        return self._cut(text, self._finder.places(text), where)

    def _cut(self, text: str, places: Sequence[Place], where: str) -> str:
        pieces: list[str] = []
        at = 0
        for place in places:
            self.tally[place.kind, where] += bool(place.instead)
            pieces += (text[at : place.begin], place.instead)
            at = place.end
        return "".join([*pieces, text[at:]])

    def _message(self, message: Message, where: str) -> Message:
        where = f"{where} ({_WHO[message.role]})"
        parts = list(message.parts)
        for kind in ("text", "reasoning"):
            at = [number for number, part in enumerate(parts) if part.get("type") == kind and isinstance(part.get("text"), str)]
            said = self._together([str(parts[number]["text"]) for number in at], f"{where}, {kind}")
            for number, text in zip(at, said, strict=True):
                parts[number] = {**parts[number], "text": text}
        return Message(
            message.id,
            message.role,
            tuple(self._part(part, where) for part in parts),
            self._metadata(message.metadata, where),
            parent=message.parent,
            status=message.status,
            created_at=message.created_at,
        )

    def _metadata(self, metadata: JsonObject, where: str) -> JsonObject:
        """What a page says of an answer; what else vendors and programs note there stays here."""
        kept: JsonObject = {name: metadata[name] for name in _FACTS if name in metadata}
        steps = metadata.get("steps")
        if isinstance(steps, list):
            kept["steps"] = [{name: step[name] for name in _STEP if name in step} for step in steps if isinstance(step, dict)]
        made = self.value(kept, f"{where}, facts")
        return made if isinstance(made, dict) else {}

    def _part(self, part: Part, where: str) -> Part:
        kind = str(part.get("type", ""))
        if any(name in part for name in _VENDORS):
            self.tally["vendor data", where] += 1
            part = {name: value for name, value in part.items() if name not in _VENDORS}
        if kind in ("file", "reasoning-file"):
            return self._file(part, where)
        if kind in ("text", "reasoning"):
            rest = self.value({name: value for name, value in part.items() if name != "text"}, where)
            return {**rest, "text": part.get("text")} if isinstance(rest, dict) else part
        if is_tool(part):
            where = f"{where}, {self.text(tool_name(part), f'{where}, name of a tool')}"
        made = self.value(part, where)
        return made if isinstance(made, dict) else part

    def value(self, value: Json, where: str, *, secret: bool = False) -> Json:
        """Any value with every text in it."""
        if isinstance(value, str):
            return self._hidden(value, where) if secret else self._string(value, where)
        if isinstance(value, list):
            return self._list(value, where, secret=secret)
        if isinstance(value, dict):
            return self._object(value, where)
        return value

    def _string(self, value: str, where: str) -> str:
        if value.startswith("data:") and ";base64," in value[:200]:
            url = self._url(value, where)
            return "[file]" if url is None else url
        return self.text(value, where)

    def _hidden(self, value: str, where: str) -> str:
        if not value:
            return value
        self.tally["secrets", where] += 1
        return HIDDEN

    def _list(self, value: list[Json], where: str, *, secret: bool) -> Json:
        """Texts that follow each other are looked at together too: lines of a key, pieces of an answer."""
        texts = [text for item in value if isinstance(text := item.get("text") if isinstance(item, dict) else item, str)]
        if secret or len(texts) < 2:
            return [self.value(item, where, secret=secret) for item in value]
        said = iter(self._together(texts, where))
        made: list[Json] = []
        for item in value:
            if isinstance(item, str):
                made.append(next(said))
            elif isinstance(item, dict) and isinstance(item.get("text"), str):
                rest = self._object({name: inner for name, inner in item.items() if name != "text"}, where)
                made.append({**rest, "text": next(said)})
            else:
                made.append(self.value(item, where))
        return made

    def _object(self, value: JsonObject, where: str) -> JsonObject:
        data, kind = value.get("data"), next((value[name] for name in ("mimeType", "mediaType", "media_type") if name in value), None)
        if isinstance(data, str) and isinstance(kind, str):
            url = self._url(f"data:{kind};base64,{data}", where)
            head, _, encoded = (url or "").partition(",")
            value = {**value, "data": encoded}
            for name in ("mimeType", "mediaType", "media_type"):
                if name in value and url is not None:
                    value[name] = head.removeprefix("data:").removesuffix(";base64")
        named = value.get("name", value.get("key"))
        made: JsonObject = {}
        for name, inner in value.items():
            if name == "data" and isinstance(data, str) and isinstance(kind, str):
                made[name] = inner  # looked at already
                continue
            hidden = is_secret_name(name) or (name == "value" and isinstance(named, str) and is_secret_name(named))
            made[self.text(name, where)] = self.value(inner, where, secret=hidden)
        return made

    def _together(self, texts: Sequence[str], where: str) -> list[str]:
        """Texts that follow each other, each without what is to be left out, also where that goes over a border."""
        joined = "".join(texts)
        borders = [0, *accumulate(len(text) for text in texts)]
        found = [*self._finder.places(joined), *self._begun(joined, borders)]
        for text, border in zip(texts, borders, strict=False):
            found += (replace(place, begin=place.begin + border, end=place.end + border) for place in self._finder.places(text))
        inside: list[list[Place]] = [[] for _ in texts]
        for place in merged(found):
            number = bisect_right(borders, place.begin) - 1
            instead = place.instead
            while number < len(texts) and borders[number] < place.end:
                begin, end = max(place.begin, borders[number]) - borders[number], min(place.end, borders[number + 1]) - borders[number]
                inside[number].append(Place(begin, end, place.kind, instead))
                instead = ""
                number += 1
        return [self._cut(text, places, where) for text, places in zip(texts, inside, strict=True)]

    def _begun(self, joined: str, borders: Sequence[int]) -> Iterator[Place]:
        """What begins right at a border, where the text before it ends in the middle of a word."""
        for border in borders[1:-1] if len(borders) < _MANY else ():
            if joined[border - 1 : border].isalnum():
                for place in self._finder.places(joined[border : border + _AHEAD]):
                    yield Place(border + place.begin, border + place.end, place.kind, place.instead)

    def _file(self, part: Part, where: str) -> Part:
        url = part.get("url")
        about = self.value({name: value for name, value in part.items() if name != "url"}, where)
        kept: Part = about if isinstance(about, dict) else {}
        made = self._url(url, where) if isinstance(url, str) else None
        if made is None:
            return {"type": "text", "text": f"[file: {kept.get('filename') or kept.get('mediaType') or 'without a name'}]", "state": "done"}
        if made.startswith("data:"):
            kept["mediaType"] = made[5:].partition(";")[0]
        return {**kept, "url": made}

    def _url(self, url: str, where: str) -> str | None:
        """An address as it may be shared; None where what it holds has to stay here."""
        if not url.startswith("data:"):
            return self.text(url, where) if url.startswith(("http://", "https://")) else None
        head, _, encoded = url.partition(",")
        kind = head[5:].partition(";")[0].lower()
        try:
            data = base64.b64decode(encoded, validate=True) if head.endswith(";base64") else None
            if data is not None and kind.startswith(_TEXT):
                return f"data:{kind};base64,{base64.b64encode(self.text(data.decode(), where).encode()).decode()}"
            if data is not None and kind.startswith("image/"):
                data, kind = self._bare(data)
                self.tally["pictures", where] += 1
                return f"data:{kind};base64,{base64.b64encode(data).decode()}"
        except (binascii.Error, UnicodeDecodeError, Refused):
            pass  # what can't be looked into stays here, as every other file
        if "files" in self._finder.keep:
            return url
        self.tally["files", where] += 1
        return None


def _texts(exported: ExportedConversation) -> Iterator[str]:
    """Every text in it, to learn from."""
    yield exported.conversation.title
    yield exported.conversation.directory
    stack: list[Json] = [list[Json](message.parts) for message in (*exported.messages, *exported.others)]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value if len(value) < 1_000_000 or not value.startswith("data:") else ""
        elif isinstance(value, dict):
            stack += [*value, *value.values()]
        elif isinstance(value, list):
            stack += value
    for child in exported.children:
        yield from _texts(child)
