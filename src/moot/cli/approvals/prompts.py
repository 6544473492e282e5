"""The prompts for approving a tool call or answering a tool's questions: their rows, keys, text input and answer. No I/O."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from moot.cli.approvals.preview import call_rows
from moot.cli.terminal.prompts.rows import Row
from moot.features.approvals import CallPreview
from moot.guard.terminal import visible_line, visible_lines
from moot.runtime.approvals.typed_answers import EDITS, label, options_by_key, patterns_text
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, JsonObject, dumps, loads_exact


class Pending(Enum):
    """An action that the application performs for a prompt."""

    ANSWER = "answer"
    """Check `proposed`, and return it if it is valid."""
    EXPLAIN = "explain"
    """Ask a model to explain the call."""
    EDITOR = "editor"
    """Open the call's arguments in the user's editor."""
    SHOW = "show"
    """Show the call with `text` as its arguments."""


@dataclass(frozen=True, slots=True)
class TextInput:
    """A text input of one line: its label, its initial text, the function that receives the text,
    and suggestions to cycle through with Up and Down.
    """

    label: str
    text: str
    submitted: Callable[[str], None]
    suggestions: Sequence[str] = ()


class Prompt(ABC):
    """The state of one prompt."""

    def __init__(self) -> None:
        self.input: TextInput | None = None
        self.message = ""
        self.pending: Pending | None = None
        self.proposed: Answer | None = None
        self.text = ""

    @property
    @abstractmethod
    def title(self) -> Row: ...

    @abstractmethod
    def body(self) -> list[Row]:
        """Return the rows that show everything the user must decide about. They may not all fit on the screen."""

    @abstractmethod
    def keys(self) -> dict[str, str]:
        """Return the label of each key, in display order."""

    @abstractmethod
    def choose(self, key: str) -> None:
        """Handle a key that is one of `keys`."""

    def submit(self, text: str) -> None:
        """Handle the typed line."""
        line, self.input = self.input, None
        if line is not None:
            line.submitted(text)

    def propose(self, answer: Answer) -> None:
        self.proposed, self.pending = answer, Pending.ANSWER

    def preview_edit(self, text: str) -> None:
        self.text, self.pending = text, Pending.SHOW


QUIET = 0.4
"""Number of seconds after the question appears, or after a key that is not an answer, during which no key counts as an answer."""
ALONE = 0.15
"""Number of seconds that must pass without another key before a key counts as an answer.
Letters in typed words and pastes arrive faster.
"""


class KeyGuard:
    """Protects a question against accidental answers. Text that is not an answer is collected in `typed`."""

    def __init__(self, now: float) -> None:
        self.since = now
        """Time of the last key that is not an answer, or the time when the question appeared."""
        self.typed = ""
        self._candidate: tuple[str, float] | None = None

    def restart(self, now: float) -> None:
        """Start again for the next question."""
        self.since, self._candidate = now, None

    def add(self, key: str, now: float, answers: Collection[str]) -> None:
        """Handle one key or one paste. A key of `answers` becomes an answer if no other key follows."""
        waited = now - self.since >= QUIET
        if self._candidate is not None:
            self.typed += self._candidate[0]
        elif waited and key in answers:
            self._candidate = (key, now)
            return
        self.typed += key
        self.since, self._candidate = now, None

    def erase(self, now: float) -> None:
        """Remove the last typed character."""
        self.typed = self.typed[:-1]
        self.restart(now)

    def confirmed(self, now: float) -> str | None:
        """Return the key that has become an answer, but only once. Return None if there is none."""
        if self._candidate is None or now - self._candidate[1] < ALONE:
            return None
        key, self._candidate = self._candidate[0], None
        return key


class CallPrompt(Prompt):
    """The approval prompt for one tool call. `edited` holds the arguments if the user changed them, otherwise None."""

    def __init__(self, approval: Approval, preview: CallPreview, directory: str, requested_by: str) -> None:
        super().__init__()
        self._approval = approval
        self._directory = directory
        self._requested_by = requested_by
        self.preview = preview
        self.edited: bytes | None = None
        self.explanation = ""
        self._options = options_by_key(approval.options)
        self._entered: list[str] = []

    @property
    def title(self) -> Row:
        edited = " with your changes" if self.edited is not None else ""
        return Row(f"{visible_line(self._approval.tool)} wants to run{edited}", "bold", f"requested by: {self._requested_by}", "dim", 1)

    def body(self) -> list[Row]:
        call = self._approval.outside
        title = call.title if call is not None and (not call.subject or call.subject not in call.title) else ""
        rows = [Row(line, "dim", prose=True) for line in visible_lines(title) if line]
        rows += [*call_rows(self.preview), Row(f"in {visible_line(self._directory)}", "dim")]
        if self.explanation:
            rows.append(Row("Explanation by a model:", "dim"))
            rows += [Row(line, indent=4, prose=True) for line in visible_lines(self.explanation)]
        return rows

    def keys(self) -> dict[str, str]:
        if self.edited is not None:
            return {"y": "run with changes", "e": "edit again", "n": "no", "b": "no, because…"}
        if self._options:
            keys = {key: label(option) for key, option in self._options.items()}
            if self._approval.edits:
                keys["f"] = EDITS
            keys |= {"n": keys.get("n", "no"), "b": "no, because…", "?": "explain"}
            return keys | {"e": "edit arguments"} if self._editable else keys
        keys = {"y": "yes, once"}
        if self._approval.lasting:
            keys["s"] = "yes, in this conversation"
        if self._approval.edits:
            keys["f"] = EDITS
        if self._approval.always:
            keys["a"] = f"always: {self._approval.tool} {patterns_text(self._approval)} (edit)"
        keys |= {"n": "no", "b": "no, because…", "?": "explain"}
        return keys | {"e": "edit arguments"} if self._editable else keys

    @property
    def _editable(self) -> bool:
        return self._approval.outside is None or self._approval.outside.editable

    def choose(self, key: str) -> None:
        if self.edited is None and (option := self._options.get(key)) is not None:
            self.propose(Answer(option.allows, option.id, "" if option.allows else "denied by the user"))
            return
        match key:
            case "y":
                self.propose(Answer(True, arguments=self.edited))
            case "s":
                self.propose(Answer(True, "conversation"))
            case "f":
                self.propose(Answer(True, "edits"))
            case "a":
                self._entered = []
                self._ask_pattern()
            case "n":
                self.propose(Answer(False, reason="denied by the user"))
            case "b":
                self.input = TextInput("No, because: ", "", self._deny_because)
            case "?":
                self.message = "Asking a model…"
                self.pending = Pending.EXPLAIN
            case _:
                self._edit()

    def take_edited(self, text: str) -> bytes | None:
        """Return edited arguments in canonical form. If they are not a JSON object, set `message` and return None."""
        try:
            value = loads_exact(text.encode("utf-8", "replace"))
        except ValueError as error:
            self.message = f"Invalid JSON: {error}. Nothing was changed."
            return None
        if not isinstance(value, dict):
            self.message = "The arguments must be a JSON object. Nothing was changed."
            return None
        return dumps(value)

    @property
    def arguments(self) -> bytes:
        return self.edited if self.edited is not None else self._approval.arguments

    def show(self, preview: CallPreview) -> None:
        """Show the call with edited arguments instead of the model's."""
        same = preview.arguments == self._approval.arguments
        self.edited, self.preview, self.explanation = (None if same else preview.arguments), preview, ""
        self.message = "Nothing was changed." if same else ""

    def _ask_pattern(self) -> None:
        which = f" ({len(self._entered) + 1} of {len(self._approval.lasting)})" if len(self._approval.lasting) > 1 else ""
        pattern = self._approval.lasting[len(self._entered)]
        wider = next(part.patterns for part in self._approval.parts if part.action == "ask" and part.patterns[0] == pattern)
        self.input = TextInput(f"Always allow {self._approval.tool}{which}: ", pattern, self._take_pattern, wider)

    def _take_pattern(self, text: str) -> None:
        if not text.strip():
            self.message = "No rule was saved."
            return
        self._entered.append(text.strip())
        if len(self._entered) < len(self._approval.lasting):
            self._ask_pattern()
        else:
            self.propose(Answer(True, "always", patterns=tuple(self._entered)))

    def _deny_because(self, text: str) -> None:
        if text.strip():
            self.propose(Answer(False, reason=text.strip()))

    def _edit(self) -> None:
        value = loads_exact(self.arguments)
        command = value.get("command") if isinstance(value, dict) else None
        if isinstance(value, dict) and isinstance(command, str) and command.isprintable():

            def submitted(text: str) -> None:
                changed: dict[str, Json] = {**value, "command": text}
                self.preview_edit(dumps(changed).decode())

            self.input = TextInput("Run instead: ", command, submitted)
        else:
            self.pending = Pending.EDITOR


