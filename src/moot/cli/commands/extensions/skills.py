"""The commands of `moot skills`: list, show and check skills, and choose which ones to use."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from anyio import to_thread

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import format_bytes, moment, plural, print_fields, print_table
from moot.cli.console.lines import write_done
from moot.cli.console.output import Output
from moot.cli.context.configuration import configured, here
from moot.cli.context.output import Out
from moot.cli.terminal.prompts.plain import confirm
from moot.config.agents.files import FOLDER as AGENTS
from moot.config.agents.files import SUFFIX
from moot.config.settings import Settings
from moot.errors import NeedsApproval, Refused, UsageError
from moot.guard.hidden import spelled_out
from moot.skills.content import check_files, read_file
from moot.skills.decisions import accept, set_scripts, set_use
from moot.skills.installation import Candidate, changes, check_usable, chosen, create_skill, install, read_entry, read_source, remove
from moot.skills.library import find_skill, find_skills, read_skill, skill_json, skills_like
from moot.skills.market import Entry, matching, read_indexes
from moot.skills.package import text_of
from moot.skills.roots import FOLDER
from moot.types.canonical import Json, JsonObject
from moot.types.skill import SKILL_FILE, Finding, ScriptPolicy, Skill, SkillUse

Name = Annotated[str, Parameter(kind="skill", metavar="NAME", help="Name of the skill.")]

Yes = Annotated[bool, Parameter(name=("--yes", "-y"), help="Don't prompt for confirmation.")]
Index = Annotated[
    list[str] | None, Parameter(metavar="URL", help="URL or path of an index. May be repeated. Defaults to the configured indexes.")
]
Commit = Annotated[str, Parameter(metavar="HASH", help="Full hash of the commit to install, if SOURCE is a Git repository.")]

_SCRIPT_LINES = 200
"""Maximum number of lines of each script to show before a skill is installed."""

_SUMMARY = 72
"""Maximum length of a description in a table."""

_TODO = "Describe the steps here. Put long texts into references/, and programs into scripts/."


def list_skills(
    *words: Annotated[str, Parameter(metavar="WORD", help="Only skills whose name or description contains these words.")],
    category: Annotated[str, Parameter(metavar="CATEGORY", help="Only skills in this category.")] = "",
    tag: Annotated[str, Parameter(metavar="TAG", help="Only skills with this tag.")] = "",
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the skills that are available in this directory."""
    home = configured(output).settings.home
    found = skills_like(find_skills(home, str(here())), " ".join(words), category, tag)
    if json:
        output.json({"data": list[Json](skill_json(skill) for skill in found)})
    elif found:
        print_table(output, ["NAME", "STATUS", "PLACE", "NOTE", "DESCRIPTION"], [_row(skill) for skill in found])
    else:
        output.say("moot: no skills found; add one with: moot skills add FOLDER", "dim")


def _row(skill: Skill) -> list[str]:
    line = " ".join(skill.text.description.split())
    notes = [plural(len(skill.scripts), "script")] if skill.scripts else []
    notes += ["hides text"] if any(finding.hides for finding in skill.text.findings) else []
    text = skill.problem or (line if len(line) <= _SUMMARY else f"{line[: _SUMMARY - 1]}…")
    return [skill.name, skill.status, skill.place, ", ".join(notes) or "-", spelled_out(text)]


def show_skill(
    name: Name,
    /,
    *,
    file: Annotated[
        str,
        Parameter(
            metavar="PATH", help="Print a file from the skill's folder, such as references/guide.md, instead of the skill's details."
        ),
    ] = "",
    json: AsJson = False,
    output: Out,
) -> None:
    """Print a skill: its fields, files, problems and instructions. Hidden characters are shown as names such as `<U+200B>`."""
    skill = find_skill(configured(output).settings.home, name, str(here()))
    if file:
        text = spelled_out(read_file(skill.folder, file).decode("utf-8", "replace"))
        output.json({"name": skill.name, "file": file, "text": text}) if json else output.line(text.removesuffix("\n"))
        return
    findings = _all_findings(skill)
    if json:
        output.json({**skill_json(skill), "body": skill.text.body, "findings": [finding.to_json() for finding in findings]})
        return
    facts: JsonObject = {key: value for key, value in skill_json(skill).items() if value not in ("", [], {}, 0, None)}
    if skill.decision.used_at:
        facts["used_at"] = moment(skill.decision.used_at)
    print_fields(output, facts, json=False)
    output.line("")
    output.line(spelled_out(skill.text.body))
    report_findings(output, skill.folder, findings)


