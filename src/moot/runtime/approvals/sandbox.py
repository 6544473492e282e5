"""The sandbox of a conversation's commands, and the approvals that it requires."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, cast

from moot.config.settings import Permissions, Settings
from moot.errors import Refused
from moot.guard.roots import allowed_folders, is_below, repositories_around
from moot.guard.sandbox.scratch import Scratch
from moot.plugins.registry import attribute
from moot.runtime.approvals.policy import Ruled, Ruling, decide, rule_on
from moot.runtime.runtime import Runtime
from moot.tools.catalogue import CustomTool
from moot.types.agent import Mode
from moot.types.approval import ApprovalPart, Grant, OutsideCall
from moot.types.conversation import Conversation
from moot.types.sandbox import Access, Confinement, Mechanism
from moot.types.token import LOCAL_USER

OUTSIDE = "runs outside the sandbox, with access to all your files and the network"
NETWORK = "runs with access to the network"
UNCONFINED = "mode auto asks for commands, because they can't be fully confined on this machine"
OTHER_USERS = "commands of other users always run in the sandbox"


class Found(Protocol):
    """The part of `guard.sandbox.probe.Found` that is needed here."""

    @property
    def mechanism(self) -> Mechanism | None: ...
    @property
    def missing(self) -> tuple[str, ...]: ...
    @property
    def is_complete(self) -> bool: ...


async def find_mechanism(runtime: Runtime) -> Found:
    """Return the sandbox mechanism to use. The first call in a process tests the available ones."""
    find = cast("Callable[[Sequence[Mechanism]], Awaitable[Found]]", attribute("moot.guard.sandbox.mechanisms:find"))
    return await find(runtime.mechanisms)


async def confine(runtime: Runtime, conversation: Conversation, directory: Path, *, command: str, access: Access) -> Confinement | None:
    """Return the sandbox for a command, or None if it runs without one. Raise Refused if a required sandbox is not available."""
    settings = runtime.settings
    options = settings.sandbox
    is_local = conversation.owner == LOCAL_USER
    required = options.required or not is_local
    if access == "outside" and required:
        reason = "The configuration sets sandbox.required." if is_local else "Run the command in the sandbox."
        raise Refused("Commands are not allowed to run outside the sandbox.", fix=reason)
    if not options.enabled and not is_local:
        raise Refused("The sandbox is turned off, so commands of other users can't run.", fix="Set sandbox.enabled to true.")
    if not options.enabled or access == "outside":
        return None
    mechanism = (found := await find_mechanism(runtime)).mechanism
    if mechanism is None:
        if required:
            words = "; ".join(found.missing) or "no mechanism is available"
            fix = "Install bubblewrap, or unset sandbox.required." if is_local else "Install bubblewrap."
            raise Refused(f"The command requires a sandbox, but none is available on this machine: {words}.", fix=fix)
        return None
    further = tuple(map(_expanded, options.writable)) if is_local else ()
    writable = (*allowed_folders(conversation, Path(conversation.directory) if conversation.directory else directory), *further)
    return Confinement(
        mechanism=mechanism,
        directory=directory if any(is_below(str(directory), str(folder)) for folder in writable) else writable[0],
        writable=writable,
        scratch=runtime.drawers.kept(conversation.id, "sandbox", Scratch).folder,
        hidden=(settings.home,),
        # a repository that contains another user's folder may contain the folders of further users
        repositories=repositories_around(writable) if is_local else (),
        quarantine=settings.home / "quarantine",
        network=access == "network" or has_network(settings, conversation, command),
    )


def _expanded(folder: str) -> Path:
    return Path(folder).expanduser()


def has_network(settings: Settings, conversation: Conversation, command: str) -> bool:
    """Return whether the configuration, the conversation or an allow rule lets a command use the network without asking."""
    if settings.sandbox.network or conversation.own_settings.network:
        return True
    rules = tuple(rule for rule in settings.permissions.rules if rule.action != "allow" or rule.network)
    if not any(rule.network for rule in rules):
        return False
    return decide(Permissions(rules=rules), "ask", _SHELL, command, directory=conversation.directory).action == "allow"


SCRIPT = "run_skill_script"
SCRIPTS_ASK = "scripts of skills need approval in every mode, unless you allow the scripts of this skill"

SHELL = "shell"
"""The tool whose rules apply to all command lines."""


class _Shell:
    name = SHELL
    effects = frozenset({"execute"})


_SHELL = cast("Ruled", _Shell())


async def effective_mode(runtime: Runtime, tool: Ruled, mode: Mode) -> Mode:
    """Return the mode for a call: `ask` instead of `auto` for commands that can't be confined, unless the sandbox is turned off."""
    if mode != "auto" or "execute" not in tool.effects or not runtime.settings.sandbox.enabled:
        return mode
    return "auto" if (await find_mechanism(runtime)).is_complete else "ask"


