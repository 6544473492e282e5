"""References in a prompt: attach the content that its text refers to with `@`. A table lists the kinds of references."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.to_thread

from moot.agents.known import default_agent
from moot.config.settings import Settings
from moot.convert.files.attachments import REFERENCED, TYPED, local_file, with_facts
from moot.errors import Refused, UsageError
from moot.features.prompts.attachments import Attached, media_of, mentioned, paths_of
from moot.plugins.registry import attribute, hint
from moot.runtime.approvals.policy import decide
from moot.runtime.runtime import Runtime
from moot.runtime.setup import find_agent, load_project_agents, mode_of, servers_of
from moot.tools.catalogue import is_tool, provided_tool, tools_for, unknown_tool
from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject, loads_exact, loads_object
from moot.types.conversation import Conversation
from moot.types.hooks import HOOKS
from moot.types.macro import SIGN, definition, definitions, macros_in, without_code
from moot.types.message import Message, text_of, text_part
from moot.types.run import Prompt, References

if TYPE_CHECKING:
    from moot.guard.urls import Page

MAX_REFERENCES = 100
"""Maximum number of attachments and tool calls that a prompt can refer to."""
MAX_NAMES = 2_000
"""Maximum number of names after `@` to look up. Further names, for example in a pasted log, are sent as plain text."""
MAX_PAGES = 10
"""Maximum number of different web pages in a prompt."""
MAX_URL = 8_000
"""Maximum length of a web page's URL, in characters."""
MAX_PAGE = 200_000
"""Maximum number of characters of a web page to attach."""
RESOURCE_SECONDS = 60.0
"""Time limit for reading one resource of an MCP server, including the start of the server."""
MAX_MESSAGES = 1_000
"""Number of most recent messages in the conversation whose macro definitions are used."""
MAX_NESTING = 10
"""Maximum number of levels of nested macros."""
MAX_EXPANDED = 1_000_000
"""Maximum number of characters of a prompt after macros have been replaced."""

_FETCH, _TEXT = "moot.tools.builtin.fetch_url:fetch_page", "moot.tools.builtin.fetch_url:page_text"
"""Paths of functions, loaded on first use, because most prompts don't refer to a web page."""

_CLOSING = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True)
class Place:
    """The conversation for which a prompt is being written."""

    runtime: Runtime | None
    """None if the prompt is sent to a server: it can then refer to files, web pages and macros of this machine."""
    directory: str = ""
    """Working directory. If this is empty, the prompt can't refer to files."""
    conversation: Conversation | None = None
    """None if no message has been sent yet."""
    agent: str = ""
    """Name of the agent that the prompt is sent to; empty = the conversation's agent."""
    attended: bool = True
    """True if the person who wrote the prompt is also sending it. This counts as approval if a rule says `ask`."""
    mode: str = ""
    """Mode of the prompt; empty = the conversation's mode."""
    allowed_uris: tuple[str, ...] = ()
    """Folders that a new conversation may use, see `Conversation.allowed_uris`."""
    own: Settings | None = None
    """The settings of this machine if there is no runtime."""

    @property
    def settings(self) -> Settings:
        settings = self.own if self.runtime is None else self.runtime.settings
        assert settings is not None
        return settings


class Kind(NamedTuple):
    """A kind of reference."""

    name: str
    find: Callable[[str, int], tuple[str, int] | None]
    """Return the target of the reference whose `@` ends at this position in the text,
    and the end of the reference, or None if there is none.

    If several references have the same target, it is attached only once.
    """
    attach: Callable[[str, Place], Awaitable[References]]
    """Return the content of a target. Raise MootError if it can't be attached."""


async def attach_references(prompt: Prompt, place: Place, *, literal: str = "") -> tuple[Prompt, tuple[str, ...]]:
    """Return a prompt with the content that its last text refers to, and notes for the user. Earlier texts are not changed.

    `literal`, such as standard input, is appended to the text unchanged. Raise the same errors as `read_references`.
    """
    at = max((at for at, part in enumerate(prompt.parts) if part.get("type") == "text"), default=len(prompt.parts))
    part = prompt.parts[at] if at < len(prompt.parts) else text_part("")
    typed = text_of((part,))
    found = await read_references(typed, place)
    text, own = ("\n\n".join(filter(None, (each, literal))) for each in (found.text, typed))
    sent = {**part, "text": text} if text == own else with_facts({**part, "text": text}, {TYPED: own})
    on_busy, notes = prompt.on_busy, found.notes
    if found.calls and on_busy == "steer":
        on_busy, notes = "queue", (*notes, "Queued, because its tool calls can't run during the current answer.")
    settings: JsonObject = {**prompt.settings, HOOKS: {"before_run": list[Json](found.calls)}} if found.calls else prompt.settings
    parts = (*prompt.parts[:at], *found.parts, *((sent,) if text else ()), *prompt.parts[at + 1 :])
    return replace(prompt, parts=parts, settings=settings, on_busy=on_busy), notes