def _all_findings(skill: Skill) -> list[Finding]:
    try:
        return [*skill.text.findings, *check_files(skill.folder)]
    except (Refused, OSError) as error:
        return [*skill.text.findings, Finding(SKILL_FILE, 1, str(error))]


def report_findings(output: Output, folder: Path, findings: list[Finding]) -> None:
    """Print findings with file and line to stderr."""
    for finding in findings:
        level, style = ("error", "red") if finding.is_error else ("warning", "yellow")
        output.say(f"{folder / finding.file}:{finding.line}: {level}: {spelled_out(finding.text)}", style)


def check_skills(
    *folders: Annotated[
        Path, Parameter(metavar="FOLDER", help="Folder that contains a SKILL.md. By default, all skills in this directory are checked.")
    ],
    json: AsJson = False,
    output: Out,
) -> int:
    """Check skills against the specification, and for hidden text. Print each problem with file and line; exit with 1 on errors."""
    paths = [here() / folder for folder in folders] or [
        skill.folder for skill in find_skills(configured(output).settings.home, str(here()))
    ]
    found: dict[Path, list[Finding]] = {}
    for path in paths:
        if not (path / SKILL_FILE).is_file():
            raise UsageError(f"{str(path)!r} has no {SKILL_FILE}.", fix="Specify the folder that contains the file.")
        found[path] = _all_findings(read_skill(path))
    errors = sum(finding.is_error for findings in found.values() for finding in findings)
    if json:
        data: list[Json] = [{"folder": str(path), "findings": [each.to_json() for each in findings]} for path, findings in found.items()]
        output.json({"data": data, "errors": errors})
        return 1 if errors else 0
    for path, findings in found.items():
        for finding in findings:
            level = "error" if finding.is_error else "warning"
            output.line(f"{path / finding.file}:{finding.line}: {level}: {spelled_out(finding.text)}")
    words = f"{plural(errors, 'error')} in {plural(len(found), 'skill')}" if errors else f"{plural(len(found), 'skill')} without errors"
    output.say(f"moot: {words}", "red" if errors else "green")
    return 1 if errors else 0


