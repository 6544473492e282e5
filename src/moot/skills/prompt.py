"""Skills in the system prompt: the instructions of enabled skills, and one line for each offered skill."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moot.guard.hidden import spelled_out
from moot.types.prompt import PromptContext
from moot.types.skill import Skill, SkillSelection

LINE = 200
"""Maximum length of a description in the list, in characters."""
LIST_CHARACTERS = 6_000
"""Maximum length of the list, in characters."""
ENABLED_CHARACTERS = 24_000
"""Maximum total length of the instructions in the prompt, in characters."""

_OFFER = "Skills: instructions for certain tasks. Before you start a task that one describes, call activate_skill with its name."


async def prompt_part(context: PromptContext) -> str:
    """Return the part `skills` of a system prompt."""
    if (skills := context.skills) is None:
        return ""
    return "\n\n".join(filter(None, (*map(instructions, skills.enabled), offer(skills.offered))))


def bounded(selection: SkillSelection) -> SkillSelection:
    """Return the selection. Enabled skills that don't fit into the prompt are offered instead."""
    kept: list[Skill] = []
    left = ENABLED_CHARACTERS
    for skill in selection.enabled:
        left -= len(skill.text.body)
        if left < 0:
            break
        kept.append(skill)
    return SkillSelection((*selection.enabled[len(kept) :], *selection.offered), tuple(kept))


def instructions(skill: Skill) -> str:
    """Return the instructions of a skill with the names of its files, in the form in which models receive them."""
    head = f"# Skill {skill.name}: {spelled_out(_line(skill.text.description))}"
    files = (
        f"Files of the skill, to read with activate_skill and `file`: {', '.join(map(spelled_out, _first(skill.files)))}"
        if skill.files
        else ""
    )
    scripts = "Call activate_skill before you run one of its scripts." if skill.scripts and skill.decision.scripts != "never" else ""
    return "\n\n".join(filter(None, (head, spelled_out(skill.text.body), files, scripts)))


def offer(skills: Sequence[Skill]) -> str:
    """Return the list of offered skills, one line each. Those over the limit are left out."""
    lines: list[str] = []
    left = LIST_CHARACTERS
    for skill in skills:
        line = f"- {skill.name}: {spelled_out(_line(skill.text.description))}"
        left -= len(line)
        if left < 0:
            lines.append(f"- and {len(skills) - len(lines)} more, which are not listed")
            break
        lines.append(line)
    return "\n".join([_OFFER, *lines]) if lines else ""


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE else f"{line[: LINE - 1]}…"


def _first(names: Sequence[str], limit: int = 100) -> Iterable[str]:
    return names if len(names) <= limit else [*names[:limit], f"and {len(names) - limit} more"]
