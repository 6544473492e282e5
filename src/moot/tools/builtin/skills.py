"""The tools for skills: read a skill's instructions, and run its scripts."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace

from anyio import to_thread
from pydantic import BaseModel, Field

from moot.guard.hidden import spelled_out
from moot.guard.processes import child_environment
from moot.tools.basics import BaseTool, LookupTool, title
from moot.tools.builtin.shell import MAX_SECONDS, SECONDS, foreground
from moot.tools.jobs import start
from moot.types.skill import REVISION, Skill
from moot.types.tool import ToolContext, ToolOutput, View


class ActivateSkillArguments(BaseModel):
    name: str = Field(min_length=1, max_length=64, description="Name of the skill")
    file: str = Field(default="", max_length=500, description="A file of the skill to read instead, such as references/guide.md")


class ActivateSkill(LookupTool):
    """The `activate_skill` tool. It reads only skills that the run was offered, so no permission mode asks about it."""

    name = "activate_skill"
    description = "Get the instructions of a skill from the list of skills, or read one of its files."
    arguments = ActivateSkillArguments
    effects = frozenset({"read"})
    hidden = True
    needs_folder = False
    examples = ({"user": "Fill in this form.", "arguments": {"name": "pdf-forms"}},)

    async def call(self, arguments: ActivateSkillArguments, context: ToolContext) -> ToolOutput:
        skills = context.services.skills
        if arguments.file:
            data = await skills.read(arguments.name, arguments.file)
            if b"\0" in data:
                return ToolOutput(f"{arguments.file!r} is not a text file.", error=True)
            return ToolOutput(spelled_out(data.decode("utf-8-sig", "replace")) or "The file is empty.")
        skill = await skills.activate(arguments.name)
        value = {"name": skill.name, "digest": skill.digest, "folder": str(skill.folder)}
        return ToolOutput("\n\n".join([spelled_out(skill.text.body) or "The skill has no instructions.", *_about_files(skill)]), {**value})

    def doing(self, arguments: ActivateSkillArguments) -> View:
        if arguments.file:
            return View(title("Read", f"{arguments.file} of the skill {arguments.name}"))
        return View(title("Use the skill", arguments.name))

    def done(self, arguments: ActivateSkillArguments, output: ToolOutput) -> View:
        return View(self.doing(arguments).title, "", output.text, "markdown")


def _about_files(skill: Skill) -> list[str]:
    others = [file for file in skill.files if file not in skill.scripts]
    found: list[str] = []
    if others:
        found.append(f"Files of this skill, to read with activate_skill and `file`: {_listed(others)}")
    if skill.scripts and skill.decision.scripts != "never":
        found.append(
            f"Scripts of this skill, to run with run_skill_script (revision {skill.digest[:REVISION]}): {_listed(list(skill.scripts))}"
        )
    return found


def _listed(files: list[str], limit: int = 100) -> str:
    more = [f"and {len(files) - limit} more"] if len(files) > limit else []
    return ", ".join([*map(spelled_out, files[:limit]), *more])


class RunSkillScriptArguments(BaseModel):
    skill: str = Field(min_length=1, max_length=64, description="Name of the skill")
    revision: str = Field(min_length=1, max_length=64, description="Revision that activate_skill has shown")
    command: str = Field(min_length=1, max_length=20_000, description="Script and its arguments, such as: scripts/fill.py form.pdf")
    timeout: float = Field(default=SECONDS, gt=0, le=MAX_SECONDS, description="Seconds until it is killed")


class RunSkillScript(BaseTool):
    """The `run_skill_script` tool.

    The revision identifies the skill's content, so an approval of the call applies only to that content. The script runs from
    a checked copy of the skill, in the same sandbox as other commands.
    """

    name = "run_skill_script"
    description = "Run a script of a skill that you have activated, in the conversation's folder."
    arguments = RunSkillScriptArguments
    effects = frozenset({"execute"})
    hidden = True

    async def call(self, arguments: RunSkillScriptArguments, context: ToolContext) -> ToolOutput:
        run = await context.services.skills.prepare(arguments.skill, arguments.revision, arguments.command)
        try:
            sandbox = await context.confinement(run.line)
            if sandbox is not None:
                sandbox = replace(sandbox, readable=(*sandbox.readable, run.folder))
            env = {**child_environment(), "PYTHONDONTWRITEBYTECODE": "1"}
            job = await start(run.line, cwd=context.directory, env=env, note=context.note, sandbox=sandbox)
            with closing(job.spool):
                return await foreground(job, context, arguments.timeout, advice="tell the user")
        finally:
            await to_thread.run_sync(shutil.rmtree, run.folder, True)

    def doing(self, arguments: RunSkillScriptArguments) -> View:
        return View(title("Run", f"{arguments.command} of the skill {arguments.skill}"), "", arguments.command, "bash")
