"""The tools that ask the user: questions with or without choices, and whether to carry out a plan made in mode `plan`."""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel, Field

from moot.tools.basics import BaseTool, count
from moot.types.agent import Mode
from moot.types.canonical import Json
from moot.types.tool import Option, Question, ToolContext, ToolOutput, View


class Choice(BaseModel):
    label: str = Field(min_length=1, max_length=100)
    description: str = Field(default="", max_length=500)


class QuestionArguments(BaseModel):
    question: str = Field(min_length=1, max_length=2000)
    header: str = Field(default="", max_length=40, description="A word or two")
    options: list[Choice] = Field(default=[], max_length=8, description="Choices; the user can always answer in their own words")
    multiple: bool = Field(default=False, description="Allow several choices")


class AskUserArguments(BaseModel):
    questions: list[QuestionArguments] = Field(min_length=1, max_length=4)


class AskUser(BaseTool):
    """The `ask_user` tool. Asking is its only effect, so the call can be restarted when the answer arrives."""

    name = "ask_user"
    description = "Ask the user when you can't continue without an answer."
    arguments = AskUserArguments
    idempotent = True
    needs_folder = False
    effects = frozenset({"read"})
    examples = (
        {"user": "Delete the old file", "arguments": {"questions": [{"question": "Which file do you mean?"}]}},
        {
            "user": "Set up a project",
            "arguments": {
                "questions": [{"question": "Which language?", "header": "Language", "options": [{"label": "Python"}, {"label": "Go"}]}]
            },
        },
    )

    async def call(self, arguments: AskUserArguments, context: ToolContext) -> ToolOutput:
        replies = await context.ask(tuple(_question(item) for item in arguments.questions))
        lines = [
            f"{item.question}\n{', '.join(reply) or '(no answer)'}"
            for item, reply in zip(arguments.questions, [*replies, *[()] * len(arguments.questions)], strict=False)
        ]
        return ToolOutput("\n\n".join(lines), cast("Json", [list(reply) for reply in replies]))

    def doing(self, arguments: AskUserArguments) -> View:
        return View("Ask", count(len(arguments.questions), "question"), "\n".join(item.question for item in arguments.questions))

    def done(self, arguments: AskUserArguments, output: ToolOutput) -> View:
        return View("Asked", count(len(arguments.questions), "question"), output.text)


def _question(item: QuestionArguments) -> Question:
    options = tuple(Option(choice.label, choice.description) for choice in item.options)
    return Question(item.header or "Question", item.question, options, item.multiple)


ACCEPT, ACCEPT_EDITS, REVISE, REJECT = "Accept", "Accept and allow edits", "Revise", "Reject"

_OPTIONS = (
    Option(ACCEPT, "Carry it out; changes need your approval"),
    Option(ACCEPT_EDITS, "Carry it out; files in this folder are changed without approval"),
    Option(REVISE, "Change the plan first; or answer with the changes that you want"),
    Option(REJECT, "Change nothing"),
)
_CHOICES = {option.label for option in _OPTIONS}
_MODES: dict[str, Mode] = {ACCEPT: "ask", ACCEPT_EDITS: "edits"}


class ExitPlanArguments(BaseModel):
    plan: str = Field(min_length=1, max_length=50_000, description="The whole plan, as Markdown")


class ExitPlan(BaseTool):
    """The `exit_plan` tool. It only asks, so that it can be restarted when the answer arrives."""

    name = "exit_plan"
    description = "Show your complete plan to the user, who accepts or rejects it. Work on it only if it is accepted."
    arguments = ExitPlanArguments
    idempotent = True
    hidden = True
    needs_folder = False
    effects = frozenset({"read"})

    async def call(self, arguments: ExitPlanArguments, context: ToolContext) -> ToolOutput:
        (reply,) = await context.ask((Question("Plan", arguments.plan, _OPTIONS, edits="plan"),)) or ((),)
        if not reply:
            return ToolOutput("No one answered. Change nothing, and end with the plan as your answer.", error=True)
        *answers, plan = (text.strip() for text in reply)
        changed = f" The user changed the plan. It is now:\n\n{plan}" if plan != arguments.plan.strip() else ""
        words = "\n".join(text for text in answers if text and text not in _CHOICES)
        mode: Mode | None = next((_MODES[answer] for answer in answers if answer in _MODES), None)
        if mode is not None:
            await context.services.plan_mode.leave(mode)
            remark = f" The user adds: {words}" if words else ""
            return ToolOutput(f"The user accepted the plan. The mode is now {mode}. Carry it out.{remark}{changed}", {"mode": mode})
        if REJECT in answers:
            return ToolOutput("The user rejected the plan. Change nothing, and end your answer.", error=True)
        wish = f"Change it and call exit_plan again: {words}" if words else "Ask what to change, then call exit_plan again."
        return ToolOutput(f"The user wants another plan. {wish}{changed}")

    def doing(self, arguments: ExitPlanArguments) -> View:
        return View("Show the plan", body=arguments.plan, language="markdown")

    def done(self, arguments: ExitPlanArguments, output: ToolOutput) -> View:
        return View("Showed the plan", output.text.partition(".")[0], arguments.plan, "markdown")
