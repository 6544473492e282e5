"""ask_user: ask the user one to four questions, with or without choices."""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel, Field

from moot.tools.basics import BaseTool, count
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
