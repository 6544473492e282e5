"""Routes for skills: list, show, enable, disable, accept, install and delete them."""

from __future__ import annotations

from functools import partial
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal, TypeAlias

from anyio import to_thread
from fastapi import Path, Query
from pydantic import Field

from moot.errors import Refused, UsageError
from moot.guard.hidden import spelled_out
from moot.server.auth import Operator, Router
from moot.server.credentials import Caller
from moot.server.idempotency import CurrentAttempt
from moot.server.models import In, ListOut, Out, ShownPath
from moot.server.problems import Problem
from moot.server.state import CurrentServer, Server
from moot.skills import installation
from moot.skills.content import check_files, is_name
from moot.skills.decisions import accept, set_scripts, set_use
from moot.skills.installation import Candidate, install, read_entry, read_source, remove
from moot.skills.library import find_skill, find_skills, skill_json, skills_like
from moot.skills.market import Entry, matching, read_indexes
from moot.skills.roots import FOLDER
from moot.types.skill import SKILL_FILE, Finding, ScriptPolicy, Skill, SkillPlace, SkillStatus, SkillUse


class SkillFindingOut(Out, of=Finding, fields="file line text is_error hides"):
    """A problem with a skill."""


class SkillOut(Out):
    """A skill, without its instructions."""

    name: str
    description: str
    status: SkillStatus
    problem: str
    """Why the skill is not used, if you can change that; otherwise empty."""
    place: SkillPlace
    folder: ShownPath
    category: str
    tags: list[str]
    icon: str
    forked_from: str
    license: str
    compatibility: str
    allowed_tools: list[str]
    """Tools that the author expects to be allowed. This list does not grant permission to use them."""
    metadata: dict[str, Any]
    files: list[ShownPath]
    has_reference: bool
    """True if the skill has a `REFERENCE.md`."""
    scripts: ScriptPolicy
    script_files: list[ShownPath]
    priority: int
    source: dict[str, Any]
    """The place from which moot installed the skill; empty otherwise."""
    used_at: int
    """Time of the last activation in ms; 0 = never."""
    hides_text: bool
    """True if `SKILL.md` contains text that viewers don't show but models read."""
    digest: str
    """Hash of all files."""


class SkillDetailOut(SkillOut):
    """A skill with its instructions."""

    body: str
    """The instructions. Hidden characters are shown as names such as `<U+200B>`."""
    findings: list[SkillFindingOut]


class SkillIn(In):
    """The settings of a skill to change."""

    use: SkillUse | None = None
    priority: Annotated[int, Field(ge=-1000, le=1000)] | None = None
    scripts: ScriptPolicy | None = None


class SkillDigestIn(In):
    """The content to accept."""

    digest: Annotated[str, Field(min_length=64, max_length=64)]
    """The `digest` of the skill that you have reviewed."""


class SkillTextIn(SkillDigestIn):
    """The description and instructions of a skill. `digest` detects concurrent changes."""

    description: Annotated[str, Field(max_length=4000)]
    body: Annotated[str, Field(max_length=500_000)]


class NewSkillIn(In):
    """A skill to create."""

    name: Annotated[str, Field(max_length=200)]
    description: Annotated[str, Field(max_length=4000)]
    """Purpose of the skill, and when to use it."""
    body: Annotated[str, Field(max_length=500_000)]
    """The instructions, as Markdown."""


class SkillSourceIn(In):
    """A source of skills."""

    source: Annotated[str, Field(min_length=1, max_length=4096)]
    """Absolute path of a folder or an archive on the server's machine, URL of an archive, Git repository, or name in an index."""
    commit: Annotated[str, Field(max_length=64)] = ""
    """Full hash of a commit, if the source is a Git repository."""
    path: Annotated[str, Field(max_length=1000)] = ""
    """Folder in the Git repository."""