class QuestionPrompt(Prompt):
    """The questions of one tool call, asked one after another. Nothing is selected by default."""

    def __init__(self, questions: Sequence[JsonObject], requested_by: str) -> None:
        super().__init__()
        self._questions = questions
        self._requested_by = requested_by
        self._at = 0
        self._replies: list[list[str]] = []
        self._selected: list[str] = []
        self._changed: JsonObject = {}

    @property
    def title(self) -> Row:
        which = f" ({self._at + 1} of {len(self._questions)})" if len(self._questions) > 1 else ""
        header = visible_line(str(self._question.get("header") or "Question"))
        return Row(f"{header}{which}", "bold", f"requested by: {self._requested_by}", "dim", 1)

    def body(self) -> list[Row]:
        rows = [Row(line, prose=True) for line in visible_lines(self.document)]
        for number, option in enumerate(self._options, 1):
            label = visible_line(str(option.get("label", "")))
            mark = ("[x] " if str(option.get("label", "")) in self._selected else "[ ] ") if self._multiple else ""
            rows.append(Row(f"{number} {mark}{label}", "good" if mark == "[x] " else "", indent=4))
            if option.get("description"):
                rows += [Row(line, "dim", indent=8, prose=True) for line in visible_lines(str(option["description"]))]
        return rows

    def keys(self) -> dict[str, str]:
        edit = {"e": f"edit the {visible_line(self._edits)}"} if self._edits else {}
        if not self._options:
            return {"w": "write an answer", **edit, "n": "don't answer"}
        numbers = {str(number): "" for number in range(1, len(self._options) + 1)}
        done = {"d": "done"} if self._multiple and self._selected else {}
        other = {} if self._question.get("choices_only") is True else {"w": "other answer"}
        return numbers | done | other | edit | {"n": "don't answer"}

    def choose(self, key: str) -> None:
        if key == "n":
            self.propose(Answer(False, reason="the user did not answer"))
        elif key == "w":
            self.input = TextInput("Your answer: ", "", self._reply_text)
        elif key == "d":
            self._reply(self._selected)
        elif key == "e":
            self.pending = Pending.EDITOR
        else:
            label = str(self._options[int(key) - 1].get("label", ""))
            if not self._multiple:
                self._reply([label])
            elif label in self._selected:
                self._selected.remove(label)
            else:
                self._selected.append(label)

    @property
    def document(self) -> str:
        """The text of the current question, with the user's changes."""
        return str(self._changed.get(self._edits, self._question.get("text", "")))

    def change(self, text: str | None) -> None:
        """Use the edited text for the current question. None means that it was not edited."""
        if text is None or not text.strip() or text.strip() == self.document.strip():
            self.message = "Nothing was changed."
        else:
            self._changed[self._edits], self.message = text.strip(), "Changed. Now choose an answer."

    @property
    def _edits(self) -> str:
        return str(self._question.get("edits") or "")

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

    def _reply_text(self, text: str) -> None:
        if text.strip():
            self._reply([*self._selected, text.strip()])

    def _reply(self, answers: Sequence[str]) -> None:
        self._replies.append(list(answers))
        if self._at + 1 < len(self._questions):
            self._at += 1
            self._selected = []
        else:
            changed = dumps(self._changed) if self._changed else None
            self.propose(Answer(True, value=[list[Json](reply) for reply in self._replies], arguments=changed))
