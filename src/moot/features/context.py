"""The context of a conversation's next request: show what it consists of, show the request itself, and compact the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moot.agents.request import Files, body_of
from moot.agents.window import fitted, in_request, is_summary, off_loop, offered, room_for_history, tool_tokens
from moot.convert.history import CHARACTERS, estimate, history_tokens
from moot.engine import Engine
from moot.errors import UsageError
from moot.features.prompts.references import Place, attach_references
from moot.runtime.history import compact, stored_history
from moot.runtime.setup import DEFAULT_CONTEXT, confined_conversation, find_agent, load_project_agents, step_setup
from moot.types.agent import Agent
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.message import Message, is_tool, text_part
from moot.types.run import Prompt, Run
from moot.types.tree import Compaction

BAR = 20
"""Length of the bar that shows how full the context is, in characters."""


@dataclass(frozen=True, slots=True)
class ContextPiece:
    """A part of the context window."""

    name: str
    tokens: int
    """Estimated number of tokens."""


@dataclass(frozen=True, slots=True)
class ContextReport:
    """The contents of the next request. Numbers of tokens are estimates."""

    model: str
    window: int
    """Size of the model's context window, in tokens."""
    compact_at: int
    """Number of tokens at which the history is compacted."""
    pieces: tuple[ContextPiece, ...]
    messages: int
    """Number of messages, counting the summary as one."""
    request: JsonObject
    """The body of the request."""
    notes: tuple[str, ...] = ()
    """Warnings about content that the prompt refers to."""

    @property
    def tokens(self) -> int:
        return sum(piece.tokens for piece in self.pieces)

    def to_json(self, *, request: bool = False) -> JsonObject:
        """Return the report as JSON. If `request` is True, include the body of the request."""
        pieces = list[Json]({"name": each.name, "tokens": each.tokens, "share": self.share(each.tokens)} for each in self.pieces)
        totals: JsonObject = {"tokens": self.tokens, "share": self.share(self.tokens), "compact_at": self.compact_at}
        about: JsonObject = {"model": self.model, "window": self.window, **totals, "messages": self.messages, "pieces": pieces}
        about["notes"] = list[Json](self.notes)
        return {**about, "request": self.request} if request else about

    def share(self, tokens: int) -> float:
        """Return the share of the context window that this number of tokens takes up. 1 is the whole window; larger values are possible."""
        return round(tokens / self.window, 4)

    def lines(self) -> list[str]:
        """Return the report as text."""
        filled = min(round(BAR * self.tokens / self.window), BAR)
        bar, used = "█" * filled + "░" * (BAR - filled), f"{self.tokens:,} of {self.window:,} tokens"
        head = f"{bar}  {used} ({self.share(self.tokens):.0%}) · {self.model}"
        rows = [f"{each.name:14}{each.tokens:>10,}  {self.share(each.tokens):>4.0%}" for each in self.pieces]
        return [head, *rows, f"The numbers are estimates. The history is compacted at {self.compact_at:,} tokens.", *self.notes]


async def context_report(
    engine: Engine, conversation: Conversation, *, prompt: str = "", references: bool = False, agent: str = "", model: str = ""
) -> ContextReport:
    """Return a report on the next request, as if the prompt had been sent.
    If `references` is True, attach the content that the prompt refers to.

    Raise UsageError for an agent that makes its own requests, and the same errors as `read_references`.
    """
    store, settings = engine.store.of(conversation.owner), engine.runtime.settings
    found = await confined_conversation(engine.store, conversation.id)
    options = found.own_settings.for_run()
    await load_project_agents(settings, found.directory)
    chosen = own_agent(engine, found, agent)
    project = await store.projects.get(found.project)
    run = Run("", found.id, "", agent=chosen.name, model=model or ("" if agent else found.next_model), settings=options)
    setup = await step_setup(
        settings, engine.providers, chosen, run, found, project, role="main", now=engine.runtime.clock.now(), mcp=engine.runtime.mcp
    )
    choice, budget = setup.choices[0], setup.history_tokens
    definitions = offered(setup, setup.tools)
    history = await stored_history(store, found.id, found.head, budget)
    typed, notes = Prompt((text_part(prompt),)), ()
    if references:
        typed, notes = await attach_references(typed, Place(engine.runtime, found.directory, found, chosen.name))
        if typed.settings:
            notes = (*notes, "The outputs of the prompt's tool calls are not included, because they run when the prompt is sent.")
    added = [Message("", "user", typed.parts)] if prompt else []
    room = room_for_history(setup, definitions, budget)
    messages = await off_loop([*history.as_sent(), *added], lambda messages: fitted(in_request(messages), room, budget))
    return ContextReport(
        str(choice.model.id),
        choice.model.context or DEFAULT_CONTEXT,
        setup.compact_at,
        (
            ContextPiece("system prompt", len(setup.system) // CHARACTERS),
            ContextPiece("tools", tool_tokens(definitions)),
            *_pieces_of(messages),
        ),
        len(messages),
        await body_of(setup, choice, messages, definitions, Files(store.blobs, engine.runtime.documents, choice.model)),
        notes,
    )


def _pieces_of(messages: Sequence[Message]) -> tuple[ContextPiece, ...]:
    summary = history_tokens([message for message in messages if is_summary(message)])
    calls = sum(estimate([part for part in message.parts if is_tool(part)]) for message in messages)
    return (
        ContextPiece("summary", summary),
        ContextPiece("messages", history_tokens(messages) - summary - calls),
        ContextPiece("tool outputs", calls),
    )


def own_agent(engine: Engine, conversation: Conversation, name: str = "") -> Agent:
    """Return the agent that will answer the conversation's next prompt.
    Raise UsageError if it is a program that manages its own context.
    """
    found = find_agent(engine.runtime.settings, name or conversation.agent, conversation.own_settings.for_run(), conversation.directory)
    if found.agent_type != "moot":
        raise UsageError(
            f"{found.name} manages its own context and compacts it itself.", fix="/context and /compact work only with moot's own agents."
        )
    return found


async def compact_conversation(
    engine: Engine, conversation: Conversation, *, focus: str = "", agent: str = "", model: str = ""
) -> Compaction:
    """Summarize all messages of the current branch except the most recent ones. Raise UsageError if there is nothing to summarize."""
    chosen = own_agent(engine, conversation, agent)
    model = model or conversation.next_model or chosen.model
    made = await compact(engine.runtime, conversation.id, conversation.head, keep=chosen.history.keep, model=model, focus=focus)
    if made is None:
        raise UsageError(f"There is nothing to summarize yet: the last {chosen.history.keep} messages are never summarized.")
    return made
