"""Redact conversations for sharing, and manage shared pages."""

from __future__ import annotations

import base64
import binascii
import getpass
import os
import pwd
import socket
from bisect import bisect_right
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

import anyio.to_thread

from moot.errors import Refused, UsageError
from moot.features.exports import gather
from moot.guard.private_data import KEEPABLE, KINDS, Finder, Kind, Place, is_secret_name, merge_places
from moot.guard.secrets import HIDDEN
from moot.guard.tokens import digest, new_code
from moot.plugins import FORMATS, Registry
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import nested
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, ExportFile, Format
from moot.types.ids import new_id
from moot.types.imports import Recorder, Recording
from moot.types.message import Message, Part, is_tool, tool_name
from moot.types.part_tree import linked, parent_call
from moot.types.share import NewShare, Share, SharedPage
from moot.types.store import OwnerStore

_PICTURES = Registry("moot.pictures", {"bare": "moot.convert.files.copies:strip_metadata"})

_VENDORS = ("providerMetadata", "callProviderMetadata", "resultProviderMetadata", "toolMetadata")
_FACTS = ("agent", "model", "provider", "finish_reason")
_STEP = ("step", "model", "finish_reason", "usage", "cost", "ms")
_MANY = 2_000  # maximum number of adjacent texts whose beginnings are checked individually
_AHEAD = 2_048
_TEXT = ("text/", "application/json", "application/xml", "application/yaml", "image/svg")
_WHO = {"user": "you", "assistant": "assistant", "system": "instructions"}


@dataclass(frozen=True, slots=True)
class Removal:
    """The number of items of one kind that were removed in one place. The items themselves are not included."""

    kind: Kind
    where: str
    count: int


@dataclass(frozen=True, slots=True)
class RedactedConversation:
    """A redacted conversation, and the data that was removed from it."""

    exported: ExportedConversation
    left_out: tuple[Removal, ...]


def finder_here(secrets: Collection[str], keep: Collection[Kind] = ()) -> Finder:
    """Return a finder that also finds the user's home folder and names, and the host name of this machine."""
    names = [getpass.getuser(), socket.gethostname().partition(".")[0]]
    with suppress(KeyError):  # a user without a passwd entry has no full name
        names.append(pwd.getpwuid(os.getuid()).pw_gecos.partition(",")[0])
    return Finder(secrets=secrets, homes=[str(Path.home())], names=names, keep=keep)


def kinds_of(text: str) -> frozenset[Kind]:
    """Parse the kinds of data to keep, such as `emails,paths`. Raise UsageError for kinds that can't be kept."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    known: list[Kind] = [kind for kind in KINDS if kind in KEEPABLE]
    if unknown := [word for word in words if word not in set[str](known)]:
        raise UsageError(f"{unknown[0]!r} can't be kept when sharing.", fix=f"Use one or more of {', '.join(known)}, separated by commas.")
    return frozenset[Kind](kind for kind in known if kind in words)


def refuse_whole(format: Format) -> None:
    """Raise UsageError for a format that keeps every byte, because nothing can be removed from it."""
    if isinstance(format, Recorder):
        others = ", ".join(name for name in FORMATS.names() if name != format.name)
        reason = f"The format {format.name} keeps all raw data, so nothing can be redacted."
        raise UsageError(reason, fix=f"Use html, md or json (known: {others}), or omit --share.")


def redact_conversation(exported: ExportedConversation, finder: Finder) -> RedactedConversation:
    """Return the redacted conversation. Call this in a worker thread, because it takes time proportional to the conversation's size."""
    for text in _texts(exported):
        finder.learn(text)
    work = _Redaction(finder)
    redacted = work.conversation(exported, "")
    order = {kind: number for number, kind in enumerate(KINDS)}
    counts = sorted(work.tally.items(), key=lambda item: order[item[0][0]])
    return RedactedConversation(redacted, tuple(Removal(kind, where, count) for (kind, where), count in counts))