class SkillInstallIn(SkillSourceIn):
    """A skill to install."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    digest: Annotated[str, Field(min_length=64, max_length=64)]
    """The `digest` from the preview. Only this content is installed."""


class SkillCandidateOut(Out):
    """A skill in a source, before it is installed."""

    name: str
    description: str
    allowed_tools: list[str]
    body: str
    files: list[ShownPath]
    findings: list[SkillFindingOut]
    digest: str


class IndexEntryOut(Out, of=Entry, fields="kind name description category tags sha256 index"):
    """A skill or an agent in an index."""

    kind: Literal["skill", "agent"]
    tags: list[str]


SkillName: TypeAlias = Annotated[str, Path(max_length=64, description="Name of the skill.")]
InProject = Annotated[str | None, Query(alias="project", max_length=200, description="Id or name of the project whose skills to include.")]
Text = Annotated[str, Query(max_length=200)]

router = Router(prefix="/api/skills", tags=["skills"])
indexes_router = Router(prefix="/api/skill-indexes", tags=["skills"])


def _shown(skill: Skill) -> SkillOut:
    return SkillOut.model_validate(skill_json(skill))


def _findings(found: list[Finding]) -> list[SkillFindingOut]:
    return [SkillFindingOut.of(finding) for finding in found]


def _detail(skill: Skill) -> SkillDetailOut:
    try:
        findings = [*skill.text.findings, *check_files(skill.folder)]
    except (Refused, OSError) as error:
        findings = [*skill.text.findings, Finding(SKILL_FILE, 1, str(error))]
    return SkillDetailOut.model_validate({**skill_json(skill), "body": spelled_out(skill.text.body), "findings": _findings(findings)})


async def _folder(caller: Caller, project: str | None) -> str:
    return (await caller.store.projects.get(project)).root_path or "" if project else ""


async def _found(server: Server, caller: Caller, name: str, project: str | None) -> Skill:
    folder = await _folder(caller, project)
    return await to_thread.run_sync(find_skill, server.engine.settings.home, name, folder)


@router.get("")
async def list_skills(
    server: CurrentServer, caller: Operator, q: Text = "", category: Text = "", tag: Text = "", project: InProject = None
) -> ListOut[SkillOut]:
    """List the skills in moot's home, in shared folders and, with `project`, in a project, the nearest first."""
    find = partial(find_skills, server.engine.settings.home, await _folder(caller, project), hashed=True)
    found = skills_like(await to_thread.run_sync(find), q, category, tag)
    return ListOut(data=[_shown(skill) for skill in found])


@router.get("/{name}")
async def get_skill(server: CurrentServer, caller: Operator, name: SkillName, project: InProject = None) -> SkillDetailOut:
    """Get a skill with its instructions and problems."""
    skill = await _found(server, caller, name, project)
    return await to_thread.run_sync(_detail, skill)


@router.patch("/{name}")
async def change_skill(
    server: CurrentServer, caller: Operator, name: SkillName, body: SkillIn, project: InProject = None
) -> SkillDetailOut:
    """Offer, enable or disable a skill, and set whether its scripts may run. Decisions apply to the current content only."""
    skill, home = await _found(server, caller, name, project), server.engine.settings.home
    if body.use is not None or body.priority is not None:
        await to_thread.run_sync(set_use, home, skill, body.use or skill.decision.use, body.priority)
    if body.scripts is not None:
        await to_thread.run_sync(set_scripts, home, skill, body.scripts)
    return await get_skill(server, caller, name, project)


@router.post("/{name}/accept")
async def accept_skill(
    server: CurrentServer, caller: Operator, name: SkillName, body: SkillDigestIn, project: InProject = None
) -> SkillDetailOut:
    """Accept the content of a skill that has changed. Return 409 if `digest` is not its current content."""
    skill = await _found(server, caller, name, project)
    if skill.status != "changed" or skill.digest != body.digest:
        raise Problem(409, f"The skill {name!r} has changed since you loaded it.", fix="Load it again, and review it.")
    await to_thread.run_sync(accept, server.engine.settings.home, skill)
    return await get_skill(server, caller, name, project)