async def read_references(text: str, place: Place) -> References:
    """Return the content that a prompt refers to, in the order of its text.

    References in Markdown code and names of missing files remain plain text.

    Macros are replaced before references are resolved, so their texts can contain references. Raise Refused for a reference that is not
    allowed or can't be fetched, and UsageError for content that can't be sent.
    """
    if "@" not in text:
        return References(text)
    text, notes = expand_macros(text, await _known_macros(text, place))
    found = list(dict.fromkeys(islice(_references(text), MAX_NAMES)))
    _check_number(sum(kind.name == "page" for kind, _ in found), MAX_PAGES, "web pages")
    result = References(text, notes=notes)
    for kind, target in found:
        more = await kind.attach(target, place)
        parts = (with_facts(part, {REFERENCED: True}) for part in more.parts)
        result = References(text, (*result.parts, *parts), (*result.notes, *more.notes), (*result.calls, *more.calls))
        _check_number(len(result.parts) + len(result.calls), MAX_REFERENCES, "references")
    return result


def _check_number(number: int, most: int, what: str) -> None:
    if number > most:
        raise UsageError(f"The prompt has more than {most} {what}.", fix="Put text that contains @ into a code block.")


def _references(text: str) -> Iterator[tuple[Kind, str]]:
    searched = without_code(text)
    at = 0
    while sign := SIGN.search(searched, at):
        at = sign.end()
        for kind in KINDS:
            if (found := kind.find(text, at)) is not None:
                target, at = found
                yield kind, target
                break


# ── macros ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _known_macros(text: str, place: Place) -> Mapping[str, str]:
    """Return the macros in the configuration and in the conversation's prompts. If a name has several definitions, the last one applies."""
    if "@{" not in text:
        return {}
    messages: Sequence[Message] = ()
    if place.conversation is not None and place.runtime is not None:
        conversations = place.runtime.store.of(place.conversation.owner).conversations
        messages = await conversations.branch(place.conversation.id, limit=MAX_MESSAGES)
    texts = (*(_typed(message) for message in messages if message.role == "user"), text)
    return {**place.settings.macros, **{name: value for each in texts for _, _, name, value in definitions(each)}}


def _typed(message: Message) -> str:
    """Return the text that a person typed, which is the last text. Outputs of shell commands and names in folders come before it."""
    return text_of([part for part in message.parts if part.get("type") == "text"][-1:])


def _find_definition(text: str, at: int) -> tuple[str, int] | None:
    found = definition(text, at)
    return (text[at : found[2]], found[2]) if found is not None else None


async def _nothing(target: str, place: Place) -> References:
    return References()


def expand_macros(text: str, macros: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return a prompt with each `@{NAME}` replaced by the text of the macro, and notes about unknown names, which are not replaced.

    The texts of macros can use other macros. Raise UsageError if they are nested too deeply, or the result is too long.
    """
    known: dict[str, str] = {}
    notes: dict[str, None] = {}

    def expanded(text: str, users: tuple[str, ...]) -> str:
        pieces: list[str] = []
        at = length = 0
        for start, end, name in macros_in(text):
            if name not in macros:
                notes[f"Macro {name!r} not found; sent as text.{hint(name, list(macros))}"] = None
                continue
            if name not in known:
                path = " → ".join((*users, name))
                if name in users:
                    raise UsageError(f"The macro {name!r} contains itself: {path}.", fix="Edit the `macros` section of the configuration.")
                if len(users) >= MAX_NESTING:
                    raise UsageError(f"Macros can be nested at most {MAX_NESTING} levels deep: {path}.")
                known[name] = expanded(macros[name], (*users, name))
            pieces += [text[at:start], known[name]]
            at, length = end, length + start - at + len(known[name])
            if length > MAX_EXPANDED:
                raise UsageError(f"With its macros expanded, the prompt has more than {MAX_EXPANDED:,} characters.")
        return "".join([*pieces, text[at:]])

    return expanded(text, ()), tuple(notes)


# ── files ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


_FILE = re.compile(r"""(?:"([^"\n]+)"|([^\s"'`@]+))""")


