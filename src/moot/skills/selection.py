"""The skills that a step of a run offers, and their use by its tools."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread

from moot.config.plugins.content import digest_of
from moot.config.settings import Settings
from moot.errors import NotFound, Refused
from moot.plugins.registry import hint
from moot.skills.content import copy_to
from moot.skills.library import find_skills, select
from moot.skills.prompt import bounded
from moot.types.agent import Agent
from moot.types.conversation import Conversation
from moot.types.skill import REVISION, ScriptRun, Skill, SkillSelection
from moot.types.token import LOCAL_USER

ACTIVATE = "activate_skill"
SCRIPT = "run_skill_script"
SHELL = "shell"

_INTERPRETERS = {".py": "python3", ".sh": "bash", ".bash": "bash", ".js": "node", ".mjs": "node", ".rb": "ruby", ".pl": "perl"}


async def selected(
    settings: Settings, agent: Agent, conversation: Conversation, boundary: str = "", *, small: bool = False, hashed: bool = False
) -> SkillSelection:
    """Return the skills of a step. The content of skills is read again if it has changed.

    Small models get only skills that the agent or the conversation names. An agent that lists its
    tools is offered skills only if it also names skills, or lists the tool that activates them.
    """
    chosen = conversation.own_settings.skills
    if chosen == () or (small and agent.skills is None and chosen is None):
        return SkillSelection()
    is_local = conversation.owner == LOCAL_USER

    def find() -> list[Skill]:
        return find_skills(settings.home, conversation.directory, is_local=is_local, boundary=boundary, hashed=hashed)

    found = bounded(select(await to_thread.run_sync(find), agent.skills, chosen))
    offers = agent.tools is None or ACTIVATE in agent.tools or (agent.tools != () and agent.skills is not None)
    return found if offers else SkillSelection((), found.enabled)


def tools_of(selection: SkillSelection, agent: Agent) -> tuple[str, ...]:
    """Return the names of the tools that the selected skills need. Only agents that may run commands get the tool that runs scripts."""
    has_scripts = any(skill.scripts and skill.decision.scripts != "never" for skill in selection.all)
    has_files = any(skill.files for skill in selection.enabled)
    if agent.tools == () or not (selection.offered or has_files):
        return ()
    may_run = agent.role != "read" and (agent.tools is None or not {SCRIPT, SHELL}.isdisjoint(agent.tools))
    return (ACTIVATE, SCRIPT) if has_scripts and may_run else (ACTIVATE,)


def named(selection: SkillSelection | None, name: str) -> Skill:
    """Return a selected skill. Raise NotFound if it is not selected."""
    skills = selection.all if selection is not None else ()
    found = next((skill for skill in skills if skill.name == name), None)
    if found is None:
        names = [skill.name for skill in skills]
        raise NotFound(f"Skill {name!r} not found.{hint(name, names)}", fix=f"Skills: {', '.join(names) or 'none'}.")
    return found


def prepare(skill: Skill, revision: str, command: str, parent: Path) -> ScriptRun:
    """Copy a skill into a new folder in `parent` to run one of its scripts, and check the content of the copy.

    Raise Refused if it may not run. Blocks.
    """
    if skill.decision.scripts == "never":
        raise Refused(f"The scripts of the skill {skill.name!r} are turned off.", fix="Do the task without them, or ask the user.")
    if revision != skill.digest[:REVISION]:
        raise Refused(f"{revision!r} is not the current revision of the skill {skill.name!r}.", fix="Activate the skill again.")
    words = _words(skill, command)
    folder = Path(tempfile.mkdtemp(prefix="skill-", dir=parent))
    copy = folder / skill.name
    try:
        copy_to(skill.folder, copy)
        if digest_of(copy) != skill.digest:
            raise Refused(f"The skill {skill.name!r} was changed while it was being copied.", fix="Activate it again.")
        return ScriptRun(shlex.join([*_program(copy / words[0]), *words[1:]]), folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _words(skill: Skill, command: str) -> Sequence[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Refused(f"The command can't be parsed: {str(error).lower()}.") from error
    script = words[0].removeprefix("./") if words else ""
    if script not in skill.scripts:
        raise Refused(f"{script!r} is not a script of the skill.", fix=f"Scripts: {', '.join(skill.scripts) or 'none'}.")
    return [script, *words[1:]]


def _program(path: Path) -> list[str]:
    """Return the words of the command that starts a script: its interpreter, or the file itself if it is a program."""
    if interpreter := _INTERPRETERS.get(path.suffix):
        return [interpreter, str(path)]
    if not path.stat().st_mode & 0o100:
        raise Refused(f"{path.name!r} can't be run: its interpreter is unknown.", fix="Begin the script with a line such as #!/bin/sh.")
    return [str(path)]
