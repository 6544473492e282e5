"""Claude Code's questions to the user in moot's form, and the answers in its form."""

from __future__ import annotations

from dataclasses import replace

from moot.types.canonical import Json, JsonObject
from moot.types.outside import OutsideAnswer, OutsideCall


def asked_in(call: OutsideCall, request: JsonObject) -> OutsideCall:
    """Return the call with its questions in moot's form."""
    questions: list[Json] = []
    for question in _questions(request):
        offered = question.get("options")
        options: list[Json] = [
            {"label": str(option.get("label", "")), "description": str(option.get("description", ""))}
            for option in (offered if isinstance(offered, list) else [])
            if isinstance(option, dict)
        ]
        header, text = str(question.get("header") or "Question"), str(question.get("question", ""))
        questions.append({"header": header, "text": text, "options": options, "multiple": question.get("multiSelect") is True})
    return replace(call, questions=questions, editable=False)


def answers_to(request: JsonObject, answer: OutsideAnswer) -> JsonObject:
    """Return the answers, keyed by the questions' texts."""
    if not answer.approved:
        return {"behavior": "deny", "message": answer.reason or "The user did not answer."}
    replies = answer.value if isinstance(answer.value, list) else []
    answers: JsonObject = {}
    for question, reply in zip(_questions(request), replies, strict=False):
        texts = [str(text) for text in reply] if isinstance(reply, list) else [str(reply)]
        answers[str(question.get("question", ""))] = ", ".join(texts) or "(no answer)"
    arguments = request.get("input")
    return {"behavior": "allow", "updatedInput": {**(arguments if isinstance(arguments, dict) else {}), "answers": answers}}


def _questions(request: JsonObject) -> list[JsonObject]:
    arguments = request.get("input")
    questions = arguments.get("questions") if isinstance(arguments, dict) else None
    return [question for question in questions if isinstance(question, dict)] if isinstance(questions, list) else []
