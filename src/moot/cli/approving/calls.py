"""The prompt for a call that needs approval. Pure."""

from __future__ import annotations

from moot.cli.approving.looking import call_rows
from moot.cli.approving.offered import label, options_by_key
from moot.cli.approving.prompting import Pending, Prompt, TextInput
from moot.cli.approving.rows import Row, visible_line, visible_lines
from moot.runtime.looking import Looked
from moot.types.approval import Answer, Approval
from moot.types.canonical import Json, dumps, loads_exact

__all__ = ["CallPrompt", "patterns_text"]


class CallPrompt(Prompt):
    """One approval. `edited` holds the arguments as the user changed them, until they approve them."""

    def __init__(self, approval: Approval, preview: Looked, directory: str, requested_by: str) -> None:
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
            keys |= {"n": keys.get("n", "no"), "b": "no, because…", "?": "explain"}
            return keys | {"e": "edit arguments"} if self._editable else keys
        keys = {"y": "yes, once"}
        if self._approval.lasting:
            keys["s"] = "yes, in this conversation"
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
        """Return edited arguments in canonical form, or None with a message if they are not a JSON object."""
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

    def show(self, preview: Looked) -> None:
        """Show edited arguments in place of the model's."""
        same = preview.arguments == self._approval.arguments
        self.edited, self.preview, self.explanation = (None if same else preview.arguments), preview, ""
        self.message = "Nothing was changed." if same else ""

    def _ask_pattern(self) -> None:
        which = f" ({len(self._entered) + 1} of {len(self._approval.lasting)})" if len(self._approval.lasting) > 1 else ""
        pattern = self._approval.lasting[len(self._entered)]
        wider = [part.patterns for part in self._approval.parts if part.action == "ask"][len(self._entered)]
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


def patterns_text(approval: Approval) -> str:
    """Return the patterns that a lasting rule would get, quoted."""
    return ", ".join(f'"{visible_line(pattern)}"' for pattern in approval.lasting)
