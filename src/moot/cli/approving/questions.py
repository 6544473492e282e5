"""The prompt for a tool's questions: numbered options or free text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from moot.cli.approving.prompting import Prompt, TextInput
from moot.cli.approving.rows import Row, visible_line, visible_lines
from moot.cli.asking import parse_number
from moot.types.approval import Answer
from moot.types.canonical import Json, JsonObject

__all__ = ["QuestionPrompt", "parse_reply"]


class QuestionPrompt(Prompt):
    """All questions of one call, one after another. Nothing is selected by default."""

    def __init__(self, questions: Sequence[JsonObject], requested_by: str) -> None:
        super().__init__()
        self._questions = questions
        self._requested_by = requested_by
        self._at = 0
        self._replies: list[list[str]] = []
        self._selected: list[str] = []

    @property
    def title(self) -> Row:
        which = f" ({self._at + 1} of {len(self._questions)})" if len(self._questions) > 1 else ""
        header = visible_line(str(self._question.get("header") or "Question"))
        return Row(f"{header}{which}", "bold", f"requested by: {self._requested_by}", "dim", 1)

    def body(self) -> list[Row]:
        rows = [Row(line) for line in visible_lines(str(self._question.get("text", "")))]
        for number, option in enumerate(self._options, 1):
            label = visible_line(str(option.get("label", "")))
            mark = ("[x] " if str(option.get("label", "")) in self._selected else "[ ] ") if self._multiple else ""
            rows.append(Row(f"{number} {mark}{label}", "good" if mark == "[x] " else "", indent=4))
            if option.get("description"):
                rows += [Row(line, "dim", indent=8) for line in visible_lines(str(option["description"]))]
        return rows

    def keys(self) -> dict[str, str]:
        if not self._options:
            return {"w": "write an answer", "n": "don't answer"}
        numbers = {str(number): "" for number in range(1, len(self._options) + 1)}
        done = {"d": "done"} if self._multiple and self._selected else {}
        return numbers | done | {"w": "other answer", "n": "don't answer"}

    def choose(self, key: str) -> None:
        if key == "n":
            self.propose(Answer(False, reason="the user did not answer"))
        elif key == "w":
            self.input = TextInput("Your answer: ", "", self._reply_text)
        elif key == "d":
            self._reply(self._selected)
        else:
            self._select(str(self._options[int(key) - 1].get("label", "")))

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

    def _select(self, label: str) -> None:
        if not self._multiple:
            self._reply([label])
        elif label in self._selected:
            self._selected.remove(label)
        else:
            self._selected.append(label)

    def _reply_text(self, text: str) -> None:
        if text.strip():
            self._reply([*self._selected, text.strip()])

    def _reply(self, answers: Sequence[str]) -> None:
        self._replies.append(list(answers))
        if self._at + 1 < len(self._questions):
            self._at += 1
            self._selected = []
        else:
            self.propose(Answer(True, value=[list[Json](reply) for reply in self._replies]))


def parse_reply(line: str, labels: Sequence[str], *, multiple: bool) -> list[str]:
    """Return the labels that a typed line selects by number, or the line itself."""
    words = line.replace(",", " ").split()
    numbers = [number for word in words if (number := parse_number(word, len(labels)))]
    if numbers and len(numbers) == len(words) and (multiple or len(numbers) == 1):
        return [labels[number - 1] for number in dict.fromkeys(numbers)]
    return [line]