@router.post("/new", status_code=201)
async def create_skill(server: CurrentServer, caller: Operator, attempt: CurrentAttempt, body: NewSkillIn) -> SkillDetailOut:
    """Create a skill in moot's home. Errors name the invalid fields."""
    root = server.engine.settings.home / FOLDER
    if not (attempt.repeated and (root / body.name).exists()):
        await to_thread.run_sync(installation.create_skill, root, body.name, body.description, body.body)
    return await get_skill(server, caller, body.name)


@router.put("/{name}/text")
async def change_skill_text(server: CurrentServer, caller: Operator, name: SkillName, body: SkillTextIn) -> SkillDetailOut:
    """Change the description and instructions of a skill in moot's home. Return 409 if `digest` is not its current content.

    Other fields of `SKILL.md` are kept. An accepted skill stays accepted, but scripts that were allowed need approval again.
    """
    skill = await _found(server, caller, name, None)
    if skill.digest != body.digest:
        raise Problem(409, f"The skill {name!r} has changed since you loaded it.", fix="Load it again, and repeat your change.")
    await to_thread.run_sync(installation.change_skill, server.engine.settings.home, skill, body.description, body.body)
    return await get_skill(server, caller, name)


@router.post("/preview")
async def preview_skills(server: CurrentServer, _: Operator, body: SkillSourceIn) -> ListOut[SkillCandidateOut]:
    """Read the skills in a folder, an archive, a Git commit or an index without installing anything."""
    return ListOut(data=[_candidate(candidate) for candidate in await _candidates(server, body)])


@router.post("", status_code=201)
async def install_skill(server: CurrentServer, caller: Operator, body: SkillInstallIn) -> SkillDetailOut:
    """Install a skill in moot's home. Return 409 if its content differs from the preview."""
    candidate = next((each for each in await _candidates(server, body) if each.name == body.name), None)
    if candidate is None or candidate.digest != body.digest:
        raise Problem(409, f"The skill {body.name!r} has changed since you loaded it.", fix="Load it again, and review it.")
    await to_thread.run_sync(install, server.engine.settings.home, candidate)
    return await get_skill(server, caller, body.name)


@router.delete("/{name}")
async def delete_skill(server: CurrentServer, caller: Operator, name: SkillName) -> SkillOut:
    """Delete a skill from moot's home."""
    skill = await _found(server, caller, name, None)
    await to_thread.run_sync(remove, server.engine.settings.home, skill)
    return _shown(skill)


@indexes_router.get("")
async def list_index_entries(server: CurrentServer, _: Operator, q: Text = "") -> ListOut[IndexEntryOut]:
    """List the skills and agents in the configured indexes."""
    places = server.engine.runtime.settings.skill_indexes
    found = matching(await read_indexes(places), q) if places else []
    return ListOut(data=[IndexEntryOut.of(entry, tags=[*entry.tags]) for entry in found])


async def _candidates(server: Server, body: SkillSourceIn) -> list[Candidate]:
    indexes = server.engine.runtime.settings.skill_indexes
    if is_name(body.source):
        return [await read_entry(body.source, indexes)]
    if "://" not in body.source and not FilePath(body.source).is_absolute() and "@" not in body.source:
        raise UsageError(f"{body.source!r} is neither an absolute path, a URL nor the name of a skill in an index.")
    return await read_source(body.source, FilePath("/"), commit=body.commit, path=body.path)


def _candidate(candidate: Candidate) -> SkillCandidateOut:
    return SkillCandidateOut(
        name=candidate.name,
        description=spelled_out(candidate.text.description),
        allowed_tools=[*candidate.text.allowed_tools],
        body=spelled_out(candidate.text.body),
        files=sorted(candidate.files),
        findings=_findings([*candidate.findings]),
        digest=candidate.digest,
    )