class _Redaction:
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
        parts = linked(message.parts)
        for kind in ("text", "reasoning"):
            at = [number for number, part in enumerate(parts) if part.get("type") == kind and isinstance(part.get("text"), str)]
            redacted = self._together([str(parts[number]["text"]) for number in at], f"{where}, {kind}")
            for number, text in zip(at, redacted, strict=True):
                parts[number] = {**parts[number], "text": text}
        kept: JsonObject = {name: message.metadata[name] for name in _FACTS if name in message.metadata}
        steps = message.metadata.get("steps")
        if isinstance(steps, list):
            kept["steps"] = [{name: step[name] for name in _STEP if name in step} for step in steps if isinstance(step, dict)]
        made = self.value(kept, f"{where}, facts")
        return Message(
            message.id,
            message.role,
            tuple(self._part(part, where) for part in parts),
            made if isinstance(made, dict) else {},
            parent=message.parent,
            status=message.status,
            created_at=message.created_at,
        )

    def _part(self, part: Part, where: str) -> Part:
        kind = str(part.get("type", ""))
        if any(name in part for name in _VENDORS):
            self.tally["vendor data", where] += 1
            parent = parent_call(part) if is_tool(part) else ""
            part = {name: value for name, value in part.items() if name not in _VENDORS}
            part |= {"toolMetadata": nested({}, parent)} if parent else {}
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
        """Redact all texts in a value."""
        if isinstance(value, str) and secret and value:
            self.tally["secrets", where] += 1
            return HIDDEN
        if isinstance(value, str):
            if not value.startswith("data:") or ";base64," not in value[:200]:
                return self.text(value, where)
            url = self._url(value, where)
            return "[file]" if url is None else url
        if isinstance(value, list):
            return self._list(value, where, secret=secret)
        if isinstance(value, dict):
            return self._object(value, where)
        return value

    def _list(self, value: list[Json], where: str, *, secret: bool) -> Json:
        """Redact a list. Adjacent texts, such as lines of a key or pieces of an answer, are also redacted together."""
        texts = [text for item in value if isinstance(text := item.get("text") if isinstance(item, dict) else item, str)]
        if secret or len(texts) < 2:
            return [self.value(item, where, secret=secret) for item in value]
        redacted = iter(self._together(texts, where))
        made: list[Json] = []
        for item in value:
            if isinstance(item, str):
                made.append(next(redacted))
            elif isinstance(item, dict) and isinstance(item.get("text"), str):
                rest = self._object({name: inner for name, inner in item.items() if name != "text"}, where)
                made.append({**rest, "text": next(redacted)})
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
                made[name] = inner  # already redacted
                continue
            hidden = is_secret_name(name) or (name == "value" and isinstance(named, str) and is_secret_name(named))
            made[self.text(name, where)] = self.value(inner, where, secret=hidden)
        return made

    def _together(self, texts: Sequence[str], where: str) -> list[str]:
        """Redact adjacent texts, including matches that span several of them."""
        joined = "".join(texts)
        borders = [0, *accumulate(len(text) for text in texts)]
        found = [*self._finder.places(joined), *self._at_borders(joined, borders)]
        for text, border in zip(texts, borders, strict=False):
            found += (replace(place, begin=place.begin + border, end=place.end + border) for place in self._finder.places(text))
        inside: list[list[Place]] = [[] for _ in texts]
        for place in merge_places(found):
            number = bisect_right(borders, place.begin) - 1
            instead = place.instead
            while number < len(texts) and borders[number] < place.end:
                begin, end = max(place.begin, borders[number]) - borders[number], min(place.end, borders[number + 1]) - borders[number]
                inside[number].append(Place(begin, end, place.kind, instead))
                instead = ""
                number += 1
        return [self._cut(text, places, where) for text, places in zip(texts, inside, strict=True)]

    def _at_borders(self, joined: str, borders: Sequence[int]) -> Iterator[Place]:
        """Yield matches that start exactly at a border between two texts, if the first text ends in the middle of a word."""
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
        """Return the redacted URL, or None if its content must be removed."""
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
            pass  # undecodable content is removed, like other files
        if "files" in self._finder.keep:
            return url
        self.tally["files", where] += 1
        return None


