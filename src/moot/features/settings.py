"""Change the settings of a conversation in the same way in every face."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moot.config.settings import Settings
from moot.engine import Engine
from moot.errors import Refused, UsageError
from moot.guard.roots import folders, is_below, with_folders
from moot.plugins import AGENTS
from moot.runtime.setup import find_agent, load_project_agents
from moot.tools.catalogue import is_tool, unknown_tool
from moot.types.agent import MODES, Mode
from moot.types.canonical import JsonObject
from moot.types.conversation import STORED_SETTINGS, Conversation, Conversations, check_settings
from moot.types.token import LOCAL_USER


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """Checked changes to a conversation's settings. None means unchanged, except in `stored`."""

    stored: JsonObject
    """Changes to `Conversation.settings`; None removes a key."""
    agent: tuple[str, str] | None = None
    model: str | None = None
    allowed_uris: tuple[str, ...] | None = None

    def applied(self, conversation: Conversation) -> Conversation:
        """Return the conversation with these changes, without storing them."""
        return replace(
            conversation,
            settings={**conversation.settings, **self.stored},
            allowed_uris=conversation.allowed_uris if self.allowed_uris is None else self.allowed_uris,
        )

    async def store(self, conversations: Conversations, id: str) -> Conversation:
        """Store the changes and return the conversation."""
        return await conversations.update(
            id, agent=self.agent, model=self.model, allowed_uris=self.allowed_uris, settings=self.stored or None
        )


async def settings_change(engine: Engine, changes: JsonObject, directory: str = "") -> SettingsChange:
    """Check changes to the settings of a conversation in a folder; null removes a setting.

    Raise UsageError for an unknown setting, an invalid value, or an unknown name.
    """
    check_settings(changes)
    agent: tuple[str, str] | None = None
    if "agent" in changes:
        name = str(changes["agent"] or "default")
        agent = (name, await agent_type_of(engine, name, directory))
    model = str(changes["model"] or "") if "model" in changes else None
    if model:
        await engine.providers.choice(model)
    tools, uris = changes.get("tools"), changes.get("allowed_uris")
    for tool in tools if isinstance(tools, list) else ():
        if not is_tool(str(tool), engine.settings):
            raise UsageError(unknown_tool(str(tool), engine.settings), fix="moot tools list")
    for uri in uris if isinstance(uris, list) else ():
        if not Path(str(uri)).is_absolute():
            raise UsageError(f"{uri!r} is not an absolute path.", fix="Use the absolute path of a folder.")
    folders = tuple(str(uri) for uri in uris) if isinstance(uris, list) else ()
    stored = {key: value for key, value in changes.items() if key in STORED_SETTINGS}
    return SettingsChange(stored, agent, model, folders if "allowed_uris" in changes else None)


def chosen_folders(paths: Iterable[str], directory: str) -> tuple[str, ...]:
    """Return the absolute paths of folders to allow. Raise UsageError if a folder does not exist."""
    found = tuple(os.path.normpath(Path(directory, Path(path).expanduser())) for path in paths)
    for folder in found:
        if not Path(folder).is_dir():
            raise UsageError(f"{folder!r} is not a folder.", fix="Specify an existing folder.")
    return found


async def allow_folders(engine: Engine, id: str, folders: Sequence[str], directory: str) -> Conversation:
    """Allow a conversation to use additional folders. Raise Refused if the conversation belongs to another user.

    `directory` is the folder that a conversation without a folder will use from its next prompt on.
    """
    found = await engine.store.conversations.get(id)
    if found.owner != LOCAL_USER:
        raise Refused(
            "This conversation can only use the folders of its owner's projects.",
            fix="Ask the administrator to create a project for this folder.",
        )
    allowed = with_folders(found.allowed_uris, found.directory or directory, folders)
    return await SettingsChange({}, allowed_uris=allowed).store(engine.store.conversations, id)


async def agent_type_of(engine: Engine, agent: str, directory: str = "") -> str:
    """Return the `agent_type` of an agent in a folder. Raise UsageError if the agent is unknown or not installed."""
    await load_project_agents(engine.runtime.settings, directory)
    found = find_agent(engine.runtime.settings, agent, {}, directory)
    if found.agent_type not in AGENTS:
        raise UsageError(f"Agent {agent!r} has the agent type {found.agent_type!r}, which is not installed.")
    return found.agent_type


def widened(settings: Settings, before: Conversation, after: Conversation) -> tuple[str, ...]:
    """Return the names of the settings that now allow more than before."""
    old, new = before.own_settings, after.own_settings
    wider = {
        "mode": _is_wider(settings.permissions.mode, old.mode, new.mode),
        "tools": old.tools is not None and (new.tools is None or not set(new.tools) <= set(old.tools)),
        "allowed_uris": not all(any(is_below(uri, root) for root in _roots(before)) for uri in _roots(after)),
        "network": new.network is True and old.network is not True,
    }
    return tuple(name for name, is_wider in wider.items() if is_wider)


def _is_wider(configured: Mode, old: Mode | None, new: Mode | None) -> bool:
    if old is None and new is None:
        return False
    # a mode that was set does not change when the configured mode becomes stricter, so `edits` and `auto` allow more than no mode at all
    before = old or min(configured, "ask", key=MODES.index)
    return MODES.index(new or configured) > MODES.index(before)


def _roots(conversation: Conversation) -> tuple[str, ...]:
    return tuple(map(str, folders(conversation.allowed_uris))) or (conversation.directory,)
