"""Slash commands for the settings of the next prompts: agent, model, mode, effort and tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from moot.agents.known import available_agents
from moot.commands.command import BaseCommand, Choice, Choose, CommandContext, Notice, Reply
from moot.errors import UsageError
from moot.features.settings import allow_folders, chosen_folders
from moot.guard.roots import with_folders
from moot.runtime.setup import find_agent
from moot.tools.catalogue import find_tool, is_available, is_tool, tool_names, tools_for, unknown_tool
from moot.types.agent import Mode
from moot.types.canonical import Json
from moot.types.model import Detail, Effort, Model
from moot.types.token import LOCAL_USER

_EFFORTS: dict[str, Effort] = {name: name for name in get_args(Effort)}
_DETAILS_BY_NAME: dict[str, Detail] = {name: name for name in get_args(Detail)}
_DETAILS: dict[Detail, str] = {"auto": "the provider decides", "low": "few tokens", "high": "fine print and small objects"}
_SEARCHES: dict[str, tuple[bool | None, str]] = {
    "on": (True, "search the web and cite sources"),
    "off": (False, "don't search the web"),
    "default": (None, "the agent decides"),
}
_RECENT = 50
"""Number of runs to search for recently used models."""

MODES: dict[Mode, str] = {
    "ask": "ask before everything except reading",
    "edits": "ask, but allow file edits here",
    "plan": "read only",
    "auto": "allow everything except protected files and deny rules",
}
"""The modes and their descriptions."""
_CYCLE: tuple[Mode, ...] = ("ask", "edits", "plan")
"""The modes that the keyboard shortcut cycles through. `auto` is not among them, so that no key press can allow everything."""


_MODES_BY_NAME: dict[str, Mode] = {name: name for name in MODES}


class AgentCommand(BaseCommand):
    help = "Use another agent"
    argument = "[AGENT]"
    category = "settings"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        agents = available_agents(context.engine.runtime.settings, await context.folder())
        return [Choice(name, about=agent.description) for name, agent in agents.items()]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        if not argument:
            return [Choose("Agent", await self.choices(context))]
        find_agent(context.engine.runtime.settings, argument, {}, await context.folder())
        context.overrides.agent, context.overrides.model = argument, None
        return [Notice(f"Agent set to {argument}, starting with the next prompt.", "dim")]


class HandoffCommand(BaseCommand):
    help = "Hand this conversation over to another agent"
    argument = "[AGENT]"
    category = "settings"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        agents = available_agents(context.engine.runtime.settings, await context.folder())
        current = await context.current()
        return [Choice(name, about=agent.description) for name, agent in agents.items() if current is None or name != current.agent]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        if not argument:
            return [Choose("Hand over to", await self.choices(context))]
        agent = find_agent(context.engine.runtime.settings, argument, {}, await context.folder())
        current = await context.current()
        if current is None:
            raise UsageError("There is nothing to hand over yet.", fix=f"Use /agent {argument}.")
        context.overrides.agent, context.overrides.model = argument, None
        title = current.title or "this conversation"
        how = "with the full history" if agent.agent_type == "moot" else "with a transcript of the history, in a session of its own"
        return [Notice(f"{argument} continues {title} with the next prompt, {how}. Existing messages are not changed.", "dim")]


class ModelCommand(BaseCommand):
    help = "Use another model"
    argument = "[MODEL]"
    category = "settings"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        """Return all available models, recently used ones first."""
        listing = await context.engine.providers.models()
        known = {str(model.id): Choice(str(model.id), about=_facts(model)) for model in listing.models}
        first = [name for name in await recent_models(context) if name in known]
        return [known[name] for name in dict.fromkeys([*first, *known])]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        if not argument:
            return [Choose("Model", await self.choices(context))]
        chosen = await context.engine.providers.choice(argument)
        context.overrides.model = str(chosen.model.id)
        if (conversation := await context.current()) is not None:
            await context.store.conversations.update(conversation.id, model=context.overrides.model)
        return [Notice(f"Model set to {chosen.model.id}, starting with the next prompt.", "dim")]


async def recent_models(context: CommandContext) -> list[str]:
    """Return the recently used models, newest first."""
    runs = await context.store.records.runs(limit=_RECENT)
    return list(dict.fromkeys(run.model for run in runs if run.model))


def _facts(model: Model) -> str:
    price = model.price
    facts = [
        f"{model.context // 1000}k" if model.context else "",
        f"${_per_million(price.input)} in, ${_per_million(price.output)} out" if price else "",
        "tools" if model.tools != "none" else "",
        "images" if "image" in model.modalities else "",
        "reasoning" if model.reasoning else "",
        model.note,
    ]
    return " · ".join(fact for fact in facts if fact)


def _per_million(nano_per_token: float | None) -> str:
    return "?" if nano_per_token is None else f"{nano_per_token / 1000:g}"


class EffortCommand(BaseCommand):
    help = "Set how much the model reasons before it answers"
    argument = "[EFFORT]"
    category = "settings"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return [*(Choice(name) for name in _EFFORTS), Choice("default", about="the model's default")]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        if not argument:
            return [Choose("Effort", await self.choices(context))]
        effort = _EFFORTS.get(argument)
        if effort is None and argument != "default":
            raise UsageError(f"Unknown effort {argument!r}.", fix=f"Choose one of: {', '.join([*_EFFORTS, 'default'])}.")
        context.overrides.effort = effort
        await context.store_settings({"effort": effort})
        return [Notice(f"Effort set to {argument}, starting with the next prompt.", "dim")]


class DetailCommand(BaseCommand):
    help = "Set the detail in which the model sees attached images"
    argument = "[DETAIL]"
    category = "settings"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return [Choice(name, about=about) for name, about in _DETAILS.items()]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        if not argument:
            return [Choose("Detail of images", await self.choices(context))]
        detail = _DETAILS_BY_NAME.get(argument)
        if detail is None:
            raise UsageError(f"Unknown detail {argument!r}.", fix=f"Choose one of: {', '.join(_DETAILS)}.")
        context.overrides.detail = detail
        await context.store_settings({"detail": detail})
        return [Notice(f"Detail of images set to {detail}, starting with the next prompt.", "dim")]


class WebCommand(BaseCommand):
    help = "Turn searching the web on or off, or let the agent decide"
    argument = "[on|off|default]"
    category = "settings"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return [Choice(name, about=about) for name, (_, about) in _SEARCHES.items()]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        if not argument:
            return [Choose("Web search", await self.choices(context))]
        if argument not in _SEARCHES:
            raise UsageError(f"Unknown value {argument!r}.", fix=f"Choose one of: {', '.join(_SEARCHES)}.")
        value, about = _SEARCHES[argument]
        if value and not is_available(find_tool("web_search", context.engine.settings), context.engine.runtime.settings):
            raise UsageError("No search engine is set up.", fix="Set it up on the page under Settings, or set tools.web_search.")
        context.overrides.web_search = value
        await context.store_settings({"web_search": value})
        return [Notice(f"Web search set to {argument}, starting with the next prompt: {about}.", "dim")]


class ModeCommand(BaseCommand):
    help = "Set which actions need your approval: " + ", ".join(MODES)
    argument = "[MODE]"
    category = "settings"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return [Choice(name, about=about) for name, about in MODES.items()]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        if not argument:
            return [Choose("Mode", await self.choices(context))]
        mode = _MODES_BY_NAME.get(argument)
        if mode is None:
            raise UsageError(f"Unknown mode {argument!r}.", fix=f"Choose one of: {', '.join(MODES)}.")
        context.overrides.mode = mode
        await context.store_settings({"mode": mode})
        return [Notice(f"Mode set to {mode}: {MODES[mode]}.", "dim")]


def next_mode(mode: Mode) -> Mode:
    """Return the mode that the keyboard shortcut sets next. The last mode and `auto` are followed by the first mode."""
    return _CYCLE[(_CYCLE.index(mode) + 1) % len(_CYCLE)] if mode in _CYCLE else _CYCLE[0]


class AllowCommand(BaseCommand):
    help = "Show the folders that tools and commands may use, or allow another one"
    argument = "[DIR]"
    category = "settings"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return []

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        conversation = await context.current()
        base = conversation.directory or context.directory if conversation is not None else context.directory
        folders = chosen_folders([argument], base) if argument and _is_own(context) else ()
        if conversation is not None and argument:
            conversation = await allow_folders(context.engine, conversation.id, folders, base)
            context.stored(conversation)
        elif argument:
            if context.further_folders is None:
                raise UsageError("There is no conversation yet.", fix=context.without_conversation)
            context.further_folders.extend(folders)
        allowed = conversation.allowed_uris if conversation is not None else ()
        shown = with_folders(allowed, base, context.further_folders or ()) if conversation is None else allowed or (base,)
        return [Notice("\n".join(["Tools and commands may use:", *(shown or (base,))]))]


def _is_own(context: CommandContext) -> bool:
    # only the person who runs moot may find out whether a folder exists on this machine
    return context.owner == LOCAL_USER


class ToolsCommand(BaseCommand):
    help = "Show the tools offered to the agent, or choose them: names, all or none"
    argument = "[NAME …|all|none]"
    category = "settings"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        return [
            Choice("all", about="the agent's own tools"),
            Choice("none"),
            *(Choice(name) for name in tool_names(context.engine.settings)),
        ]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        names = argument.replace(",", " ").split()
        if names == ["all"]:
            context.overrides.tools = None
        elif names == ["none"]:
            context.overrides.tools = ()
        elif names:
            settings = context.engine.settings
            unknown = next((name for name in names if not is_tool(name, settings)), None)
            if unknown is not None:
                raise UsageError(unknown_tool(unknown, settings), fix="Use /tools to list the tools.")
            context.overrides.tools = names
        if names:
            chosen = context.overrides.tools
            await context.store_settings({"tools": None if chosen is None else list[Json](chosen)})
        return [Notice(await _offered_tools(context))]


async def _offered_tools(context: CommandContext) -> str:
    settings, overrides = context.engine.runtime.settings, context.overrides
    conversation = await context.current()
    options = {**(conversation.own_settings.for_run() if conversation else {}), **overrides.settings()}
    agent = find_agent(settings, overrides.agent or (conversation.agent if conversation else "default"), options, await context.folder())
    tools = tools_for(settings, agent, web_search=options.get("web_search"))
    if not tools:
        return "No tools are offered."
    width = max(len(tool.name) for tool in tools) + 2
    return "\n".join(f"{tool.name:{width}}{tool.description.partition('.')[0]}" for tool in tools)
