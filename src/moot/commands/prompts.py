"""Slash commands that send a prepared prompt, /init, /review, /commit and /plan, and /skill, which lists and enables skills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from anyio import to_thread

from moot.commands.command import BaseCommand, Choice, CommandContext, Notice, Reply, Send
from moot.commands.custom import CustomCommand, Situation
from moot.errors import Refused, UsageError
from moot.guard.hidden import spelled_out
from moot.plugins.registry import hint
from moot.skills.library import find_skills
from moot.types.canonical import Json
from moot.types.command import BUILT_IN, CommandDefinition, CommandFacts
from moot.types.findings import FINDINGS
from moot.types.skill import Skill
from moot.types.token import LOCAL_USER

_INIT = """\
Write the file AGENTS.md in the root of this project: what a programmer, or another agent, must know before the first change.
Look around first: the README, the build files, the folders, the tests. If AGENTS.md exists, keep what is right and correct the rest.

Write at most 60 lines, in this order: one sentence about the project; the commands to build, test (also one single test), lint and run it;
the folders and what each contains; conventions that the code follows and that are not obvious; pitfalls.
Write only what you have verified. Leave out general advice.

$ARGUMENTS"""

_REVIEW = """\
Review these changes: $ARGUMENTS

Without a name above, review the uncommitted changes of this repository. Otherwise it names a commit, a branch, a range such as main..HEAD,
or files. Get the diff with git, and read the code around it. Change nothing.

Report only problems: the worst first, one per paragraph, each starting with its place as path:line, such as src/app.py:40, then what goes
wrong and when, then a fix. Name behavior that no test covers. If there are no problems, say so in one sentence."""

_COMMIT = """\
Commit the changes in this repository.

Current state: !`git status --short --branch`
Changes: !`git diff --stat HEAD`
Recent subjects: !`git log --oneline -10`

If files are staged, commit only those. Otherwise stage the changes that belong together, and no secrets, build results or unrelated files.
Write the message in the style of the recent ones: a subject in the imperative of at most 72 characters, and a body that says why if that is
not obvious. Don't push. Then answer with the commit's id and subject.

$ARGUMENTS"""


def _definition(name: str, prompt: str, help: str, argument: str, *examples: str, repository: bool = False) -> CommandDefinition:
    requires = ("repository",) if repository else ("folder",)
    return CommandDefinition(
        CommandFacts(name, help, argument, "project", "prompt", requires=requires, examples=examples, origin=BUILT_IN), prompt
    )


class InitCommand(CustomCommand):
    """`/init`."""

    def __init__(self) -> None:
        about = "Let the agent write AGENTS.md, which describes the project to agents"
        super().__init__(_definition("init", _INIT, about, "[FOCUS]", "/init", "/init the tests are the difficult part"))


class ReviewCommand(CustomCommand):
    """`/review`. The code locations in its answer are stored as data, so that user interfaces can list and link them."""

    def __init__(self) -> None:
        about = "Let the agent review uncommitted changes, a commit, a branch or files"
        super().__init__(_definition("review", _REVIEW, about, "[COMMIT|BRANCH|PATH …]", "/review", "/review main..HEAD", repository=True))

    async def replies(self, situation: Situation, argument: str) -> Sequence[Reply]:
        found = await super().replies(situation, argument)
        return [replace(reply, settings={**reply.settings, FINDINGS: True}) if isinstance(reply, Send) else reply for reply in found]


class CommitCommand(CustomCommand):
    """`/commit`."""

    def __init__(self) -> None:
        about = "Let the agent commit the changes in the repository"
        super().__init__(_definition("commit", _COMMIT, about, "[INSTRUCTIONS]", "/commit", "/commit only the docs", repository=True))


class PlanCommand(BaseCommand):
    help = "Switch to the read-only mode plan, and send a prompt if given"
    argument = "[PROMPT]"
    category = "settings"
    examples = ("/plan add a dark theme",)

    async def run(self, context: CommandContext, argument: str) -> Sequence[Reply]:
        context.overrides.mode = "plan"
        await context.store_settings({"mode": "plan"})
        notice = Notice("Mode set to plan: read only. Leave it with /mode.", "dim")
        return [notice, Send(argument, mode="plan")] if argument else [notice]


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
            raise UsageError(f"Skill {name!r} not found.{hint(name, list(known))}", fix="Use /skill to list the skills.")
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
