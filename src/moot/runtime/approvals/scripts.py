"""Scripts of skills. A person's setting for the skill determines whether they are denied, need approval, or run without asking."""

from __future__ import annotations

from moot.runtime.approvals.policy import Ruling, decide
from moot.runtime.approvals.sandbox import SCRIPT, effective_mode
from moot.runtime.services import Caller, selection_of
from moot.types.approval import Effect
from moot.types.canonical import Json
from moot.types.hooks import HookAnswer
from moot.types.skill import REVISION


class _Script:
    name = SCRIPT
    effects: frozenset[Effect] = frozenset({"execute"})


async def with_setting(leg: Caller, ruling: Ruling, input: Json, subject: str, hook: HookAnswer | None) -> Ruling:
    """Return the ruling on a script after applying the setting of its skill. Denials, ask rules and hooks that ask stay in force.

    Allowed scripts run without asking if the skill's content has not changed since it was allowed, and if a sandbox confines them.
    """
    if ruling.action == "deny" or not isinstance(input, dict):
        return ruling
    name, revision = str(input.get("skill")), str(input.get("revision"))
    selection = await selection_of(leg)
    skill = next((skill for skill in selection.all if skill.name == name), None) if selection is not None else None
    if skill is None:
        return Ruling("deny", f"there is no skill {name!r}")
    if skill.decision.scripts == "never":
        return Ruling("deny", f"the scripts of the skill {name!r} are turned off")
    if revision != skill.digest[:REVISION]:  # don't ask about content that the skill no longer has
        return Ruling("deny", f"{revision!r} is not the current revision of the skill {name!r}; activate it again")
    if hook is not None and hook.permission == "ask":
        return ruling
    if skill.decision.scripts != "allow" or skill.decision.digest != skill.digest:
        return ruling
    runtime, conversation = leg.runtime, leg.request.conversation
    mode = await effective_mode(runtime, _Script(), "auto")
    freed = decide(runtime.settings.permissions, mode, _Script(), subject, directory=conversation.directory)
    return Ruling("allow", f"scripts of the skill {name} are allowed") if freed.action == "allow" else ruling