def _find_file(text: str, at: int) -> tuple[str, int] | None:
    match = _FILE.match(text, at)
    return (match[0], match.end()) if match is not None else None


async def _file(target: str, place: Place) -> References:
    name, quoted = target.strip('"'), target.startswith('"')
    if not place.directory:
        return References()
    paths = paths_of(place.directory, place.conversation.allowed_uris if place.conversation is not None else place.allowed_uris)
    judged: list[str] = []

    def check(tool: str, path: str) -> None:
        judged.append(path)
        _check_permission(tool, path, place)

    try:
        attached = await anyio.to_thread.run_sync(partial(mentioned, name, paths, check, quoted=quoted))
    except Refused as error:
        if quoted or judged:
            raise
        return References(notes=(f"{error.message} Sent as text.",))  # such as an import from '@/button' in pasted code
    if attached is not None:
        return _found(attached)
    is_path = not quoted and "(" not in name and ("/" in name or "." in name.strip("."))  # and not a decorator such as @app.get("/")
    return References(notes=(f"File {name!r} not found; sent as text.",) if is_path else ())


# ── resources of MCP servers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


_RESOURCE = re.compile(r"""(?:"[^":\s]+:[A-Za-z][A-Za-z0-9+.-]*:[^"\n]+"|[^:\s"'`@]+:[A-Za-z][A-Za-z0-9+.-]*:[^\s"'`@]+)""")


def _find_resource(text: str, at: int) -> tuple[str, int] | None:
    match = _RESOURCE.match(text, at)
    return (match[0], match.end()) if match is not None and len(match[0]) <= MAX_URL else None


async def _resource(target: str, place: Place) -> References:
    name, _, uri = target.strip('"').partition(":")
    server, connections = place.settings.mcp.get(name), place.runtime.mcp if place.runtime is not None else None
    if server is None or not server.enabled or connections is None:
        return await _file(target, place)
    if not target.startswith('"'):
        uri = _without_punctuation(uri)
    if not place.attended and server not in servers_of(place.settings, await _agent(place)):
        raise Refused(f"{name}:{uri} can't be attached: the agent doesn't use the MCP server {name!r}.")
    with anyio.move_on_after(RESOURCE_SECONDS):
        files = await connections.read(server, uri, place.directory)
        return References(parts=tuple(local_file(file.data, f"{name}:{file.name}", file.media_type) for file in files))
    raise UsageError(f"The MCP server {name!r} did not send {uri!r} within {RESOURCE_SECONDS:g} seconds.", fix=f"moot mcp test {name}")


def _found(attached: Attached) -> References:
    return References(parts=(attached.part,), notes=(attached.note,) if attached.note else ())


# ── web pages ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


_URL = re.compile(r"""(?:"(https?://[^"\s]+)"|(https?://[^\s"'`<>]+))""", re.IGNORECASE)


def _find_page(text: str, at: int) -> tuple[str, int] | None:
    match = _URL.match(text, at)
    if match is None:
        return None
    if len(match[0]) > MAX_URL:
        raise UsageError(f"The URL {match[0][:100]}… has more than {MAX_URL:,} characters.")
    return match[1] or _without_punctuation(match[2]), match.end()


async def _page(url: str, place: Place) -> References:
    _check_permission("fetch_url", url, place)
    page: Page = await attribute(_FETCH)(url, place.settings.tools.get("fetch_url", {}))
    if page.status >= 400:
        raise Refused(f"{page.url} can't be attached: the server responded with status {page.status}.")
    return _found(await anyio.to_thread.run_sync(_attached_page, page))


def _without_punctuation(url: str) -> str:
    """Return a URL without trailing punctuation that belongs to the sentence. Brackets that belong to the URL are kept."""
    surplus = {closing: url.count(closing) - url.count(opening) for closing, opening in _CLOSING.items()}
    end = len(url)
    while url[end - 1] in ".,;:!?*" or surplus.get(url[end - 1], 0) > 0:
        end -= 1
        if url[end] in surplus:
            surplus[url[end]] -= 1
    return url[:end]


