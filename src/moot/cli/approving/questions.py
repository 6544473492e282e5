"""A tool's questions, one after another: options by number, several of them, or own words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from moot.cli.approving.prompting import Line, Prompt
from moot.cli.approving.rows import Row, spelled
from moot.types.approval import Answer
from moot.types.canonical import Json, JsonObject

__all__ = ["QuestionPrompt", "chosen"]


class QuestionPrompt(Prompt):
    """All questions of one call. Nothing is chosen beforehand; a question without options begins with an empty line."""

    def __init__(self, questions: Sequence[JsonObject], asked_by: str) -> None:
        super().__init__()
        self._questions = questions
        self._asked_by = asked_by
        self._at = 0
        self._replies: list[list[str]] = []
        self._taken: list[str] = []
        self._begin()

    @property
    def title(self) -> Row:
        which = f" ({self._at + 1} of {len(self._questions)})" if len(self._questions) > 1 else ""
        header = " ".join(spelled(str(self._question.get("header") or "Question")))
        return Row(f"{header}{which}", "bold", f"asked by: {self._asked_by}", "dim", 1)

    def body(self) -> list[Row]:
        rows = [Row(line) for line in spelled(str(self._question.get("text", "")))]
        for number, option in enumerate(self._options, 1):
            label = " ".join(spelled(str(option.get("label", ""))))
            mark = ("[x] " if str(option.get("label", "")) in self._taken else "[ ] ") if self._multiple else ""
            rows.append(Row(f"{number} {mark}{label}", "good" if mark == "[x] " else "", indent=4))
            if option.get("description"):
                rows += [Row(line, "dim", indent=8) for line in spelled(str(option["description"]))]
        return rows

    def keys(self) -> dict[str, str]:
        if not self._options:
            return {"w": "write your answer", "n": "no answer"}
        numbers = {str(number): "" for number in range(1, len(self._options) + 1)}
        done = {"d": "done"} if self._multiple and self._taken else {}
        return numbers | done | {"w": "own words", "n": "no answer"}

    def choose(self, key: str) -> None:
        if key == "n":
            self.propose(Answer(False, reason="the person did not answer"))
        elif key == "w":
            self.line = Line("Your answer: ", "", self._own_words)
        elif key == "d":
            self._reply(self._taken)
        else:
            self._take(str(self._options[int(key) - 1].get("label", "")))

    @property
    def _question(self) -> JsonObject:
        return self._questions[self._at]

    @property
    def _multiple(self) -> bool:
        return self._question.get("multiple") is True

    @property
    def _options(self) -> list[JsonObject]:
        options = self._question.get("options")
        return [option for option in options if isinstance(option, dict)][:9] if isinstance(options, list) else []

    def _begin(self) -> None:
        self._taken = []

    def _take(self, label: str) -> None:
        if not self._multiple:
            self._reply([label])
        elif label in self._taken:
            self._taken.remove(label)
        else:
            self._taken.append(label)

    def _own_words(self, text: str) -> None:
        if text.strip():
            self._reply([*self._taken, text.strip()])

    def _reply(self, words: Sequence[str]) -> None:
        self._replies.append(list(words))
        if self._at + 1 < len(self._questions):
            self._at += 1
            self._begin()
        else:
            self.propose(Answer(True, value=[list[Json](reply) for reply in self._replies]))


def chosen(line: str, labels: Sequence[str], *, multiple: bool) -> list[str]:
    """A typed line as replies: numbers of options, or the words themselves."""
    words = line.replace(",", " ").split()
    numbers = [int(word) for word in words if word.isdecimal() and 1 <= int(word) <= len(labels)]
    if numbers and len(numbers) == len(words) and (multiple or len(numbers) == 1):
        return [labels[number - 1] for number in dict.fromkeys(numbers)]
    return [line]