def explain(ruling: Ruling) -> Ruling:
    """Return a ruling made with mode `ask` instead of `auto`, with an explanation in place of the mode."""
    parts = tuple(replace(part, why=part.why.replace("mode ask", UNCONFINED)) for part in ruling.parts)
    return replace(ruling, why=ruling.why.replace("mode ask", UNCONFINED), parts=parts)


async def rule_on_call(
    runtime: Runtime, conversation: Conversation, tool: Ruled, subject: str, access: Access, *, mode: Mode, grants: Iterable[Grant]
) -> Ruling:
    """Return the ruling on a call of one of moot's own tools, including the access that it asks for."""
    permissions = runtime.settings.permissions
    custom = isinstance(tool, CustomTool)
    if custom and tool.read_only:  # its sandbox prevents changes, and it never runs without a sandbox
        mode = "auto"
    applied = await effective_mode(runtime, tool, mode)
    like = SHELL if custom else ""
    if tool.name == SCRIPT:
        return _script_ruling(decide(permissions, applied, tool, subject, directory=conversation.directory), subject)
    ruling = decide(permissions, applied, tool, subject, directory=conversation.directory, grants=grants, like=like)
    if "execute" not in tool.effects:
        return ruling
    return with_access(runtime.settings, conversation, ruling if applied == mode else explain(ruling), subject, access)


def _script_ruling(ruling: Ruling, subject: str) -> Ruling:
    """Return the ruling on a script of a skill: a person decides each time. No rule or mode allows it, only the skill's setting."""
    return ruling if ruling.action == "deny" else Ruling("ask", SCRIPTS_ASK, (ApprovalPart(subject, "ask", SCRIPTS_ASK),))


async def rule_on_outside(
    runtime: Runtime, conversation: Conversation, call: OutsideCall, *, mode: Mode, grants: Iterable[Grant]
) -> Ruling:
    """Return the ruling on a call of an outside agent."""
    applied = await effective_mode(runtime, call, mode)
    ruling = rule_on(runtime.settings.permissions, applied, call, conversation.directory, grants)
    return ruling if applied == mode else explain(ruling)


def with_access(settings: Settings, conversation: Conversation, ruling: Ruling, command: str, access: Access) -> Ruling:
    """Return the ruling on a command that asks for more access than its sandbox gives: a person must approve it, for this call only.

    Denied commands stay denied.
    """
    if access == "outside" and conversation.owner != LOCAL_USER and ruling.action != "deny":
        return Ruling("deny", OTHER_USERS, (ApprovalPart(command, "deny", OTHER_USERS),))
    if ruling.action == "deny" or access == "sandbox" or not settings.sandbox.enabled:
        return ruling
    if access == "network" and has_network(settings, conversation, command):
        return ruling
    why = OUTSIDE if access == "outside" else NETWORK
    return Ruling("ask", why, (ApprovalPart(command, "ask", why),))