def _check_permission(name: str, subject: str, place: Place) -> None:
    """Raise Refused unless the permissions allow this tool to read a path or URL.

    A person who mentions it in a prompt has already decided,
    so the mode matters only for prompts that are not being sent by a person. Deny rules always apply.
    """
    settings, conversation = place.settings, place.conversation or Conversation("", directory=place.directory)
    mode = "ask" if place.attended else mode_of(settings, {"mode": place.mode}, conversation)
    ruling = decide(settings.permissions, mode, provided_tool(name), subject, directory=place.directory, grants=conversation.grants)
    if ruling.action == "deny":
        raise Refused(f"{subject} can't be attached: {ruling.why}.")
    if ruling.action == "ask" and not place.attended:
        raise Refused(
            f"{subject} can't be attached: it needs a person's approval, but no one is available to give it.",
            fix=f"Add an allow rule for {name} to permissions.rules.",
        )


def _attached_page(page: Page) -> Attached:
    if media := media_of(page.body):
        if page.cut:
            raise Refused(f"{page.url} can't be attached: it is larger than {len(page.body):,} bytes.")
        return Attached(local_file(page.body, page.url, media))
    text: str = attribute(_TEXT)(page)
    note = ""
    if page.cut or len(text) > MAX_PAGE:
        text = text[:MAX_PAGE]
        note = f"{page.url} is too long; only its first {len(text):,} characters were attached."
    return Attached(local_file(text.encode("utf-8", "replace"), page.url, "text/markdown"), note)


# ── tool calls ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

_CALL = re.compile(r"\[([A-Za-z_][\w.-]*)[ ]*(?=\{\s*[\"}])")
_DECODER = json.JSONDecoder()


def _find_call(text: str, at: int) -> tuple[str, int] | None:
    match = _CALL.match(text, at)
    if match is None:
        return None
    try:
        _, end = _DECODER.raw_decode(text, match.end())
        arguments = text[match.end() : end]
        loads_exact(arguments.encode())
        if text[end : end + 1] != "]":
            raise ValueError("']' is missing after the arguments")
    except (ValueError, RecursionError) as error:
        where = f"@[{match[1]}{{…}}]"
        raise UsageError(
            f"The arguments of {where} are not valid JSON: {error}.",
            fix=f'Write @[{match[1]}{{"name": "value"}}], or enclose it in backticks.',
        ) from error
    return f"{match[1]}{arguments}", end + 1


async def _call(target: str, place: Place) -> References:
    name, brace, arguments = target.partition("{")
    if place.runtime is None:
        raise UsageError(f"@[{name}{{…}}] can't be used with --url.", fix="Enclose it in backticks to send it as text.")
    settings, agent = place.settings, await _agent(place)
    if agent.agent_type != "moot":
        raise UsageError(f"{agent.name} has its own tools, so @[{name}{{…}}] can't be used with it.")
    if not any(name.startswith(f"{server}__") for server in settings.mcp):  # whose tools are known when the run starts
        if not is_tool(name, settings):
            raise UsageError(unknown_tool(name, settings), fix="moot tools list")
        names = [tool.name for tool in tools_for(settings, agent)]
        if name not in names:
            raise UsageError(f"The agent {agent.name!r} doesn't have the tool {name!r}.", fix=f"Its tools: {', '.join(names) or 'none'}")
    return References(calls=({"tool": name, "arguments": loads_object((brace + arguments).encode()), "referenced": True},))


async def _agent(place: Place) -> Agent:
    """Return the agent that the prompt is sent to."""
    settings, conversation = place.settings, place.conversation
    own = conversation.own_settings.for_run() if conversation is not None else {}
    await load_project_agents(settings, place.directory)
    chosen = place.agent or (conversation.agent if conversation is not None else default_agent(settings, place.directory))
    return find_agent(settings, chosen, own, place.directory)


KINDS: tuple[Kind, ...] = (
    Kind("macro definition", _find_definition, _nothing),
    Kind("tool call", _find_call, _call),
    Kind("page", _find_page, _page),
    Kind("resource", _find_resource, _resource),
    Kind("file", _find_file, _file),
)
"""All kinds of references. The first kind that matches is used, so files come last."""
