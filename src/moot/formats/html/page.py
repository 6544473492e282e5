"""The complete HTML page: security policy, title, list of prompts, messages and other branches."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from moot.formats.html.markup import Safe, element, joined, text
from moot.formats.html.messages import first_line, message_of, moment, money, tokens
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation
from moot.types.message import Message

_UNLISTED = 2
"""Maximum number of prompts for which a page has no list of prompts."""
_END = "Exported by moot. Click reasoning and tool calls to expand them; only expanded ones are printed."


def page(exported: ExportedConversation) -> str:
    """Return the complete page. Its bytes depend only on the conversation."""
    title = exported.conversation.title or "Conversation"
    head = element(
        "head",
        Safe('<meta charset="utf-8">'),
        element("meta", http_equiv="Content-Security-Policy", content=policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="robots", content="noindex, nofollow"),
        element("title", text(title)),
        element("style", Safe(_style())),
    )
    conversation = exported.conversation
    facts = [moment(conversation.created_at), *(element("span", text(fact)) for fact in _facts(conversation, len(exported.messages)))]
    about = element("header", element("h1", text(title), dir="auto"), element("p", *facts, klass="facts"), klass="top")
    children, unplaced = _children(exported)
    articles = [message_of(message, f"m{number}", children) for number, message in enumerate(exported.messages, 1)]
    main = element("main", *articles, *_branches(exported, children), *unplaced)
    end = element("footer", text(_END), klass="end")
    body = element("body", about, _contents(exported.messages), main, end)
    return f'<!doctype html>\n<html lang="en">{head}\n{body}</html>\n'


def policy() -> str:
    """Return the Content-Security-Policy, which allows only the page's own style sheet and embedded pictures."""
    digest = b64encode(sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


@cache
def _style() -> str:
    return Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def _facts(conversation: Conversation, messages: int) -> Iterator[str]:
    yield f"{messages:,} message{'' if messages == 1 else 's'}"
    if conversation.came_from:
        yield f"from {conversation.came_from}"
    if conversation.model:
        yield conversation.model
    if conversation.agent not in ("", "default"):
        yield conversation.agent
    if words := tokens(conversation.usage):
        yield words
    if conversation.cost is not None:
        yield money(conversation.cost)


def _contents(messages: Sequence[Message]) -> Safe:
    """Return a list of links to the prompts."""
    prompts = [(f"m{number}", message) for number, message in enumerate(messages, 1) if message.role == "user"]
    if len(prompts) <= _UNLISTED:
        return Safe("")
    lines = [element("li", element("a", text(first_line(message)), href=f"#{anchor}", dir="auto")) for anchor, message in prompts]
    listed = element("details", element("summary", text(f"{len(prompts)} prompts")), element("ol", *lines), open=len(prompts) <= 30)
    return element("nav", listed, aria_label="Prompts")


def _children(exported: ExportedConversation, prefix: str = "s") -> tuple[Mapping[str, Safe], list[Safe]]:
    """Return the sub-agents' conversations as HTML: a mapping from the id of the tool call that shows them, and a list of all others."""
    calls = {str(part.get("toolCallId")) for message in (*exported.messages, *exported.others) for part in message.parts}
    placed: dict[str, Safe] = {}
    unplaced: list[Safe] = []
    for number, child in enumerate(exported.children, 1):
        at = f"{prefix}{number}"
        below, rest = _children(child, f"{at}-s")
        articles = [message_of(message, f"{at}-m{position}", below) for position, message in enumerate(child.messages, 1)]
        folded = _folded(f"Sub-agent: {child.conversation.title or child.conversation.agent}", (*articles, *rest), "sub")
        call = child.conversation.parent_tool_call
        if call is not None and call in calls:
            placed[call] = joined(placed.get(call, Safe("")), folded)
        else:
            unplaced.append(folded)
    return placed, unplaced


def _branches(exported: ExportedConversation, children: Mapping[str, Safe]) -> Iterator[Safe]:
    """Yield each branch that is not shown, starting with its first message."""
    known = {message.id: message for message in (*exported.messages, *exported.others)}
    parents = {message.parent for message in exported.others}
    seen = {message.id for message in exported.messages}
    for number, last in enumerate((one for one in exported.others if one.id not in parents), 1):
        branch: list[Message] = []
        current: Message | None = last
        while current is not None and current.id not in seen:
            branch.append(current)
            seen.add(current.id)
            current = known.get(current.parent or "")
        articles = [message_of(message, f"b{number}-m{position}", children) for position, message in enumerate(reversed(branch), 1)]
        origin = f", after “{first_line(current, 50)}”" if current is not None else ""
        yield _folded(f"Another branch{origin}", articles, "branch")


def _folded(title: str, inside: Iterable[Safe], klass: str) -> Safe:
    summary = element("summary", element("span", text(title), klass="tool"))
    return element("details", summary, element("div", *inside, klass="inside"), klass=klass)
