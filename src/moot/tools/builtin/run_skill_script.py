"""run_skill_script: run a skill's script, if the user has allowed it."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import replace

from anyio import to_thread
from pydantic import BaseModel, Field

from moot.guard.processes import child_environment
from moot.tools.basics import BaseTool, title
from moot.tools.builtin.shell import MAX_SECONDS, SECONDS, foreground
from moot.tools.jobs import start
from moot.types.tool import ToolContext, ToolOutput, View


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