def _texts(exported: ExportedConversation) -> Iterator[str]:
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


DAY = 86_400
LONGEST = 366 * DAY
"""Maximum lifetime of a shared page, in seconds."""

_PAGES = Registry("moot.pages", {"policy": "moot.formats.html.page:policy"})


@dataclass(frozen=True, slots=True)
class Draft:
    """The preview of a page."""

    conversation: Conversation
    title: str
    page: bytes
    left_out: tuple[Removal, ...]

    @property
    def digest(self) -> str:
        """Hash of the page, which makes it possible to share exactly what was previewed."""
        return sha256(self.page).hexdigest()


@dataclass(frozen=True, slots=True)
class RenderOrder:
    """A request to write a conversation to a file."""

    format: str
    content: ExportedConversation | Recording
    finder: Finder | None = None
    """The finder for the data to redact, or None to redact nothing."""


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """A written file, the title of its conversation, and the data that was removed."""

    written: ExportFile
    title: str
    left_out: tuple[Removal, ...] = ()


def render(order: RenderOrder) -> RenderedFile:
    """Write the file. This takes time proportional to the conversation's size. Raise UsageError for a read-only format."""
    format: Format = FORMATS.make(order.format)
    content = order.content
    if isinstance(content, Recording):
        assert isinstance(format, Recorder)
        return RenderedFile(format.record(content), content.conversation.title)
    if order.finder is None:
        return RenderedFile(format.write(content), content.conversation.title)
    shared = redact_conversation(content, order.finder)
    return RenderedFile(format.write(shared.exported), shared.exported.conversation.title, shared.left_out)


async def render_in_thread(order: RenderOrder) -> RenderedFile:
    """Write the file in a thread, without limits on time and size."""
    return await anyio.to_thread.run_sync(render, order)


async def preview_page(
    holdings: OwnerStore,
    conversation: Conversation,
    finder: Finder,
    render: Callable[[RenderOrder], Awaitable[RenderedFile]] = render_in_thread,
) -> Draft:
    """Return a redacted preview of the current branch, including its sub-agents."""
    format: Format = FORMATS.make("html")
    whole = await gather(holdings, conversation, format, branches=False)
    if not whole.messages:
        raise UsageError(f"The conversation {conversation.id!r} has no messages to share.", fix="Send a message first.")
    file = await render(RenderOrder("html", whole, finder))
    return Draft(conversation, file.title, file.written.data, file.left_out)


def page_policy() -> str:
    """Return the Content-Security-Policy of a conversation as an HTML page."""
    policy: Callable[[], str] = _PAGES.load("policy")
    return policy()


async def share_page(holdings: OwnerStore, draft: Draft, *, now: int, seconds: float, id: str = "") -> tuple[Share, str]:
    """Share a page for a number of seconds. Return the share and the secret part of its link, which is shown only once. `now` is in ms.

    If a share with this id already exists, its link is replaced. Raise UsageError if the time is too long.
    """
    if not 0 < seconds <= LONGEST:
        raise UsageError(f"A shared page must expire within {LONGEST // DAY} days.", fix="Use a duration such as 12h, 7d or 30d.")
    secret = new_code()
    share = Share(
        id or new_id(), draft.conversation.id, draft.title, now + round(seconds * 1000), tuple(removal_json(one) for one in draft.left_out)
    )
    page = SharedPage(draft.page, f"{page_policy()}; frame-ancestors 'none'; sandbox allow-popups allow-popups-to-escape-sandbox")
    return await holdings.shares.add(NewShare(share, page, digest(secret))), secret


def removal_json(one: Removal) -> Json:
    """Return the entry in the form in which it is stored and shown in JSON output."""
    return {"kind": one.kind, "where": one.where, "count": one.count}
