"""ask_user: one to four questions to the person, with choices or without."""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel, Field

from moot.tools.basics import Defaults, count
from moot.types.canonical import Json, JsonObject
from moot.types.tool import Effect, Option, Question, ToolContext, ToolOutput, View


class Choice(BaseModel):
    label: str = Field(min_length=1, max_length=100)
    description: str = Field(default="", max_length=500)


class Asked(BaseModel):
    question: str = Field(min_length=1, max_length=2000)
    header: str = Field(default="", max_length=40, description="A word or two")
    options: list[Choice] = Field(default=[], max_length=8, description="Choices; the user may always answer in own words")
    multiple: bool = Field(default=False, description="Several choices may be taken")


class AskUserArguments(BaseModel):
    questions: list[Asked] = Field(min_length=1, max_length=4)


class AskUser(Defaults):
    """Asks, and may be entered again from its top when the answer comes: it does nothing else."""

    name: str = "ask_user"
    description: str = "Ask the user when you can't go on without an answer."
    arguments: type[BaseModel] = AskUserArguments
    idempotent: bool = True
    effects: frozenset[Effect] = frozenset({"read"})
    examples: tuple[JsonObject, ...] = (
        {"user": "Delete the old file", "arguments": {"questions": [{"question": "Which file do you mean?"}]}},
        {
            "user": "Set up a project",
            "arguments": {
                "questions": [{"question": "Which language?", "header": "Language", "options": [{"label": "Python"}, {"label": "Go"}]}]
            },
        },
    )

    async def run(self, arguments: AskUserArguments, context: ToolContext) -> ToolOutput:
        replies = await context.ask(tuple(_question(asked) for asked in arguments.questions))
        lines = [
            f"{asked.question}\n{', '.join(reply) or '(no answer)'}"
            for asked, reply in zip(arguments.questions, [*replies, *[()] * len(arguments.questions)], strict=False)
        ]
        return ToolOutput("\n\n".join(lines), cast("Json", [list(reply) for reply in replies]))

    def doing(self, arguments: AskUserArguments) -> View:
        return View("Ask", count(len(arguments.questions), "question"), "\n".join(asked.question for asked in arguments.questions))

    def done(self, arguments: AskUserArguments, output: ToolOutput) -> View:
        return View("Asked", count(len(arguments.questions), "question"), output.text)


def _question(asked: Asked) -> Question:
    options = tuple(Option(choice.label, choice.description) for choice in asked.options)
    return Question(asked.header or "Question", asked.question, options, asked.multiple)
