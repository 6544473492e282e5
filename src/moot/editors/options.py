"""The settings of a session that the editor shows and changes: mode, model, effort and agent. Changes are made by slash commands."""

from __future__ import annotations

from collections.abc import Sequence

from acp.schema import SessionConfigOptionSelect, SessionConfigSelectOption, SessionMode, SessionModeState

from moot.agents.known import agent_named, available_agents, default_agent
from moot.commands import Choice, CommandContext
from moot.commands.settings import MODES
from moot.commands.status import current_model
from moot.errors import MootError
from moot.runtime.setup import mode_of
from moot.types.agent import Mode
from moot.types.conversation import Conversation

NAMES = ("mode", "model", "effort", "agent")
"""Ids of the options. They are also the names of the slash commands that change them."""

_EFFORTS = ("default", "none", "low", "medium", "high", "max")


def mode_now(context: CommandContext, conversation: Conversation | None) -> Mode:
    """Return the mode of the next prompt."""
    chosen = context.overrides.mode or (context.unstored.get("mode") if conversation is None else None)
    return mode_of(context.engine.runtime.settings, {"mode": chosen}, conversation)


def allows_auto(context: CommandContext, conversation: Conversation | None) -> bool:
    """Return True if a person has chosen the mode `auto` in the configuration, or in the conversation outside the editor."""
    stored = conversation.own_settings.mode if conversation is not None else None
    return "auto" in (context.engine.runtime.settings.permissions.mode, stored)


def modes(context: CommandContext, conversation: Conversation | None) -> SessionModeState:
    """Return the modes to choose from and the current one."""
    offered = [(name, about) for name, about in MODES.items() if name != "auto" or allows_auto(context, conversation)]
    found = [SessionMode(id=name, name=name.capitalize(), description=about) for name, about in offered]
    return SessionModeState(current_mode_id=mode_now(context, conversation), available_modes=found)


async def config_options(
    context: CommandContext, conversation: Conversation | None, models: Sequence[Choice]
) -> list[SessionConfigOptionSelect]:
    """Return all options. `models` are the known models; the current one is added if it is missing."""
    settings = context.engine.runtime.settings
    directory = conversation.directory or context.directory if conversation is not None else context.directory
    agent = context.overrides.agent or (conversation.agent if conversation is not None else default_agent(settings, directory))
    state = modes(context, conversation)
    found = [
        _select("mode", "Mode", state.current_mode_id, [Choice(one.id, one.name, one.description or "") for one in state.available_modes])
    ]
    named = agent_named(settings, agent, directory)
    if named is None or named.agent_type == "moot":
        found.append(_select("model", "Model", await _model(context, conversation), models))
    own = conversation.own_settings.effort if conversation is not None else context.unstored.get("effort")
    effort = str(context.overrides.effort or own or "default")
    found.append(_select("effort", "Effort", effort, [Choice(name) for name in _EFFORTS]))
    agents = [Choice(name, about=one.description) for name, one in available_agents(settings, directory).items()]
    found.append(_select("agent", "Agent", agent, agents))
    return found


async def _model(context: CommandContext, conversation: Conversation | None) -> str:
    name = current_model(context, conversation)
    try:
        return str((await context.engine.providers.choice(name)).model.id)
    except MootError:
        return name or "none"


_CATEGORIES = {"mode": "mode", "model": "model", "effort": "thought_level"}


def _select(id: str, name: str, current: str, choices: Sequence[Choice]) -> SessionConfigOptionSelect:
    known = {one.value: one for one in choices}
    offered = [*([] if current in known else [Choice(current)]), *choices]
    options = [SessionConfigSelectOption(value=one.value, name=one.label or one.value, description=one.about or None) for one in offered]
    values = {"id": id, "name": name, "type": "select", "current_value": current, "options": options, "category": _CATEGORIES.get(id)}
    return SessionConfigOptionSelect.model_validate(values)
