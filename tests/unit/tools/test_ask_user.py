from typing import Any

import pytest
from pydantic import ValidationError

from moot.tools.builtin.questions import AskUser, AskUserArguments, Choice, QuestionArguments
from moot.types.context import Parked
from moot.types.tool import Option, Question

pytestmark = pytest.mark.anyio

ASKED = [
    QuestionArguments(
        question="Which language?",
        header="Language",
        options=[Choice(label="Python", description="slow"), Choice(label="Go")],
        multiple=True,
    ),
    QuestionArguments(question="Anything else?"),
]


async def test_questions_are_asked_and_replies_returned(context: Any):
    context.replies = (("Python", "Go"), ("in my own words",))
    output = await AskUser().run(AskUserArguments(questions=ASKED), context)
    assert context.asked == [
        (
            Question("Language", "Which language?", (Option("Python", "slow"), Option("Go")), multiple=True),
            Question("Question", "Anything else?"),
        )
    ]
    assert output.text == "Which language?\nPython, Go\n\nAnything else?\nin my own words"
    assert output.value == [["Python", "Go"], ["in my own words"]]


@pytest.mark.parametrize("replies", [(), ((),), (("x",),), (("x",), ("y",), ("z",))])
async def test_missing_and_surplus_replies_are_tolerated(context: Any, replies: Any):
    context.replies = replies
    assert not (await AskUser().run(AskUserArguments(questions=ASKED), context)).error


async def test_a_wait_for_replies_is_passed_on(context: Any):
    async def park(questions: Any) -> Any:
        raise Parked

    context.ask = park
    with pytest.raises(Parked):
        await AskUser().run(AskUserArguments(questions=ASKED), context)


@pytest.mark.parametrize("number", [0, 5])
async def test_a_call_has_one_to_four_questions(number: int):
    with pytest.raises(ValidationError):
        AskUserArguments(questions=[QuestionArguments(question="x")] * number)