def new_skill(
    name: Annotated[str, Parameter(metavar="NAME", help="Name of the skill. It can contain lowercase letters, digits and hyphens.")],
    /,
    *,
    description: Annotated[str, Parameter(metavar="TEXT", help="What the skill does, and when to use it.")],
    project: Annotated[bool, Parameter(help="Create the skill in .agents/skills in this directory.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Create a skill with a SKILL.md to fill in."""
    root = here() / ".agents" / FOLDER if project else configured(output).settings.home / FOLDER
    folder = create_skill(root, name, description, f"# {name.replace('-', ' ').capitalize()}\n\n{_TODO}")
    write_done(output, json, {"name": name, "folder": str(folder)}, f"created {folder / SKILL_FILE}")
    if project:
        output.say(f"moot: run 'moot trust {here()}' when it is finished", "dim")


def enable_skill(
    name: Name,
    /,
    *,
    priority: Annotated[
        int | None, Parameter(metavar="NUMBER", help="Priority of the skill. Skills with a higher priority come first in the prompt.")
    ] = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Put a skill's instructions into the prompt of every conversation, starting with the next step."""
    _use(name, "enabled", json, output, priority)


def offer_skill(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Show a skill's name and description to the model, which activates the skill when needed."""
    _use(name, "offered", json, output)


def disable_skill(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Stop using a skill."""
    _use(name, "disabled", json, output)


def _use(name: str, use: SkillUse, json: bool, output: Output, priority: int | None = None) -> None:
    home = configured(output).settings.home
    skill = find_skill(home, name, str(here()))
    set_use(home, skill, use, priority)
    write_done(output, json, {"name": skill.name, "status": use, "digest": skill.digest}, f"{skill.name} is {use}")


def accept_skill(name: Name, /, *, json: AsJson = False, output: Out) -> None:
    """Accept the content of a skill that has changed. Scripts that were allowed need approval again."""
    home = configured(output).settings.home
    skill = find_skill(home, name, str(here()))
    if skill.status != "changed":
        raise UsageError(f"The skill {skill.name!r} has not changed since it was accepted.", fix=skill.problem)
    report_findings(output, skill.folder, [finding for finding in _all_findings(skill) if finding.hides])
    accept(home, skill)
    write_done(output, json, {"name": skill.name, "digest": skill.digest}, f"accepted {skill.name}")


def set_policy(
    name: Name,
    policy: Annotated[
        Literal["never", "ask", "allow"],
        Parameter(metavar="POLICY", help="Policy for the skill's scripts: never run them, ask before each run, or allow them."),
    ],
    /,
    *,
    json: AsJson = False,
    output: Out,
) -> None:
    """Set whether the scripts of a skill may run: never, with an approval for each run, or without approval until the skill changes."""
    home = configured(output).settings.home
    skill = find_skill(home, name, str(here()))
    chosen: ScriptPolicy = policy
    if chosen == "allow" and not skill.scripts:
        raise UsageError(f"The skill {skill.name!r} has no scripts.")
    set_scripts(home, skill, chosen)
    write_done(output, json, {"name": skill.name, "scripts": chosen, "digest": skill.digest}, f"scripts of {skill.name}: {chosen}")


async def add_skill(
    source: Annotated[
        str,
        Parameter(
            metavar="SOURCE", help="Folder, .zip or .tar.gz archive, URL of an archive, Git repository, or name of a skill in an index."
        ),
    ],
    /,
    *,
    commit: Commit = "",
    path: Annotated[str, Parameter(metavar="PATH", help="Folder in the Git repository.")] = "",
    skill: Annotated[
        list[str] | None, Parameter(metavar="NAME", help="Skill to install, if the source contains several. May be repeated.")
    ] = None,
    all_: Annotated[bool, Parameter(help="Install all skills from the source.")] = False,
    index: Index = None,
    yes: Yes = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Show the content of a skill, and install exactly the content shown in moot's home directory."""
    settings = configured(output).settings
    home = settings.home
    found = await read_source(source, here(), commit=commit, path=path, indexes=index_places(index, settings))
    wanted = found if all_ else chosen(found, tuple(skill or ()))
    for candidate in wanted:
        _show_candidate(output, candidate)
        check_usable(candidate)
    names = ", ".join(candidate.name for candidate in wanted)
    if not await confirmed(f"Install {names}?", yes, output):
        return 1
    for candidate in wanted:
        folder = await to_thread.run_sync(install, home, candidate)
        output.say(f"moot: installed {candidate.name} in {folder}", "green")
    if json:
        output.json({"data": [_candidate_json(candidate) for candidate in wanted]})
    return 0


def index_places(given: list[str] | None, settings: Settings) -> list[str]:
    """Return the URLs and absolute paths of the given indexes, or of the configured ones."""
    return [place if "://" in place else str((here() / place).absolute()) for place in given or settings.skill_indexes]


async def search_indexes(
    *words: Annotated[str, Parameter(metavar="WORD", help="Only entries whose name or description contains these words.")],
    index: Index = None,
    json: AsJson = False,
    output: Out,
) -> None:
    """Print the skills and agents in indexes."""
    settings = configured(output).settings
    found = matching(await read_indexes(index_places(index, settings)), " ".join(words))
    known = {skill.name: skill.decision.source.get("sha256") for skill in find_skills(settings.home) if skill.place == "home"}
    if json:
        output.json({"data": list[Json]({**entry.to_json(), "installed": _installed(entry, known, settings)} for entry in found)})
        return
    rows = [[entry.name, entry.kind, _installed(entry, known, settings) or "-", spelled_out(entry.description)] for entry in found]
    if rows:
        print_table(output, ["NAME", "KIND", "INSTALLED", "DESCRIPTION"], rows)
    else:
        output.say("moot: no matches", "dim")


def _installed(entry: Entry, skills: dict[str, Json], settings: Settings) -> str:
    """Return `yes` if the entry is installed, `older` if its installed content differs from the index,
    or an empty string if it is not installed.
    """
    if entry.kind == "agent":
        return "yes" if (settings.home / AGENTS / f"{entry.name}{SUFFIX}").is_file() else ""
    if entry.name not in skills:
        return ""
    return "yes" if skills[entry.name] == entry.sha256 else "older"


def _candidate_json(candidate: Candidate) -> JsonObject:
    return {"name": candidate.name, "digest": candidate.digest, "files": list[Json](sorted(candidate.files)), "source": candidate.source}


def _show_candidate(output: Output, candidate: Candidate) -> None:
    """Print the content of a skill to review before installing it: its files, instructions and scripts."""
    text = candidate.text
    output.say(f"{candidate.name}: {spelled_out(' '.join(text.description.split()))}", "bold")
    if text.allowed_tools:
        output.say(
            f"  expects these tools, which moot does not allow automatically: {spelled_out(', '.join(text.allowed_tools))}", "yellow"
        )
    for name, data in sorted(candidate.files.items()):
        output.say(f"  {spelled_out(name)}  {format_bytes(len(data))}", "dim")
    output.say(spelled_out(text.body))
    for name in sorted(candidate.files):
        if name.startswith("scripts/") and b"\0" not in candidate.files[name]:
            lines = spelled_out(text_of(candidate.files, name)).splitlines()
            output.say(f"── {spelled_out(name)}", "yellow")
            output.say("\n".join(lines[:_SCRIPT_LINES]))
            if len(lines) > _SCRIPT_LINES:
                output.say(f"({len(lines) - _SCRIPT_LINES:,} more lines)", "yellow")
    report_findings(output, Path(candidate.name), list(candidate.findings))
    output.say(f"  content hash: {candidate.digest}", "dim")


async def confirmed(question: str, yes: bool, output: Output) -> bool:
    """Return whether the user confirms. Raise NeedsApproval if there is no terminal to ask."""
    if yes:
        return True
    if not output.attended:
        raise NeedsApproval(f"{question} This needs confirmation.", fix="Review the content, then use --yes.")
    if await confirm(question, output):
        return True
    output.say("moot: nothing was changed", "dim")
    return False


async def update_skill(
    name: Name,
    /,
    *,
    commit: Commit = "",
    yes: Yes = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Install the current content of a skill's source, after showing the changes. Scripts that were allowed need approval again."""
    home = configured(output).settings.home
    skill = find_skill(home, name, str(here()))
    source = skill.decision.source
    if skill.place != "home" or not source:
        raise UsageError(f"The skill {skill.name!r} was not installed by moot.", fix="moot skills add SOURCE")
    if source.get("kind") == "git" and not commit:
        raise UsageError(
            f"The skill {skill.name!r} is pinned to a commit. Specify the new commit.", fix=f"moot skills update {skill.name} --commit HASH"
        )
    (candidate,) = chosen(await _current(skill, source, commit), (skill.name,))
    if candidate.digest == skill.digest:
        write_done(output, json, {"name": skill.name, "updated": False, "digest": skill.digest}, f"{skill.name} is up to date")
        return 0
    difference = await to_thread.run_sync(changes, skill, candidate)
    _show_candidate(output, candidate)
    for sign, paths in (("+", difference.added), ("~", difference.changed), ("-", difference.removed)):
        for each in paths:
            output.say(f"  {sign} {spelled_out(each)}")
    check_usable(candidate)
    if not await confirmed(f"Update {skill.name}?", yes, output):
        return 1
    await to_thread.run_sync(partial(install, home, candidate, update=True))
    write_done(output, json, {"name": skill.name, "updated": True, "digest": candidate.digest}, f"updated {skill.name}")
    return 0


async def _current(skill: Skill, source: JsonObject, commit: str) -> list[Candidate]:
    """Return the skills that the source of an installed skill currently contains."""
    place = str(source.get("url") or source.get("path"))
    if source.get("kind") == "index":
        return [await read_entry(skill.name, [place])]
    return await read_source(place, here(), commit=commit, path=str(source.get("path", "")) if commit else "")


async def remove_skill(name: Name, /, *, yes: Yes = False, json: AsJson = False, output: Out) -> int:
    """Delete a skill from moot's home directory."""
    home = configured(output).settings.home
    skill = find_skill(home, name, str(here()))
    if not await confirmed(f"Delete {skill.folder}?", yes, output):
        return 1
    await to_thread.run_sync(remove, home, skill)
    write_done(output, json, {"name": skill.name, "removed": True}, f"removed {skill.name}")
    return 0
