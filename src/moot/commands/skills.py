"""The slash command `/skill`: list skills, and enable them for the conversation."""

from __future__ import annotations

from collections.abc import Sequence

from anyio import to_thread

from moot.commands.command import Choice, CommandContext, Notice, Reply
from moot.errors import Refused, UsageError
from moot.guard.hidden import spelled_out
from moot.plugins.registry import hint
from moot.skills.library import find_skills
from moot.types.canonical import Json
from moot.types.skill import Skill
from moot.types.token import LOCAL_USER


class SkillCommand:
    help = "List the skills, or put some into the prompt of this conversation: names, none or default"
    argument = "[NAME …|none|default]"

    async def choices(self, context: CommandContext) -> Sequence[Choice]:
        usable = [skill for skill in await _skills(context) if skill.is_usable]
        named = [Choice(skill.name, about=spelled_out(" ".join(skill.text.description.split()))) for skill in usable]
        return [*named, Choice("none", about="use no skills"), Choice("default", about="use the skills set up with moot skills")]

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        names = argument.replace(",", " ").split()
        if names:
            await context.store_settings({"skills": await _chosen(context, names)})
        return [Notice(await _overview(context))]


async def _skills(context: CommandContext) -> list[Skill]:
    current, folder = await context.current(), await context.folder()
    if current is not None and current.owner != LOCAL_USER:
        raise Refused("Only the person who runs moot can list and choose skills.")
    return await to_thread.run_sync(find_skills, context.engine.settings.home, folder)


async def _chosen(context: CommandContext, names: Sequence[str]) -> Json:
    """Return the value of the setting for the skills whose names were typed. Raise UsageError for a skill that can't be used."""
    if list(names) in (["none"], ["default"]):
        return [] if names[0] == "none" else None
    known = {skill.name: skill for skill in await _skills(context)}
    for name in names:
        if name not in known:
            raise UsageError(f"Skill {name!r} not found.{hint(name, list(known))}", fix="/skill lists them.")
        if not known[name].is_usable:
            raise UsageError(f"The skill {name!r} is {known[name].status}. {known[name].problem}".strip(), fix=f"moot skills show {name}")
    return list[Json](names)


async def _overview(context: CommandContext) -> str:
    current = await context.current()
    stored = context.unstored.get("skills") if current is None else current.settings.get("skills")
    chosen = [str(name) for name in stored] if isinstance(stored, list) else None
    skills = await _skills(context)
    if chosen == []:
        return "This conversation uses no skills. Change this with /skill default."
    if not skills:
        return "There are no skills here. Add one with: moot skills add FOLDER"
    width = max(len(skill.name) for skill in skills) + 2
    lines = [
        f"{skill.name:{width}}{'in the prompt' if skill.name in (chosen or ()) and skill.is_usable else skill.status:15}"
        f"{spelled_out(' '.join(skill.text.description.split()))[:100]}"
        for skill in skills
    ]
    return "\n".join(lines)
