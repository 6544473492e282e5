"""The command `moot trust`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.output import Out
from moot.config.agents.files import SUFFIX, read_agent
from moot.config.agents.project import PLACES, agent_files_of
from moot.config.changes import check_text
from moot.config.commands import FOLDER as COMMANDS_FOLDER
from moot.config.commands import PLACES as COMMAND_PLACES
from moot.config.commands import command_files_of, read_command
from moot.config.home import home_of, read_text
from moot.config.loader import load, project_file
from moot.config.trust import revoke_trust, trust_content, trust_file, trusted_files
from moot.errors import ConfigError, UsageError
from moot.guard.hidden import warning_of
from moot.guard.terminal import visible
from moot.skills.library import find_skills
from moot.skills.roots import project_places
from moot.types.canonical import Json
from moot.types.skill import SKILL_FILE, Skill


def trust(
    folder: Annotated[Path | None, Parameter(help="Folder of the project. Defaults to the current folder.")] = None,
    /,
    *,
    revoke: Annotated[bool, Parameter(help="Stop trusting the project.")] = False,
    list_: Annotated[bool, Parameter(help="List the trusted files.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Trust a project's .moot/config.yaml, agents, commands and skills until they change. Without trust, they are ignored."""
    home = home_of(os.environ)
    if list_:
        names = sorted(trusted_files(home))
        if json:
            output.json({"data": list[Json](names)})
        for name in () if json else names:
            output.line(name)
        return
    directory = (here() / folder) if folder is not None else here()
    agents = agent_files_of(directory.absolute(), home)
    paths = [path for path in (project_file(directory), *agents, *command_files_of(directory.absolute(), home)) if path.is_file()]
    skills = [skill for skill in find_skills(home, str(directory.absolute()), hashed=True) if skill.place == "project"]
    files = [skill.folder / SKILL_FILE for skill in skills]
    if revoke:
        revoked = [path for path in (project_file(directory), *paths, *files) if revoke_trust(home, path)]
        if not revoked:
            raise UsageError(f"No file in the project {str(directory)!r} is trusted.", fix="moot trust --list")
        _report(output, json, revoked, False)
        return
    texts = {path: text for path in paths if (text := read_text(path)).strip()}
    if not texts and not skills:
        raise UsageError(
            f"{project_file(directory)} does not exist or is empty, and the project has no agents, commands or skills.",
            fix=f"Use a folder that contains one of: .moot/config.yaml, {', '.join((*PLACES, *COMMAND_PLACES))}, {project_places()}.",
        )
    valid = [path for path, text in texts.items() if _is_valid(path, text, output, only=len(texts) == 1)]
    for path in valid:
        trust_file(home, path, texts[path])
        if warning := warning_of(texts[path]):
            output.say(f"moot: {path} contains {warning}", "yellow")
    _report(output, json, [*valid, *_trusted_skills(home, skills, output)], True)
    if project_file(directory) in valid and not json:
        _show_hooks(output, directory.absolute(), home)


def _trusted_skills(home: Path, skills: list[Skill], output: Output) -> list[Path]:
    """Trust the valid skills with their current content, and report the others. Return the files of the trusted skills."""
    for skill in skills:
        if skill.status == "invalid":
            output.say(f"moot: the skill {skill.name} was not trusted: {skill.problem}", "yellow")
    valid = [skill for skill in skills if skill.status != "invalid" and skill.digest]
    for skill in valid:
        trust_content(home, skill.folder / SKILL_FILE, skill.digest)
        if any(finding.hides for finding in skill.text.findings):
            output.say(f"moot: {skill.folder / SKILL_FILE} contains text that viewers don't show", "yellow")
        if skill.scripts:
            output.say(f"moot: the skill {skill.name} has scripts, which need approval to run", "yellow")
    return [skill.folder / SKILL_FILE for skill in valid]


def _show_hooks(output: Output, directory: Path, home: Path) -> None:
    """Print the hooks and checks of a trusted project, because their commands run without approval."""
    settings = load(home=home, environ=os.environ, directory=directory).settings
    hooks = settings.hooks
    lines = [f"  {event}: {visible(hook.command)}" for event, listed in hooks.items() for hook in listed if hook.folder]
    if lines:
        output.say("moot: the project's hooks run outside the sandbox, with your permissions:", "yellow")
    for line in lines:
        output.say(line)
    checks = [f"  {check.pattern}: {visible(check.command)}" for check in settings.checks if check.folder]
    if checks:
        output.say("moot: these project commands run in the sandbox after edits, without approval:", "yellow")
    for line in checks:
        output.say(line)


def _is_valid(path: Path, text: str, output: Output, *, only: bool) -> bool:
    """Return whether the file is valid, and report an invalid agent or command.

    Raise ConfigError if the configuration file is invalid. If `only` is True, also raise it for an invalid agent or command.
    """
    is_command = COMMANDS_FOLDER in path.parts
    if path.suffix != SUFFIX and not is_command:
        check_text(text, path, os.environ)
        return True
    try:
        if is_command:
            read_command(path.stem, path, text)
        else:
            read_agent(path, text)
    except ConfigError as error:
        if only:
            raise
        output.say(f"moot: {error.message}", "yellow")
        return False
    return True


def _report(output: Output, as_json: bool, paths: list[Path], trusted: bool) -> None:
    if as_json:
        output.json({"file": str(paths[0]) if paths else None, "files": [str(path) for path in paths], "trusted": trusted})
        return
    for path in paths:
        output.say(f"moot: {path} is {'trusted until it changes' if trusted else 'no longer trusted'}")
